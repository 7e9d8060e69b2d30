/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools.  The library's allocator holds the blocks (interface.h).  This file has the
 * handles, a device's current pool, and CUDA's immediate checks.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "cudacommon/capture.h"

/* Bit d: the access of device d, other than the pool's own. */
struct access {
	_Atomic uint64_t readers, writers;
};

struct ckt_cudacommon_pool {
	struct ckt_cudacommon_object object;
	CUdevice device;
	struct access access;
};

static struct access default_access[CKT_DEVICES_MAX];

static _Atomic uint64_t current_pools[CKT_DEVICES_MAX]; /* 0: the default pool */

/* The device of a pool's handle; false if the handle is invalid. */
static bool find(CUmemoryPool handle, CUdevice *ret_device)
{
	uint64_t id = ckt_handle_id(handle);
	uint32_t slot = ckt_handle_slot(id);
	if (slot > 0 && id == ckt_handle_default_pool(slot - 1) &&
		!ckt_cudacommon_device((CUdevice)(slot - 1))) {
		*ret_device = (CUdevice)(slot - 1);
		return true;
	}
	struct ckt_cudacommon_pool *pool = ckt_cudacommon_object_find(id, CKT_KIND_POOL);
	if (pool)
		*ret_device = pool->device;
	return pool != NULL;
}

static uint64_t current_pool(CUdevice device)
{
	uint64_t id = atomic_load(&current_pools[device]);
	return id && ckt_cudacommon_object_find(id, CKT_KIND_POOL)
		? id
		: ckt_handle_default_pool((unsigned)device);
}

static CUmemoryPool as_handle(uint64_t id)
{
	return (CUmemoryPool)(uintptr_t)id;
}

/* ---- A device's pools */

CKT_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_cudacommon_device(device);
	if (!result)
		*pool = as_handle(ckt_handle_default_pool((unsigned)device));
	return result;
}

CKT_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_cudacommon_device(device);
	if (!result)
		*pool = as_handle(current_pool(device));
	return result;
}

CKT_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUdevice of;
	CUresult result = ckt_cudacommon_device(device);
	if (result)
		return result;
	if (!find(pool, &of) || of != device)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&current_pools[device], ckt_handle_id(pool));
	return CUDA_SUCCESS;
}

/* The device of a location; only ordinary device memory comes from pools here. */
static CUresult read_location(
	const CUmemLocation *location, CUmemAllocationType type, CUdevice *ret_device)
{
	static bool once;
	if (!location ||
		(type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return ckt_cudacommon_unsupported(
			"memory pools of the host or of managed memory", &once);
	CUresult result = ckt_cudacommon_device(location->id);
	if (result)
		return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : result;
	*ret_device = location->id;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUdevice device = 0;
	CUresult result = read_location(location, type, &device);
	return result ? result : cuDeviceGetDefaultMemPool(pool, device);
}

CKT_EXPORT CUresult cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUdevice device = 0;
	CUresult result = read_location(location, type, &device);
	return result ? result : cuDeviceGetMemPool(pool, device);
}

CKT_EXPORT CUresult cuMemSetMemPool(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUdevice device = 0;
	CUresult result = read_location(location, type, &device);
	return result ? result : cuDeviceSetMemPool(device, pool);
}

/* ---- Pools of the program */

CKT_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
	static bool once_shared, once_usage;
	CUdevice device = 0;
	if (!ret_pool || !props)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)props->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = read_location(&props->location, props->allocType, &device);
	if (result)
		return result;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return ckt_cudacommon_unsupported(
			"memory pools shared with other processes", &once_shared);
	if (props->usage)
		return ckt_cudacommon_unsupported(
			"memory pools for the decompression engine", &once_usage);
	struct ckt_cudacommon_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->device = device;
	pool->object.context = ckt_handle_primary((unsigned)device);
	if (!ckt_cudacommon_object_add(&pool->object, CKT_KIND_POOL)) {
		free(pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = ckt_pool_make(pool->object.id, device, props->maxSize);
	if (result)
		ckt_cudacommon_object_remove(&pool->object);
	else
		*ret_pool = as_handle(pool->object.id);
	return result;
}

CKT_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
	struct ckt_cudacommon_pool *pool =
		ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_POOL);
	/* A default pool cannot be destroyed. */
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	/* If it was its device's current pool, the default pool is current again. */
	CUresult result = ckt_pool_unmake(pool->object.id);
	if (!result)
		ckt_cudacommon_object_remove(&pool->object);
	return result;
}

CKT_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CUdevice device = 0;
	return find(pool, &device) ? ckt_pool_trim(ckt_handle_id(pool), keep)
				   : CUDA_ERROR_INVALID_VALUE;
}

static bool is_flag(CUmemPool_attribute attribute)
{
	return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
		attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
		attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CKT_EXPORT CUresult cuMemPoolSetAttribute(
	CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	CUdevice device = 0;
	uint64_t number;
	if (!value || !find(pool, &device))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		number = *(cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		/* A high mark can only be reset. */
		number = *(cuuint64_t *)value;
		if (number)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		if (!is_flag(attribute))
			return CUDA_ERROR_INVALID_VALUE;
		number = *(int *)value != 0;
		break;
	}
	return ckt_pool_set(ckt_handle_id(pool), attribute, number);
}

CKT_EXPORT CUresult cuMemPoolGetAttribute(
	CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	CUdevice device = 0;
	uint64_t number;
	if (!value || !find(pool, &device))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_pool_get(ckt_handle_id(pool), attribute, &number);
	if (result)
		return result;
	if (is_flag(attribute))
		*(int *)value = (int)number;
	else
		*(cuuint64_t *)value = number;
	return CUDA_SUCCESS;
}

/*
 * ---- Access.  Every device that can reach a pool's memory can access it; the access rights are
 * only stored for queries.
 */

static struct access *access_of(CUmemoryPool handle)
{
	struct ckt_cudacommon_pool *pool =
		ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_POOL);
	return pool ? &pool->access : &default_access[ckt_handle_slot(ckt_handle_id(handle)) - 1];
}

static CUresult check_access(const CUmemAccessDesc *desc, CUdevice own)
{
	int can = 1;
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_cudacommon_device(desc->location.id);
	if (result)
		return result;
	if (desc->location.id == own)
		return desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_DEVICE;
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		cuDeviceCanAccessPeer(&can, desc->location.id, own);
	return can ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CKT_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CUdevice device = 0;
	CUresult result = CUDA_SUCCESS;
	if (!find(pool, &device) || (count && !map))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		result = check_access(&map[i], device);
	for (size_t i = 0; i < count && !result; i++) {
		struct access *access = access_of(pool);
		uint64_t bit = 1ull << map[i].location.id;
		atomic_fetch_and(&access->readers, ~bit);
		atomic_fetch_and(&access->writers, ~bit);
		if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			atomic_fetch_or(map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ
					? &access->readers
					: &access->writers,
				bit);
	}
	return result;
}

CKT_EXPORT CUresult cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	CUdevice device = 0;
	if (!flags || !location || !find(pool, &device) ||
		location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_cudacommon_device(location->id);
	if (result)
		return result;
	struct access *access = access_of(pool);
	bool writes = location->id == device || atomic_load(&access->writers) >> location->id & 1;
	bool reads = atomic_load(&access->readers) >> location->id & 1;
	*flags = writes ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		: reads ? CU_MEM_ACCESS_FLAGS_PROT_READ
			: CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

/* ---- Allocation on a stream */

CKT_EXPORT CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *ret_address, size_t size, CUmemoryPool pool, CUstream stream)
{
	CUdevice device = 0;
	uint64_t id;
	struct ckt_capture_stream *capturing;
	if (!ret_address)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result)
		return result;
	if (!find(pool, &device))
		return CUDA_ERROR_INVALID_VALUE;
	if (!size) {
		*ret_address = 0;
		return CUDA_SUCCESS;
	}
	result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(
			ckt_capture_alloc(capturing, device, size, (uint64_t *)ret_address));
	return ckt_pool_alloc(ckt_handle_id(pool), device, size, id, (uint64_t *)ret_address);
}

CKT_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
	CUdevice device = 0;
	CUresult result = cuStreamGetDevice(stream, &device);
	return result
		? result
		: cuMemAllocFromPoolAsync(address, size, as_handle(current_pool(device)), stream);
}

CKT_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	struct ckt_capture_stream *capturing;
	uint64_t id;
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result)
		return result;
	if (!address)
		return CUDA_SUCCESS;
	result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(ckt_capture_free(capturing, address));
	/* Other memory never belongs to a graph, so the stream needs no work. */
	if (ckt_graph_blocks && ckt_graph_memory_free(address, &result))
		return result;
	return ckt_pool_free(address, id);
}
