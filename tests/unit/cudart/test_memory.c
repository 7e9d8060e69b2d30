/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cudart/memory.c: allocations: nothing of no bytes, which the driver refuses; what a
 * pointer is.
 */
#include "files.h"

static void test_allocations(void)
{
	void *memory = (void *)77, *host = (void *)77;
	size_t pitch = 0, free_bytes = 0, total = 0;
	struct cudaPitchedPtr box = {0};
	IS(cudaMalloc(&memory, 0), OK);
	YES(!memory);
	IS(cudaMalloc(NULL, 4), BAD);
	memory = (void *)77;
	IS(cudaMalloc(&memory, (size_t)1 << 40), cudaErrorMemoryAllocation);
	YES(!memory);
	IS(cudaGetLastError(), cudaErrorMemoryAllocation);
	IS(cudaFree(NULL), OK);
	IS(cudaFree((void *)0x1234), BAD);
	IS(cudaMallocPitch(&memory, &pitch, 100, 3), OK);
	YES(pitch >= 100 && pitch % 16 == 0);
	IS(cudaFree(memory), OK);
	IS(cudaMallocPitch(&memory, &pitch, 0, 3), OK);
	YES(!memory && pitch == 0);
	IS(cudaMallocPitch(&memory, NULL, 4, 4), BAD);
	IS(cudaMalloc3D(&box, (struct cudaExtent){100, 4, 2}), OK);
	YES(box.ptr && box.xsize == 100 && box.ysize == 4 && box.pitch >= 100);
	IS(cudaFree(box.ptr), OK);
	IS(cudaMalloc3D(&box, (struct cudaExtent){1, SIZE_MAX, 2}), cudaErrorMemoryAllocation);
	IS(cudaMalloc3D(NULL, (struct cudaExtent){1, 1, 1}), BAD);
	IS(cudaMallocManaged(&memory, 0, cudaMemAttachGlobal), OK);
	YES(!memory);
	IS(cudaMallocManaged(NULL, 4, cudaMemAttachGlobal), BAD);
	IS(cudaMallocHost(&host, 0), OK);
	YES(!host);
	IS(cudaFreeHost(NULL), OK);
	IS(cudaHostAlloc(&host, 4, 1u << 10), BAD);
	IS(cudaHostAlloc(NULL, 4, 0), BAD);
	IS(cudaHostRegister(NULL, 4, 0), BAD);
	IS(cudaHostRegister(&total, 0, 0), BAD);
	IS(cudaHostRegister(&total, 4, 1u << 10), BAD);
	IS(cudaMallocAsync(NULL, 4, NULL), BAD);
	IS(cudaMallocAsync(&memory, 0, NULL), OK);
	YES(!memory);
	IS(cudaFreeAsync(NULL, NULL), OK);
	IS(cudaMemGetInfo(&free_bytes, &total), OK);
	YES(free_bytes > 0 && free_bytes <= total);
	cudaGetLastError();
}

static void test_pointers(void)
{
	struct cudaPointerAttributes is;
	uint32_t *memory = files_memory(4, 0), local = 0;
	void *host = NULL, *there = NULL;
	unsigned flags = 0;
	IS(cudaPointerGetAttributes(&is, memory + 1), OK);
	YES(is.type == cudaMemoryTypeDevice && is.device == 0 && is.devicePointer == memory + 1);
	MUST(cudaHostAlloc(&host, 64, cudaHostAllocPortable), OK);
	IS(cudaPointerGetAttributes(&is, host), OK);
	YES(is.type == cudaMemoryTypeHost && is.hostPointer == host);
	IS(cudaHostGetDevicePointer(&there, host, 0), OK);
	YES(there != NULL);
	IS(cudaHostGetDevicePointer(NULL, host, 0), BAD);
	IS(cudaHostGetFlags(&flags, host), OK);
	YES(flags & cudaHostAllocPortable && flags & cudaHostAllocMapped);
	IS(cudaHostGetFlags(&flags, NULL), BAD);
	/* What nobody allocated is no error. */
	IS(cudaPointerGetAttributes(&is, &local), OK);
	YES(is.type == cudaMemoryTypeUnregistered && is.device == cudaInvalidDeviceId &&
		!is.devicePointer && is.hostPointer == &local);
	IS(cudaPointerGetAttributes(NULL, memory), BAD);
	IS(cudaFreeHost(host), OK);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(memory, {"allocations", test_allocations}, {"pointers", test_pointers})
