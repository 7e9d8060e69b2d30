/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer attributes. */
#include "cudacommon/pointer.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/memory/range.h"
#include "softgpu/module/module.h"

static struct ckt_pointer_facts facts_of(CUdeviceptr address, const struct ckt_soft_range *range,
	const struct ckt_soft_context *current)
{
	bool mapped_vmm = range->kind == CKT_SOFT_RANGE_MAPPED;
	bool host =
		(range->kind == CKT_SOFT_RANGE_HOST || range->kind == CKT_SOFT_RANGE_REGISTERED);
	bool managed = (range->kind == CKT_SOFT_RANGE_MANAGED ||
		(range->kind == CKT_SOFT_RANGE_GLOBAL &&
			ckt_soft_module_managed_at(range->context, address)));
	return (struct ckt_pointer_facts){.address = address,
		.device_address = address,
		.context = range->context ? (uintptr_t)ckt_soft_context_handle(range->context) : 0,
		.base = range->base,
		.size = range->size,
		.buffer_id = range->id,
		.pool = range->pool,
		.device = range->device->ordinal,
		.is_device = !host,
		.is_managed = managed,
		.waits = managed || range->sync_memops,
		.has_block = true,
		/* Only exportable physical memory has handle types. */
		.handle_types = mapped_vmm ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
		.access = mapped_vmm ? range->access[current->device->ordinal]
				     : CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
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
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_pointer_facts facts = facts_of(ptr, &range, context);
	return ckt_pointer_attribute(data, attribute, &facts);
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
	struct ckt_soft_range range;
	if (!ckt_soft_range_find(ptr, &range))
		return ckt_pointer_attributes(numAttributes, attributes, data, NULL);
	const struct ckt_pointer_facts facts = facts_of(ptr, &range, context);
	return ckt_pointer_attributes(numAttributes, attributes, data, &facts);
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
	/* Synchronous copies always wait here, so the driver only stores the flag. */
	ckt_soft_range_visit(ptr, 1, set_sync_memops, &on);
	return CUDA_SUCCESS;
}
