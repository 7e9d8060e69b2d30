/*
 * Hints about managed memory.  What moves when is decided by who touches it (managed.c): they are checked as CUDA checks them, and then
 * need no work.
 */
#include "client/cuda/internal.h"

static CUresult check_range(CUdeviceptr address, size_t size)
{
	struct ckt_range range;
	if (!ckt_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!size || !ckt_range_find(address, &range) || range.kind != CKT_RANGE_MANAGED || size > range.size - (address - range.base))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult check_location(CUmemLocation location)
{
	CUresult result = CUDA_SUCCESS;
	switch (location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		ckt_device_get(location.id, &result);
		return result;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUmemLocation location_of(CUdevice device)
{
	return device == CU_DEVICE_CPU ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST} :
					 (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

CKT_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags, CUstream stream)
{
	uint64_t id;
	CUresult result = check_range(address, size);
	if (!result)
		result = flags ? CUDA_ERROR_INVALID_VALUE : check_location(location);
	return result ? result : ckt_stream_resolve(stream, &id);
}

CKT_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream)
{
	return cuMemPrefetchAsync_v2(address, size, location_of(device), 0, stream);
}

CKT_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
	CUresult result = check_range(address, size);
	if (result)
		return result;
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return CUDA_SUCCESS;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		return check_location(location);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CKT_EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device)
{
	return cuMemAdvise_v2(address, size, advice, location_of(device));
}

CKT_EXPORT CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t size, unsigned int flags)
{
	struct ckt_range range;
	uint64_t id;
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result)
		return result;
	if (!ckt_range_find(address, &range) || range.kind != CKT_RANGE_MANAGED || range.base != address || (size && size != range.size) ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE))
		return CUDA_ERROR_INVALID_VALUE;
	/* A touch waits for all of the GPU, so attached memory is never in a worse state than it asks for. */
	return CUDA_SUCCESS;
}
