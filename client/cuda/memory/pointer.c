/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer attributes, answered from the client's own record of the program's memory. */
#include "client/cuda/context/device.h"
#include "client/cuda/memory/host.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "cudacommon/interface.h"
#include "cudacommon/pointer.h"

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

/* Does not map the memory: whoever uses the address does that. */
static uint64_t device_address(uint64_t address, const struct ckt_client_range *range)
{
	if (is_device(range) || is_mappable(range) || ckt_registered_side(&address, 1))
		return address;
	return 0;
}

static struct ckt_pointer_facts facts_of(uint64_t address, const struct ckt_client_range *range)
{
	return (struct ckt_pointer_facts){.address = address,
		.device_address = device_address(address, range),
		.context = range->context,
		.base = range->base,
		.size = range->size,
		.buffer_id = range->buffer_id,
		.pool = range->pool,
		.device = range->device,
		.is_device = is_device(range),
		.is_managed = is_managed(range),
		.waits = range->sync || range->kind == CKT_RANGE_MANAGED,
		.has_ipc = range->kind == CKT_RANGE_DEVICE && !range->pool,
		.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE};
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
	 * A program that asks for this attribute alone may store the address where no launch shows
	 * it, so the memory is mapped here.  The runtime asks for all attributes at once.
	 */
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER &&
		(is_mappable(&range) || range.kind == CKT_RANGE_HOST_REGISTERED)) {
		uint64_t address = pointer;
		CUresult result = ckt_client_host_reach(&address);
		if (result)
			return result;
	}
	const struct ckt_pointer_facts facts = facts_of(pointer, &range);
	return ckt_pointer_attribute(data, attribute, &facts);
}

CKT_EXPORT CUresult cuPointerGetAttributes(
	unsigned int n, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer)
{
	struct ckt_client_range range;
	if (!n || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ckt_range_find(pointer, &range))
		return ckt_pointer_attributes(n, attributes, data, NULL);
	const struct ckt_pointer_facts facts = facts_of(pointer, &range);
	return ckt_pointer_attributes(n, attributes, data, &facts);
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
