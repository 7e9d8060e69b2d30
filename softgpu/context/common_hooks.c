/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of the soft GPU for cudacommon/, except executable graphs; see cudacommon/interface.h.
 */
#include "cudacommon/graph.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/array.h"
#include "softgpu/memory/copy.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/range.h"
#include "softgpu/module/function.h"
#include "softgpu/module/launch.h"
#include "softgpu/stream/stream.h"

CUresult ckt_cudacommon_unsupported(const char *what, bool *once)
{
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED))
		ckt_soft_say_once("%s is not supported", what);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult ckt_cudacommon_initialized(void)
{
	return ckt_soft_initialized();
}

CUresult ckt_cudacommon_device(CUdevice device)
{
	CUresult result = ckt_soft_initialized();
	return result != CUDA_SUCCESS || ckt_soft_device(device) ? result
								 : CUDA_ERROR_INVALID_DEVICE;
}

CUresult ckt_cudacommon_context(uint64_t *ret_context)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		*ret_context = context->object.handle;
	return result;
}

uint64_t ckt_cudacommon_context_now(void)
{
	struct ckt_soft_context *context;
	return ckt_soft_enter_faulted(&context) == CUDA_SUCCESS ? context->object.handle : 0;
}

static bool is_handle(const void *handle, enum ckt_soft_kind kind)
{
	struct ckt_soft_object *object = ckt_soft_object_get(handle, kind);
	ckt_soft_object_put(object);
	return object != NULL;
}

CUresult ckt_cudacommon_context_check(CUcontext handle)
{
	return is_handle(handle, CKT_SOFT_CONTEXT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_cudacommon_event_check(CUevent handle)
{
	return is_handle(handle, CKT_SOFT_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_stream_resolve(CUstream handle, uint64_t *ret_stream)
{
	struct ckt_soft_context *context;
	struct ckt_soft_stream *stream;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_stream = ckt_soft_stream_number(stream);
	ckt_soft_object_put(&stream->object);
	return CUDA_SUCCESS;
}

unsigned ckt_stream_flags(uint64_t number)
{
	struct ckt_soft_stream *stream =
		ckt_soft_object_get((void *)(uintptr_t)number, CKT_SOFT_STREAM);
	unsigned flags = stream ? stream->flags : 0;
	if (stream)
		ckt_soft_object_put(&stream->object);
	return flags;
}

/* ---- Parameters of nodes */

static CUresult function_of(
	const struct ckt_kernel_spec *spec, struct ckt_soft_function **ret_function)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_context_get((CUcontext)(uintptr_t)spec->context, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_get(spec->handle, context, ret_function);
	ckt_soft_object_put(&context->object);
	return result;
}

CUresult ckt_cudacommon_kernel(struct ckt_kernel_spec *spec)
{
	struct ckt_soft_function *function;
	CUresult result = function_of(spec, &function);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_usable(function->info, &function->refusal_said);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_launch_check(
			function, spec->grid, spec->block, spec->shared_bytes);
	spec->param_count = (unsigned)function->info->n_params;
	spec->param_bytes = function->info->param_bytes;
	ckt_soft_object_put(&function->object);
	return result;
}

void ckt_cudacommon_kernel_param(
	const struct ckt_kernel_spec *spec, unsigned i, size_t *ret_offset, size_t *ret_size)
{
	struct ckt_soft_function *function;
	*ret_offset = *ret_size = 0;
	if (function_of(spec, &function) != CUDA_SUCCESS)
		return;
	*ret_offset = function->info->params[i].offset_bytes;
	*ret_size = function->info->params[i].size_bytes;
	ckt_soft_object_put(&function->object);
}

CUresult ckt_cudacommon_kernel_packed(const void *packed, size_t size)
{
	(void)packed, (void)size;
	return CUDA_SUCCESS;
}

bool ckt_cudacommon_is_kernel(CUfunction handle)
{
	return is_handle(handle, CKT_SOFT_KERNEL);
}

bool ckt_cudacommon_on_device(uint64_t address)
{
	struct ckt_soft_range range;
	return ckt_soft_range_find(address, &range) && range.kind != CKT_SOFT_RANGE_HOST &&
		range.kind != CKT_SOFT_RANGE_REGISTERED;
}

bool ckt_cudacommon_is_reached(uint64_t address)
{
	return false; /* its nodes keep the side that the program specified */
}

bool ckt_cudacommon_is_known(uint64_t address)
{
	struct ckt_soft_range range;
	return ckt_soft_range_find(address, &range);
}

CUresult ckt_cudacommon_array_box(CUarray handle, const size_t at[3], const size_t extent[3])
{
	struct ckt_soft_array *array;
	struct ckt_soft_copy size = {.width = extent[0], .height = extent[1], .depth = extent[2]};
	struct ckt_soft_copy_end end;
	CUresult result = ckt_soft_array_get(handle, &array);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_array_end(array, at[0], at[1], at[2], &size, &end);
	ckt_soft_object_put(&array->object);
	return result;
}

CUresult ckt_cudacommon_managed(uint64_t address, uint64_t *ret_base, uint64_t *ret_size)
{
	struct ckt_soft_context *context;
	struct ckt_soft_range range;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS &&
		(!ckt_soft_range_find(address, &range) || range.kind != CKT_SOFT_RANGE_MANAGED))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	*ret_base = range.base;
	*ret_size = range.size;
	return CUDA_SUCCESS;
}

bool ckt_cudacommon_is_memory(uint64_t address, uint64_t size)
{
	return ckt_cudacommon_on_device(address) &&
		ckt_soft_memory_ok(address, size, CKT_SOFT_PAGE_READ);
}

unsigned ckt_cudacommon_element_bytes(CUarray_format format, unsigned channels)
{
	struct ckt_soft_format known;
	return (channels == 1 || channels == 2 || channels == 4) && ckt_soft_format(format, &known)
		? known.channel_bytes * channels
		: 0;
}
