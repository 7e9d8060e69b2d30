/* SPDX-License-Identifier: Apache-2.0 */
/* Module globals and addresses stored everywhere: in constants, in globals, in device memory and in kernel arguments. */
#include "phase.h"

struct node {
	struct node *next;
	int *counter;
	int value;
};

struct argument {
	struct node *list;
	int *counters[3];
	short small;
};

__device__ int counter = 7;
__device__ int table[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
__device__ int *global_pointer = &counter;	/* initialised with an address by the loader */
__device__ struct node *list_head;
__constant__ float weights[4] = { 0.5f, 1.5f, 2.5f, 3.5f };
__constant__ int *constant_pointer;
static __device__ unsigned long long hidden = 0x1122334455667788ull;

/* Builds the list inside device memory: every link is an address made on the device. */
__global__ void build(struct node *nodes, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		nodes[i].next = i + 1 < n ? &nodes[i + 1] : nullptr;
		nodes[i].counter = i & 1 ? &counter : &table[i & 7];
		nodes[i].value = i;
	}
	if (i == 0)
		list_head = nodes;
}

__global__ void walk(struct argument arg, long long *result)
{
	long long sum = 0;

	for (struct node *p = list_head; p; p = p->next) {
		sum += p->value;
		(*p->counter)++;
	}
	for (struct node *p = arg.list; p; p = p->next)
		sum += 1000;
	*arg.counters[0] += 1;
	*arg.counters[1] += 2;
	*arg.counters[2] += arg.small;
	*global_pointer += 100;
	*constant_pointer += 1000;
	*result = sum + (long long)(weights[0] + weights[1] + weights[2] + weights[3]) + (long long)(hidden >> 56);
}

int main(int argc, char **argv)
{
	int n = 1000, values[8], c, expected[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, *address, *pointer;
	float w[4];
	long long *dresult, result;
	struct node *nodes;
	struct argument arg;
	size_t size;

	(void)argc;
	(void)argv;
	CHECK(cudaGetSymbolAddress((void **)&address, table));
	CHECK(cudaGetSymbolSize(&size, table));
	EXPECT(size == sizeof(values));
	CHECK(cudaGetSymbolSize(&size, weights));
	EXPECT(size == sizeof(w));
	CHECK(cudaGetSymbolSize(&size, hidden));
	EXPECT(size == 8);
	CHECK(cudaMalloc(&nodes, n * sizeof(*nodes)));
	CHECK(cudaMalloc(&dresult, sizeof(*dresult)));
	build<<<(n + 63) / 64, 64>>>(nodes, n);
	CHECK(cudaGetSymbolAddress((void **)&pointer, counter));
	CHECK(cudaMemcpyToSymbol(constant_pointer, &pointer, sizeof(pointer)));
	w[0] = 10;
	CHECK(cudaMemcpyToSymbol(weights, w, sizeof(float), sizeof(float)));	/* weights[1] = 10 */
	c = 50;
	CHECK(cudaMemcpyToSymbolAsync(table, &c, sizeof(c), 5 * sizeof(int), cudaMemcpyHostToDevice, 0));
	expected[5] = 50;
	phase();
	arg.list = nodes;
	arg.counters[0] = &address[2];
	arg.counters[1] = &address[3];
	arg.counters[2] = pointer;
	arg.small = -3;
	walk<<<1, 1>>>(arg, dresult);
	CHECK(cudaMemcpy(&result, dresult, sizeof(result), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof(c)));
	CHECK(cudaMemcpyFromSymbol(values, table, sizeof(values)));
	CHECK(cudaMemcpyFromSymbol(w, weights, sizeof(float), sizeof(float)));
	for (int i = 0; i < n; i += 2)
		expected[i & 7]++;
	expected[2] += 1;
	expected[3] += 2;
	EXPECT(c == 7 + n / 2 - 3 + 100 + 1000);
	EXPECT(memcmp(values, expected, sizeof(values)) == 0);
	EXPECT(w[0] == 10);
	EXPECT(result == (long long)n * (n - 1) / 2 + 1000ll * n + 16 + 0x11);
	printf("counter %d result %lld\n", c, result);
	/* A copy through the address sees the same memory as one through the symbol. */
	CHECK(cudaMemcpy(values, address, sizeof(values), cudaMemcpyDeviceToHost));
	EXPECT(memcmp(values, expected, sizeof(values)) == 0);
	CHECK(cudaFree(nodes));
	CHECK(cudaFree(dresult));
	return finish();
}
