/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through pointers: function pointers in globals and in memory, virtual functions of objects made on the device, recursion. */
#include "phase.h"
#include <new>

typedef unsigned (*operation)(unsigned, unsigned);

__device__ unsigned add(unsigned a, unsigned b)
{
	return a + b;
}

__device__ unsigned multiply(unsigned a, unsigned b)
{
	return a * b;
}

__device__ unsigned rotate(unsigned a, unsigned b)
{
	return a << (b & 31) | a >> (-b & 31);
}

__device__ operation operations[3] = { add, multiply, rotate };

struct shape {
	__device__ virtual unsigned area(unsigned scale) const = 0;
	__device__ virtual ~shape() {}
};

struct square : shape {
	unsigned side;
	__device__ square(unsigned s) : side(s) {}
	__device__ unsigned area(unsigned scale) const override { return side * side * scale; }
};

struct strip : shape {
	unsigned length;
	__device__ strip(unsigned l) : length(l) {}
	__device__ unsigned area(unsigned scale) const override { return length * scale + 1; }
};

__device__ __noinline__ unsigned fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

union room {
	unsigned long long align[2];
	char bytes[16];
};

__global__ void construct(union room *rooms, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	static_assert(sizeof(struct square) <= sizeof(union room), "an object fits its room");
	if (i >= n)
		return;
	if (i % 3)
		new (rooms[i].bytes) square(i);
	else
		new (rooms[i].bytes) strip(i);
}

__global__ void use(union room *rooms, unsigned *out, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = operations[i % 3](((struct shape *)rooms[i].bytes)->area(2), i) + fibonacci(i % 10);
}

int main(void)
{
	unsigned n = 1500, *out, h[1500], wrong = 0, fib[10] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34 };
	union room *rooms;

	CHECK(cudaMalloc(&rooms, n * sizeof(*rooms)));
	CHECK(cudaMalloc(&out, sizeof(h)));
	construct<<<(n + 63) / 64, 64>>>(rooms, n);
	CHECK(cudaGetLastError());
	phase();
	use<<<(n + 63) / 64, 64>>>(rooms, out, n);
	CHECK(cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < n; i++) {
		unsigned a = i % 3 ? i * i * 2 : i * 2 + 1;

		a = i % 3 == 0 ? a + i : i % 3 == 1 ? a * i : a << (i & 31) | a >> (-i & 31);
		wrong += h[i] != a + fib[i % 10];
	}
	EXPECT(wrong == 0);
	print_checksum("out", h, sizeof(h));
	CHECK(cudaFree(rooms));
	CHECK(cudaFree(out));
	return finish();
}
