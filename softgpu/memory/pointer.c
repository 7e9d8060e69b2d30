/* What an address is. */
#include <string.h>

#include "softgpu/soft.h"

/* Writes the attribute; CUDA_ERROR_INVALID_VALUE where the address has none such. */
static CUresult get_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr,
	const struct ckt_soft_range *range)
{
	bool mapped_vmm = range->kind == CKT_SOFT_RANGE_MAPPED;
	bool host =
		(range->kind == CKT_SOFT_RANGE_HOST || range->kind == CKT_SOFT_RANGE_REGISTERED);
	bool managed = (range->kind == CKT_SOFT_RANGE_MANAGED ||
		(range->kind == CKT_SOFT_RANGE_GLOBAL &&
			ckt_soft_module_managed_at(range->context, ptr)));
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data =
			range->context ? ckt_soft_context_handle(range->context) : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && !managed)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)data = managed || range->sync_memops;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = range->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = range->device->ordinal;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = range->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = range->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)data = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		/* 64 bits wide, as documented; only exportable physical memory has any. */
		*(unsigned long long *)data =
			mapped_vmm ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: {
		struct ckt_soft_context *context;
		CUresult result = ckt_soft_enter(&context);
		if (result != CUDA_SUCCESS)
			return result;
		*(unsigned *)data = mapped_vmm ? range->access[context->device->ordinal]
					       : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return CUDA_SUCCESS;
	}
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = (CUmemoryPool)(uintptr_t)range->pool;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	bool found = ckt_soft_range_find(ptr, &range);
	if (!data || attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		return data ? CKT_SOFT_UNSUPPORTED("CU_POINTER_ATTRIBUTE_P2P_TOKENS")
			    : CUDA_ERROR_INVALID_VALUE;
	return found ? get_attribute(data, attribute, ptr, &range) : CUDA_ERROR_INVALID_VALUE;
}

static size_t attribute_size(CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return 4;
	default:
		return 8;
	}
}

CUresult CUDAAPI cuPointerGetAttributes(
	unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numAttributes; i++)
		if (!data[i] || attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
			attributes[i] > CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID ||
			attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
			return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_range range;
	bool found = ckt_soft_range_find(ptr, &range);
	for (unsigned i = 0; i < numAttributes; i++) {
		/*
		 * What an unknown address has no answer for is zero here, and no error; an ordinal
		 * is then -2, as documented.
		 */
		memset(data[i], 0, attribute_size(attributes[i]));
		if ((!found ||
			    get_attribute(data[i], attributes[i], ptr, &range) != CUDA_SUCCESS) &&
			attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
	}
	return CUDA_SUCCESS;
}

static void set_sync_memops(struct ckt_soft_range *range, void *data)
{
	range->sync_memops = *(const int *)data;
}

CUresult CUDAAPI cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
		!ckt_soft_range_find(ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	int on = *(const unsigned *)value != 0;
	/* Synchronous copies always wait here, so the flag only has to be remembered. */
	ckt_soft_range_visit(ptr, 1, set_sync_memops, &on);
	return CUDA_SUCCESS;
}
