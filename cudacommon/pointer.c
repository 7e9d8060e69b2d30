/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of an address; see pointer.h. */
#include "cudacommon/pointer.h"

#include <string.h>

/* The newest attribute of CUDA 13.0; older headers do not have the name. */
enum { ATTRIBUTE_LAST = 21 };

static CUresult put_word(void *data, unsigned value)
{
	memcpy(data, &value, sizeof value);
	return CUDA_SUCCESS;
}

static CUresult put_long(void *data, uint64_t value)
{
	memcpy(data, &value, sizeof value);
	return CUDA_SUCCESS;
}

/* Writes the attributes of the allocation that contains the address. */
static CUresult put_origin(
	void *data, CUpointer_attribute attribute, const struct ckt_pointer_facts *facts)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return put_long(data, facts->context);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		return put_long(data, facts->buffer_id);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return put_word(data, (unsigned)facts->device);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return put_long(data, facts->base);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return put_long(data, facts->size);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return put_long(data, facts->pool);
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return facts->has_block ? put_long(data, facts->buffer_id)
					: CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return facts->has_block ? put_long(data, facts->base) : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return facts->has_block ? put_long(data, facts->size) : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_pointer_attribute(
	void *data, CUpointer_attribute attribute, const struct ckt_pointer_facts *facts)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return put_word(data, facts->is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return facts->device_address ? put_long(data, facts->device_address)
					     : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return facts->is_device && !facts->is_managed ? CUDA_ERROR_INVALID_VALUE
							      : put_long(data, facts->address);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return put_word(data, facts->waits);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return put_word(data, facts->is_managed);
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return put_word(data, facts->has_ipc);
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return put_word(data, 0);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return put_word(data, facts->device_address != 0);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return put_long(data, facts->handle_types);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return put_word(data, facts->access);
	default:
		return put_origin(data, attribute, facts);
	}
}

/* Writes the value for an unknown address, with the attribute's size. */
static void put_nothing(void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		put_word(data, (unsigned)-2);
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case (CUpointer_attribute)ATTRIBUTE_LAST:
		put_word(data, 0);
		break;
	default:
		put_long(data, 0);
	}
}

CUresult ckt_pointer_attributes(unsigned count, const CUpointer_attribute *attributes,
	void *const *data, const struct ckt_pointer_facts *facts)
{
	for (unsigned i = 0; i < count; i++)
		if (!data[i] || attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
			(unsigned)attributes[i] > ATTRIBUTE_LAST ||
			attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
			return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if (!facts || ckt_pointer_attribute(data[i], attributes[i], facts))
			put_nothing(data[i], attributes[i]);
	return CUDA_SUCCESS;
}
