/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that kernels take themselves: a list made with malloc, one of objects made with new, and both walked and freed by a later kernel.
 * With the argument 0 nothing is taken: then only kernels of the same file run that cannot.
 */
#include "phase.h"

struct item {
	item *next;
	unsigned value;
};

struct shape {
	unsigned side;
	__device__ explicit shape(unsigned n) : side(n) {}
	__device__ virtual unsigned area() const { return side * side; }
	__device__ virtual ~shape() {}
};

__device__ item *head;
__device__ shape *shapes[16];

__device__ __noinline__ item *take(unsigned value)
{
	item *i = (item *)malloc(sizeof *i);

	i->next = head;
	i->value = value;
	return i;
}

__global__ void fill(unsigned count)
{
	for (unsigned n = 0; n < count; n++)
		head = take(n);
	for (unsigned n = 0; n < 16; n++)
		shapes[n] = new shape(n);
}

__global__ void walk(unsigned *sum)
{
	while (head) {
		item *next = head->next;

		*sum += head->value;
		free(head);
		head = next;
	}
	for (unsigned n = 0; n < 16; n++) {
		if (shapes[n])
			*sum += shapes[n]->area();
		delete shapes[n];
		shapes[n] = nullptr;
	}
}

__global__ void plain(unsigned *sum, unsigned n)
{
	*sum += n;
}

int main(int argc, char **argv)
{
	unsigned *sum, result, count = 100, wanted = 99 * 100 / 2 + 15 * 16 * 31 / 6;

	CHECK(cudaMalloc(&sum, 4));
	CHECK(cudaMemset(sum, 0, 4));
	if (argc > 1 && !atoi(argv[1])) {
		plain<<<1, 1>>>(sum, wanted);
		count = 0;
	} else {
		fill<<<1, 1>>>(count);
	}
	phase();
	if (count)
		walk<<<1, 1>>>(sum);
	CHECK(cudaMemcpy(&result, sum, 4, cudaMemcpyDeviceToHost));
	EXPECT(result == wanted);
	printf("%u\n", result);
	return finish();
}
