/* SPDX-License-Identifier: Apache-2.0 */
/* Device variables by their host names, and addresses stored on the device. */
#include "check.h"

#include <cstring>

__device__ int table[64];
__device__ float initialised = 1.5f;
__constant__ int factors[4] = {2, 3, 5, 7};
__device__ int *stored;
static __device__ long long counter;

__global__ void use(int n)
{
	int i = threadIdx.x;
	if (i < n)
		table[i] = table[i] * factors[i % 4] + (int)initialised;
	if (i == 0) {
		stored = &table[5];
		counter += n;
	}
}

int main()
{
	int host[64], back[64];
	size_t size = 0;
	void *address = NULL, *pointer = NULL;
	float value = 0;
	long long count = 0;
	for (int i = 0; i < 64; i++)
		host[i] = i;
	OK(cudaGetSymbolSize(&size, table));
	CHECK(size == sizeof table);
	OK(cudaMemcpyFromSymbol(&value, initialised, sizeof value));
	CHECK(value == 1.5f);
	OK(cudaMemcpyToSymbol(table, host, sizeof host));
	use<<<1, 64>>>(64);
	OK(cudaGetLastError());
	OK(cudaMemcpyFromSymbol(back, table, sizeof back));
	const int factor[] = {2, 3, 5, 7};
	for (int i = 0; i < 64; i++)
		CHECK(back[i] == i * factor[i % 4] + 1);
	const int replaced[2] = {11, 13};
	OK(cudaMemcpyToSymbolAsync(factors, replaced, sizeof replaced, sizeof(int), cudaMemcpyHostToDevice, 0));
	use<<<1, 64>>>(2);
	OK(cudaMemcpyFromSymbol(back, table, 2 * sizeof(int)));
	CHECK(back[0] == 1 * 2 + 1 && back[1] == 4 * 11 + 1);
	OK(cudaGetSymbolAddress(&address, table));
	OK(cudaMemcpyFromSymbol(&pointer, stored, sizeof pointer));
	CHECK(pointer == (char *)address + 5 * sizeof(int));
	OK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
	CHECK(count == 66);
	OK(cudaMemset(address, 0, sizeof(int)));
	OK(cudaMemcpyFromSymbol(back, table, sizeof(int), 0));
	CHECK(back[0] == 0);
	RESULT(cudaMemcpyToSymbol(table, host, sizeof(int), sizeof table), cudaErrorInvalidValue);
	RESULT(cudaGetSymbolAddress(&address, host), cudaErrorInvalidSymbol);
	return failed;
}
