/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/vmm.c: memory that the program maps itself: what is taken away needs no
 * answer, and what does not fit does not travel.
 */
#include <string.h>
#include <unistd.h>

#include "relay.h"

enum { MIB2 = 2 << 20 };

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};

static void test_addresses(void)
{
	CUdeviceptr at = 0;
	COST(cuMemAddressReserve(&at, 2 * MIB2, 0, 0, 0), CUDA_SUCCESS, 1, 0);
	IS(at % MIB2, 0);
	LOCAL(cuMemAddressFree(at, MIB2), BAD); /* as a whole */
	LOCAL(cuMemAddressFree(at + MIB2, MIB2), BAD);
	COST(cuMemAddressFree(at, 2 * MIB2), CUDA_SUCCESS, 0, 1);
	LOCAL(cuMemAddressFree(at, 2 * MIB2), BAD);
	static const struct {
		size_t size, alignment;
		unsigned flags;
	} wrong[] = {
		{0, 0, 0}, {MIB2 / 2, 0, 0}, {MIB2 + 1, 0, 0}, {MIB2, 3 * MIB2, 0}, {MIB2, 0, 1}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuMemAddressReserve(
			      &at, wrong[i].size, wrong[i].alignment, 0, wrong[i].flags),
			BAD);
	LOCAL(cuMemAddressReserve(NULL, MIB2, 0, 0, 0), BAD);
}

static void test_mappings(void)
{
	CUdeviceptr at = 0;
	CUmemGenericAllocationHandle handle = 0, again = 0;
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	unsigned long long flags = 77;
	MUST(cuMemAddressReserve(&at, 2 * MIB2, 0, 0, 0), CUDA_SUCCESS);
	COST(cuMemCreate(&handle, MIB2, &on_device, 0), CUDA_SUCCESS, 1, 0);
	/* another size than its */
	LOCAL(cuMemMap(at, 2 * MIB2, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	LOCAL(cuMemMap(at + 2 * MIB2, MIB2, 0, handle, 0), BAD);
	LOCAL(cuMemMap(at + 4096, MIB2, 0, handle, 0), BAD);
	LOCAL(cuMemMap(at, MIB2, 0, handle + 1, 0), BAD);
	LOCAL(cuMemMap(at, MIB2, 0, handle, 1), BAD);
	COST(cuMemMap(at, MIB2, 0, handle, 0), CUDA_SUCCESS, 1, 0);
	LOCAL(cuMemMap(at, MIB2, 0, handle, 0), BAD); /* there is something */
	LOCAL(cuMemGetAccess(&flags, &access.location, at), CUDA_SUCCESS);
	CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = access.location.id};
	LOCAL(cuMemGetAccess(&flags, &host, at), BAD);
	IS(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	LOCAL(cuMemSetAccess(at, 2 * MIB2, &access, 1), BAD); /* half of it is not mapped */
	LOCAL(cuMemSetAccess(at, MIB2, &access, 0), BAD);
	LOCAL(cuMemSetAccess(at, MIB2, NULL, 1), BAD);
	COST(cuMemSetAccess(at, MIB2, &access, 1), CUDA_SUCCESS, 1, 0);
	LOCAL(cuMemGetAccess(&flags, &access.location, at), CUDA_SUCCESS);
	IS(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	IS(cuMemsetD32(at, 5, 4), CUDA_SUCCESS);
	IS(word_at(at + 12), 5);
	/* The handle can go first: the mapping keeps the memory, and brings it back. */
	LOCAL(cuMemRelease(handle), CUDA_SUCCESS);
	LOCAL(cuMemRelease(handle), BAD);
	LOCAL(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 4096)), CUDA_SUCCESS);
	IS(again, handle);
	LOCAL(cuMemRelease(again), CUDA_SUCCESS);
	LOCAL(cuMemAddressFree(at, 2 * MIB2), BAD);
	LOCAL(cuMemUnmap(at, MIB2 / 2), BAD);
	COST(cuMemUnmap(at, MIB2), CUDA_SUCCESS, 0, 2); /* and its last owner is gone */
	LOCAL(cuMemUnmap(at, MIB2), CUDA_SUCCESS);      /* nothing is there */
	LOCAL(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at), BAD);
	LOCAL(cuMemGetAccess(&flags, &access.location, at), BAD);
	IS(cuMemAddressFree(at, 2 * MIB2), CUDA_SUCCESS);
}

static void test_properties(void)
{
	size_t granularity = 0;
	CUmemGenericAllocationHandle handle = 0;
	CUmemAllocationProp got;
	const CUmemAllocationType pinned = CU_MEM_ALLOCATION_TYPE_PINNED;
	const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	const struct {
		CUmemAllocationProp prop;
		int result;
	} cases[] = {
		{{.type = CU_MEM_ALLOCATION_TYPE_INVALID}, BAD},
		{{.type = pinned, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 7}},
			CUDA_ERROR_INVALID_DEVICE},
		{{.type = pinned, .location = {CU_MEM_LOCATION_TYPE_HOST, 0}},
			CUDA_ERROR_NOT_SUPPORTED},
		{{.type = pinned,
			 .location = here,
			 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC},
			CUDA_ERROR_NOT_SUPPORTED},
		{{.type = pinned, .location = here, .allocFlags.gpuDirectRDMACapable = 1},
			CUDA_ERROR_NOT_SUPPORTED},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		LOCAL(cuMemCreate(&handle, MIB2, &cases[i].prop, 0), cases[i].result);
		LOCAL(cuMemGetAllocationGranularity(
			      &granularity, &cases[i].prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
			cases[i].result);
	}
	LOCAL(cuMemGetAllocationGranularity(
		      &granularity, &on_device, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
		CUDA_SUCCESS);
	IS(granularity, MIB2);
	LOCAL(cuMemGetAllocationGranularity(
		      &granularity, &on_device, (CUmemAllocationGranularity_flags)7),
		BAD);
	LOCAL(cuMemCreate(&handle, 4096, &on_device, 0), BAD);
	LOCAL(cuMemCreate(&handle, MIB2, &on_device, 1), BAD);
	LOCAL(cuMemCreate(NULL, MIB2, &on_device, 0), BAD);
	MUST(cuMemCreate(&handle, MIB2, &on_device, 0), CUDA_SUCCESS);
	LOCAL(cuMemGetAllocationPropertiesFromHandle(&got, handle), CUDA_SUCCESS);
	YES(got.type == on_device.type && got.location.id == 0 &&
		got.requestedHandleTypes == on_device.requestedHandleTypes);
	LOCAL(cuMemGetAllocationPropertiesFromHandle(NULL, handle), BAD);
	COST(cuMemRelease(handle), CUDA_SUCCESS, 0, 1);
	LOCAL(cuMemGetAllocationPropertiesFromHandle(&got, handle), BAD);
	/* The soft GPU cannot compress, and so it is told; other kinds there are none. */
	CUmemAllocationProp compressible = on_device;
	compressible.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
	MUST(cuMemCreate(&handle, MIB2, &compressible, 0), CUDA_SUCCESS);
	LOCAL(cuMemGetAllocationPropertiesFromHandle(&got, handle), CUDA_SUCCESS);
	IS(got.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_NONE);
	IS(cuMemRelease(handle), CUDA_SUCCESS);
	compressible.allocFlags.compressionType = 2;
	LOCAL(cuMemGetAllocationGranularity(
		      &granularity, &compressible, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
		CUDA_SUCCESS);
	LOCAL(cuMemCreate(&handle, MIB2, &compressible, 0), BAD);
}

static void test_shared(void)
{
	CUmemGenericAllocationHandle handle, same = 0;
	int fd = -1, ends[2];
	MUST(cuMemCreate(&handle, MIB2, &on_device, 0), CUDA_SUCCESS);
	COST(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_SUCCESS, 1, 0);
	COST(cuMemImportFromShareableHandle(
		     &same, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_SUCCESS, 1, 0);
	IS(same, handle); /* the session's own */
	LOCAL(cuMemRelease(same), CUDA_SUCCESS);
	close(fd);
	LOCAL(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), BAD);
	LOCAL(cuMemExportToShareableHandle(
		      &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1),
		BAD);
	LOCAL(cuMemExportToShareableHandle(
		      NULL, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		BAD);
	/* Files that are none of ours. */
	MUST(pipe(ends), 0);
	const int wrong[] = {-1, ends[0]};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)wrong[i],
			      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
			BAD);
	close(ends[0]);
	close(ends[1]);
	IS(cuMemRelease(handle), CUDA_SUCCESS);
}

UNIT_SUITE(vmm, {"addresses", test_addresses}, {"mappings", test_mappings},
	{"properties", test_properties}, {"shared", test_shared})
