/* Pointer attributes, answered from the client's own record of the program's memory. */
#include "client/cuda/internal.h"
#include "client/cuda/memory/range.h"

static bool is_device(const struct ckt_client_range *range)
{
	return ckt_range_kind_is_device(range->kind);
}

static bool is_managed(const struct ckt_client_range *range)
{
	return range->kind == CKT_RANGE_MANAGED ||
		(range->kind == CKT_RANGE_GLOBAL && range->flags);
}

static bool is_mappable(const struct ckt_client_range *range)
{
	return range->kind == CKT_RANGE_HOST_ALLOC && range->owner;
}

static CUresult get(void *data, CUpointer_attribute attribute, uint64_t address,
	const struct ckt_client_range *range)
{
	bool device = is_device(range);
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)(uintptr_t)range->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		/* The address is the same; mapping waits for somebody who uses it. */
		if (!device && !is_mappable(range) && !ckt_registered_side(&address, 1))
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (device && !is_managed(range))
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)data = range->sync || range->kind == CKT_RANGE_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = range->buffer_id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = is_managed(range);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)data = range->kind == CKT_RANGE_DEVICE && !range->pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = range->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = range->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = range->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)data =
			device || is_mappable(range) || ckt_registered_side(&address, 1);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = (CUmemoryPool)(uintptr_t)range->pool;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CKT_EXPORT CUresult cuPointerGetAttribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct ckt_client_range range;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ckt_range_find(pointer, &range))
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * Who asks for this address alone may well put it where no launch shows it; the runtime
	 * asks for everything at once.
	 */
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER &&
		(is_mappable(&range) || range.kind == CKT_RANGE_HOST_REGISTERED)) {
		uint64_t address = pointer;
		CUresult result = ckt_client_host_reach(&address);
		if (result)
			return result;
	}
	return get(data, attribute, pointer, &range);
}

/* An unknown pointer is no error here: every attribute gets its empty value. */
static void get_empty(void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(uint64_t *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		break;
	default:
		*(unsigned *)data = 0;
		break;
	}
}

CKT_EXPORT CUresult cuPointerGetAttributes(
	unsigned int n, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer)
{
	struct ckt_client_range range;
	if (!n || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	bool known = ckt_range_find(pointer, &range);
	for (unsigned i = 0; i < n; i++) {
		if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
			return CUDA_ERROR_INVALID_VALUE;
		if (!known || get(data[i], attributes[i], pointer, &range))
			get_empty(data[i], attributes[i]);
	}
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
		!ckt_range_is_device(pointer, 1))
		return CUDA_ERROR_INVALID_VALUE;
	return ckt_range_set_sync(pointer, *(const unsigned *)value != 0)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}
