/* SPDX-License-Identifier: Apache-2.0 */
/* The client's hooks for cudacommon/: see cudacommon/interface.h. */
#include "client/conn/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/memory/array.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/module/function.h"
#include "client/cuda/module/launch.h"
#include "cudacommon/graph.h"
#include "cudacommon/interface.h"

CUresult ckt_cudacommon_unsupported(const char *what, bool *once)
{
	return ckt_call_unsupported(what, once);
}

CUresult ckt_cudacommon_initialized(void)
{
	return ckt_client_device_count() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult ckt_cudacommon_device(CUdevice device)
{
	CUresult result;
	return ckt_client_device_get(device, &result) ? CUDA_SUCCESS : result;
}

CUresult ckt_cudacommon_context(uint64_t *ret_context)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		*ret_context = context->object.id;
	return result;
}

uint64_t ckt_cudacommon_context_now(void)
{
	return ckt_call_context;
}

CUresult ckt_cudacommon_context_check(CUcontext handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_CONTEXT)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_cudacommon_event_check(CUevent handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_EVENT)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_cudacommon_kernel(struct ckt_kernel_spec *spec)
{
	CUresult result = ckt_client_function_resolve(spec->handle, &spec->function);
	if (!result)
		result = ckt_client_launch_check(
			spec->function, spec->grid, spec->block, spec->shared_bytes);
	if (result)
		return result;
	spec->param_count = spec->function->param_count;
	spec->param_bytes = spec->function->param_bytes;
	return CUDA_SUCCESS;
}

void ckt_cudacommon_kernel_param(
	const struct ckt_kernel_spec *spec, unsigned i, size_t *ret_offset, size_t *ret_size)
{
	*ret_offset = spec->function->param_offsets[i];
	*ret_size = spec->function->param_sizes[i];
}

CUresult ckt_cudacommon_kernel_packed(const void *packed, size_t size)
{
	return ckt_client_host_map_params(packed, size);
}

bool ckt_cudacommon_is_kernel(CUfunction handle)
{
	return ckt_handle_kind(ckt_handle_id(handle)) == CKT_KIND_KERNEL;
}

bool ckt_cudacommon_on_device(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && ckt_range_reaches_device(&range);
}

bool ckt_cudacommon_is_reached(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && !ckt_range_kind_is_device(range.kind) &&
		range.mapped;
}

bool ckt_cudacommon_is_known(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range);
}

CUresult ckt_cudacommon_array_box(CUarray handle, const size_t at[3], const size_t extent[3])
{
	const struct ckt_array *array = ckt_client_array_find(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	return ckt_client_array_holds(array, at[0], at[1], at[2], extent[0], extent[1], extent[2])
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_cudacommon_managed(uint64_t address, uint64_t *ret_base, uint64_t *ret_size)
{
	struct ckt_client_range range;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ckt_range_find(address, &range) || range.kind != CKT_RANGE_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_base = range.base;
	*ret_size = range.size;
	return CUDA_SUCCESS;
}

bool ckt_cudacommon_is_memory(uint64_t address, uint64_t size)
{
	return ckt_range_is_device(address, size);
}

unsigned ckt_cudacommon_element_bytes(CUarray_format format, unsigned channels)
{
	struct ckt_array_element element;
	return ckt_array_element(format, channels, &element) ? element.bytes : 0;
}
