/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory.  Devices access it at its host address. */
#include <sys/mman.h>

#include "softgpu/context/context.h"
#include "softgpu/context/log.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/range.h"
#include "softgpu/stream/capture.h"

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
		CU_MEMHOSTALLOC_WRITECOMBINED;
	if (!pp || (Flags & ~known))
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytesize) {
		*pp = NULL;
		return CUDA_SUCCESS;
	}
	result = ckt_soft_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	if (bytesize > SIZE_MAX - CKT_SOFT_PAGE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t bytes = ((uint64_t)bytesize + CKT_SOFT_PAGE - 1) & ~(uint64_t)(CKT_SOFT_PAGE - 1);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_soft_range range = {
		.base = (uint64_t)(uintptr_t)p,
		.size = bytesize,
		.kind = CKT_SOFT_RANGE_HOST,
		/* With unified addressing, all pinned memory is portable and mapped. */
		.flags = Flags | CU_MEMHOSTALLOC_DEVICEMAP,
		.id = ckt_soft_range_next_id(),
		.context = context,
		.device = context->device,
	};
	result = ckt_soft_memmap_set(range.base, bytes, CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE)
		? CUDA_ERROR_OUT_OF_MEMORY
		: CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_range_add(&range);
	if (result != CUDA_SUCCESS) {
		ckt_soft_memmap_set(range.base, bytes, 0);
		munmap(p, bytes);
		return result;
	}
	*pp = p;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

/* Finds the range that begins at p, waits for the work that may use it, and removes the range. */
static CUresult drop(void *p, enum ckt_soft_range_kind kind, CUresult missing)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	uint64_t address = (uint64_t)(uintptr_t)p;
	if (!ckt_soft_range_find(address, &range))
		return missing;
	if (range.kind != kind || range.base != address)
		return CUDA_ERROR_INVALID_VALUE;
	result = ckt_soft_context_synchronize(range.context);
	if (!ckt_soft_range_remove(address, 1u << kind, &range))
		return missing;
	ckt_soft_memory_release(&range);
	return result;
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
	return p ? drop(p, CKT_SOFT_RANGE_HOST, CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
	return drop(p, CKT_SOFT_RANGE_REGISTERED,
		!p ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
		CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
	uint64_t base = (uint64_t)(uintptr_t)p;
	if (!p || bytesize == 0 || (Flags & ~known) || base + bytesize < base ||
		(base + bytesize - 1) >> 47)
		return CUDA_ERROR_INVALID_VALUE;
	result = ckt_soft_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	if (Flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY))
		return CKT_SOFT_UNSUPPORTED("cuMemHostRegister with IOMEMORY or READ_ONLY");
	/*
	 * Refuse unmapped memory here; otherwise a later access kills the process.  msync finds
	 * unmapped memory without an access.
	 */
	uint64_t first = base & ~(uint64_t)(CKT_SOFT_PAGE - 1),
		 end = (base + bytesize + CKT_SOFT_PAGE - 1) & ~(uint64_t)(CKT_SOFT_PAGE - 1);
	if (msync((void *)(uintptr_t)first, end - first, MS_ASYNC))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_range range = {
		.base = base,
		.size = bytesize,
		.kind = CKT_SOFT_RANGE_REGISTERED,
		.flags = Flags | CU_MEMHOSTREGISTER_DEVICEMAP,
		.id = ckt_soft_range_next_id(),
		.context = context,
		.device = context->device,
	};
	result = ckt_soft_range_add(&range);
	if (result != CUDA_SUCCESS)
		return result == CUDA_ERROR_INVALID_VALUE
			? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
			: result;
	if (ckt_soft_memmap_set(base, bytesize, CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE)) {
		ckt_soft_range_remove(base, 1u << CKT_SOFT_RANGE_REGISTERED, &range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	if (!pdptr || Flags || !ckt_soft_range_find((uint64_t)(uintptr_t)p, &range) ||
		(range.kind != CKT_SOFT_RANGE_HOST && range.kind != CKT_SOFT_RANGE_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (CUdeviceptr)(uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	if (!pFlags || !ckt_soft_range_find((uint64_t)(uintptr_t)p, &range) ||
		(range.kind != CKT_SOFT_RANGE_HOST && range.kind != CKT_SOFT_RANGE_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = range.flags;
	return CUDA_SUCCESS;
}
