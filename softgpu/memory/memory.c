/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: allocation, address ranges, free memory.  A device address equals the host
 * address.
 */
#include <sys/mman.h>

#include "softgpu/memory/memory.h"
#include "cudacommon/advice.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/memory/arena.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/pool.h"
#include "softgpu/memory/range.h"
#include "softgpu/memory/vmm.h"
#include "softgpu/stream/capture.h"

static uint64_t page_up(uint64_t size)
{
	return (size + CKT_SOFT_PAGE - 1) & ~(uint64_t)(CKT_SOFT_PAGE - 1);
}

CUresult ckt_soft_memory_make(struct ckt_soft_range *range)
{
	struct ckt_soft_device *device = range->device;
	if (range->size > device->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t bytes = page_up(range->size);
	CUresult result = ckt_soft_device_prepare(device);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_device_charge(device, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address = ckt_soft_arena_alloc(&device->arena, bytes);
	if (!address) {
		ckt_soft_device_uncharge(device, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->base = address;
	range->id = ckt_soft_range_next_id();
	result = ckt_soft_memmap_set(address, bytes, CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE)
		? CUDA_ERROR_OUT_OF_MEMORY
		: CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_range_add(range);
	if (result != CUDA_SUCCESS) {
		ckt_soft_memmap_set(address, bytes, 0);
		ckt_soft_arena_free(&device->arena, address, bytes);
		ckt_soft_device_uncharge(device, bytes);
	}
	return result;
}

CUresult ckt_soft_memory_alloc(struct ckt_soft_context *context, uint64_t size,
	enum ckt_soft_range_kind kind, uint64_t *ret_address)
{
	struct ckt_soft_range range = {
		.size = size, .kind = kind, .context = context, .device = context->device};
	CUresult result = ckt_soft_memory_make(&range);
	if (result == CUDA_SUCCESS)
		*ret_address = range.base;
	return result;
}

/*
 * Allocates memory for the program.  If there is none, frees what the pools keep and tries again.
 */
static CUresult alloc_for_program(struct ckt_soft_context *context, uint64_t size,
	enum ckt_soft_range_kind kind, uint64_t *ret_address)
{
	CUresult result = ckt_soft_memory_alloc(context, size, kind, ret_address);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_soft_pools_release(context->device))
		result = ckt_soft_memory_alloc(context, size, kind, ret_address);
	return result;
}

static void any_range(struct ckt_soft_range *range, void *data)
{
	(void)range;
	*(bool *)data = true;
}

/*
 * Unmarks the pages of a host range, except a first or last page that it shares with another range.
 */
static void unmark_host(uint64_t base, uint64_t size)
{
	uint64_t first = base & ~(uint64_t)(CKT_SOFT_PAGE - 1),
		 last = (base + size - 1) & ~(uint64_t)(CKT_SOFT_PAGE - 1);
	bool first_used = false, last_used = false;
	ckt_soft_range_visit(first, CKT_SOFT_PAGE, any_range, &first_used);
	ckt_soft_range_visit(last, CKT_SOFT_PAGE, any_range, &last_used);
	uint64_t from = first_used ? first + CKT_SOFT_PAGE : first,
		 to = last_used ? last : last + CKT_SOFT_PAGE;
	if (from < to)
		ckt_soft_memmap_set(from, to - from, 0);
}

void ckt_soft_memory_release(const struct ckt_soft_range *range)
{
	uint64_t bytes = page_up(range->size);
	if (range->pool)
		ckt_soft_pool_forget(range);
	switch (range->kind) {
	case CKT_SOFT_RANGE_DEVICE:
	case CKT_SOFT_RANGE_MANAGED:
	case CKT_SOFT_RANGE_GLOBAL:
	case CKT_SOFT_RANGE_HEAP:
		ckt_soft_memmap_set(range->base, bytes, 0);
		ckt_soft_arena_free(&range->device->arena, range->base, bytes);
		ckt_soft_device_uncharge(range->device, bytes);
		break;
	case CKT_SOFT_RANGE_HOST:
		ckt_soft_memmap_set(range->base, bytes, 0);
		munmap((void *)(uintptr_t)range->base, bytes);
		break;
	case CKT_SOFT_RANGE_REGISTERED:
		unmark_host(range->base, range->size);
		break;
	case CKT_SOFT_RANGE_MAPPED:
		break; /* cuMemUnmap releases it; it belongs to no context */
	}
}

bool ckt_soft_memory_ok(uint64_t address, uint64_t size, uint8_t bits)
{
	if (size == 0)
		return true;
	uint64_t last = address + size - 1;
	struct ckt_soft_range range;
	if (last < address || last >> 47 || !ckt_soft_range_find(address, &range))
		return false;
	/* Adjacent mappings count as one range; adjacent allocations do not. */
	if (range.kind != CKT_SOFT_RANGE_MAPPED && size > range.base + range.size - address)
		return false;
	uint64_t page = address >> CKT_SOFT_PAGE_SHIFT, last_page = last >> CKT_SOFT_PAGE_SHIFT;
	while (page <= last_page) {
		const uint8_t *leaf = ckt_soft_memmap[page / CKT_SOFT_LEAF_PAGES];
		if (!leaf)
			return false;
		uint64_t i = page % CKT_SOFT_LEAF_PAGES, n = CKT_SOFT_LEAF_PAGES;
		if (n - i > last_page - page + 1)
			n = i + last_page - page + 1;
		page += n - i;
		for (; i < n; i++)
			if ((leaf[i] & bits) != bits)
				return false;
	}
	return true;
}

bool ckt_soft_memory_is_device_space(uint64_t address)
{
	for (int i = 0; i < ckt_soft_device_count(); i++) {
		const struct ckt_soft_device *device = ckt_soft_device(i);
		if (device->arena_ready && address - device->arena.base < device->arena.size)
			return true;
	}
	return ckt_soft_vmm_reserved(address);
}

/* ---- API */

CUresult CUDAAPI cuMemGetInfo_v2(size_t *mem_free, size_t *total)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Both outputs are optional. */
	if (total)
		*total = context->device->total_bytes;
	if (mem_free)
		*mem_free =
			context->device->total_bytes - atomic_load(&context->device->used_bytes);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (dptr)
		*dptr = 0;
	if (!dptr || bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = ckt_soft_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address;
	result = alloc_for_program(context, bytesize, CKT_SOFT_RANGE_DEVICE, &address);
	if (result == CUDA_SUCCESS)
		*dptr = address;
	return result;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned int ElementSizeBytes)
{
	if (!dptr || !pPitch || !WidthInBytes || !Height ||
		(ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t pitch, size;
	if (__builtin_add_overflow(WidthInBytes, 511, &pitch))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pitch &= ~(size_t)511;
	if (__builtin_mul_overflow(pitch, Height, &size) || pitch > 2147483647)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = cuMemAlloc_v2(dptr, size);
	if (result == CUDA_SUCCESS)
		*pPitch = pitch;
	return result;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr || bytesize == 0 ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	result = alloc_for_program(context, bytesize, CKT_SOFT_RANGE_MANAGED, &address);
	if (result != CUDA_SUCCESS)
		return result;
	ckt_advice_forget(address, bytesize);
	*dptr = address;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	/*
	 * A NULL pointer needs no context, but the call still returns the error of a failed
	 * context.
	 */
	if (!dptr)
		return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	/* The graph keeps this memory.  The program waits for the context's work. */
	if (ckt_graph_blocks && ckt_graph_memory_free(dptr, &result))
		return result == CUDA_SUCCESS ? ckt_soft_context_synchronize(context) : result;
	struct ckt_soft_range range;
	unsigned kinds = 1u << CKT_SOFT_RANGE_DEVICE | 1u << CKT_SOFT_RANGE_MANAGED;
	if (!ckt_soft_range_find(dptr, &range) || range.base != dptr || !(kinds & 1u << range.kind))
		return CUDA_ERROR_INVALID_VALUE;
	/* Running work may use the memory; programs rely on this wait. */
	result = ckt_soft_context_synchronize(range.context);
	if (!ckt_soft_range_remove(dptr, kinds, &range))
		return CUDA_ERROR_INVALID_VALUE;
	ckt_soft_memory_release(&range);
	return result;
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	bool found = ckt_soft_range_find(dptr, &range);
	if (pbase)
		*pbase = found ? range.base : 0;
	if (psize)
		*psize = found ? range.size : 0;
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
