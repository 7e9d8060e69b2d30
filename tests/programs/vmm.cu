/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: a reservation that grows in pieces, as allocators with expandable segments use it; one memory mapped
 * twice, memory mapped nowhere, a handle got back from an address, what is refused.
 */
#include "phase.h"
#include "words.h"

#include <cuda.h>

#define CU(call)                                                                                                                 \
	do {                                                                                                                     \
		CUresult cu_error = (call);                                                                                      \
		if (cu_error != CUDA_SUCCESS) {                                                                                  \
			printf("%s:%d: %s: CUresult %d\n", __FILE__, __LINE__, #call, (int)cu_error);                            \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

/* The driver's functions by way of the runtime: the program is linked with nothing but that. */
template <typename F> static F driver(const char *name, F)
{
	void *function = NULL;
	cudaDriverEntryPointQueryResult found;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
	if (!function) {
		printf("no %s\n", name);
		exit(1);
	}
	return (F)function;
}
#define DRIVER(name) static decltype(&name) p_##name
#define LOOK_UP(name) p_##name = driver(#name, p_##name)

DRIVER(cuMemAddressReserve);
DRIVER(cuMemAddressFree);
DRIVER(cuMemCreate);
DRIVER(cuMemRelease);
DRIVER(cuMemMap);
DRIVER(cuMemUnmap);
DRIVER(cuMemSetAccess);
DRIVER(cuMemGetAccess);
DRIVER(cuMemGetAllocationGranularity);
DRIVER(cuMemGetAllocationPropertiesFromHandle);
DRIVER(cuMemRetainAllocationHandle);
DRIVER(cuDeviceGetAttribute);

int main(void)
{
	CUmemAllocationProp prop = {}, back;
	CUmemAccessDesc access = {}, none;
	CUdeviceptr base, alias, same;
	CUmemGenericAllocationHandle piece[4], lone, again;
	unsigned *wrong, host_wrong;
	unsigned long long flags;
	size_t grain = 0;
	int supported = 0;

	CHECK(cudaMalloc(&wrong, 4));
	CHECK(cudaMemset(wrong, 0, 4));
	LOOK_UP(cuMemAddressReserve);
	LOOK_UP(cuMemAddressFree);
	LOOK_UP(cuMemCreate);
	LOOK_UP(cuMemRelease);
	LOOK_UP(cuMemMap);
	LOOK_UP(cuMemUnmap);
	LOOK_UP(cuMemSetAccess);
	LOOK_UP(cuMemGetAccess);
	LOOK_UP(cuMemGetAllocationGranularity);
	LOOK_UP(cuMemGetAllocationPropertiesFromHandle);
	LOOK_UP(cuMemRetainAllocationHandle);
	LOOK_UP(cuDeviceGetAttribute);
	CU(p_cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	EXPECT(supported == 1);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CU(p_cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	EXPECT(grain > 0 && (2 << 20) % grain == 0);
	grain = 2 << 20;

	/* Far more addresses than memory, filled piece by piece. */
	CU(p_cuMemAddressReserve(&base, 64ull << 30, 0, 0, 0));
	EXPECT(base % grain == 0);
	for (int i = 0; i < 4; i++) {
		CU(p_cuMemCreate(&piece[i], (i + 1) * grain, &prop, 0));
		CU(p_cuMemMap(base + i * (i + 1) / 2 * grain, (i + 1) * grain, 0, piece[i], 0));
		CU(p_cuMemSetAccess(base + i * (i + 1) / 2 * grain, (i + 1) * grain, &access, 1));
	}
	unsigned *all = (unsigned *)base;
	size_t words = 10 * grain / 4;

	fill<<<16, 128>>>(all, words, 42);
	/* A copy across several mappings. */
	unsigned *host = (unsigned *)malloc(10 * grain);
	unsigned wrong_words = 0;

	CHECK(cudaMemcpy(host, all, 10 * grain, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < words; i++)
		wrong_words += host[i] != (42 ^ (unsigned)i);
	EXPECT(wrong_words == 0);
	EXPECT(cudaMemcpy(host, (char *)all + 9 * grain, 2 * grain, cudaMemcpyDeviceToHost) != cudaSuccess);
	(void)cudaGetLastError();
	CU(p_cuMemGetAccess(&flags, &prop.location, base + 3 * grain));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	/* The same memory at a second place. */
	CU(p_cuMemAddressReserve(&alias, 4 * grain, 0, 0, 0));
	CU(p_cuMemMap(alias, 4 * grain, 0, piece[3], 0));
	CU(p_cuMemSetAccess(alias, 4 * grain, &access, 1));
	fill<<<16, 128>>>((unsigned *)alias, grain, 7);
	check<<<16, 128>>>((unsigned *)(base + 6 * grain), grain, 7, wrong);
	/* Handles may go while the memory is mapped, and come back. */
	for (int i = 0; i < 4; i++)
		CU(p_cuMemRelease(piece[i]));
	CU(p_cuMemRetainAllocationHandle(&again, (void *)(base + 7 * grain)));
	CU(p_cuMemGetAllocationPropertiesFromHandle(&back, again));
	EXPECT(back.type == prop.type && back.location.type == prop.location.type && back.location.id == 0);
	CU(p_cuMemRelease(again));

	/* Memory that is mapped nowhere keeps its contents. */
	CU(p_cuMemCreate(&lone, grain, &prop, 0));
	CU(p_cuMemMap(base + 20 * grain, grain, 0, lone, 0));
	CU(p_cuMemSetAccess(base + 20 * grain, grain, &access, 1));
	fill<<<16, 128>>>((unsigned *)(base + 20 * grain), grain / 4, 5);
	CHECK(cudaDeviceSynchronize());
	CU(p_cuMemUnmap(base + 20 * grain, grain));
	/* Nor does the second place lose its access, or the third its lack of it. */
	none = access;
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CU(p_cuMemSetAccess(base + grain, 2 * grain, &none, 1));
	phase();

	CU(p_cuMemGetAccess(&flags, &prop.location, base + grain));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CU(p_cuMemSetAccess(base + grain, 2 * grain, &access, 1));
	check<<<16, 128>>>(all, 6 * grain / 4, 42, wrong);
	check<<<16, 128>>>((unsigned *)alias, grain, 7, wrong);
	fill<<<16, 128>>>((unsigned *)alias, grain, 8);
	check<<<16, 128>>>((unsigned *)(base + 6 * grain), grain, 8, wrong);
	CU(p_cuMemMap(base + 10 * grain, grain, 0, lone, 0));
	CU(p_cuMemSetAccess(base + 10 * grain, grain, &access, 1));
	check<<<16, 128>>>((unsigned *)(base + 10 * grain), grain / 4, 5, wrong);
	CHECK(cudaDeviceSynchronize());

	/* What is refused. */
	EXPECT(p_cuMemMap(base + 10 * grain, grain, 0, lone, 0) != CUDA_SUCCESS);
	EXPECT(p_cuMemCreate(&again, grain + 1, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(p_cuMemCreate(&again, 1ull << 46, &prop, 0) != CUDA_SUCCESS);
	CU(p_cuMemUnmap(base + 10 * grain, grain));
	CU(p_cuMemRelease(lone));
	CU(p_cuMemUnmap(alias, 4 * grain));
	CU(p_cuMemAddressFree(alias, 4 * grain));
	CU(p_cuMemUnmap(base, 10 * grain));
	CU(p_cuMemAddressFree(base, 64ull << 30));
	/* An address may be asked for; a driver may give another. */
	CU(p_cuMemAddressReserve(&same, 4 * grain, 0, alias, 0));
	EXPECT(same % grain == 0);
	CU(p_cuMemAddressFree(same, 4 * grain));
	CHECK(cudaMemcpy(&host_wrong, wrong, 4, cudaMemcpyDeviceToHost));
	EXPECT(host_wrong == 0);
	printf("wrong words: %u\n", host_wrong);
	return finish();
}
