/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of modules.  The client fetches all that a launch needs once, with the handle. */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/module/function.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/module/library.h"
#include "client/cuda/module/module.h"
#include "client/trace/recorder.h"
#include "cudacommon/interface.h"

/* One allocation holds the struct, its arrays and its name, so that one free() releases all. */
static struct ckt_function *make(const struct ckt_module_get_function_res *res, const char *name)
{
	uint32_t n = res->param_offsets_len;
	struct ckt_function *f = calloc(1, sizeof *f + 2 * n * sizeof(uint32_t) + strlen(name) + 1);
	if (!f)
		return NULL;
	f->param_count = n;
	f->param_offsets = (uint32_t *)(f + 1);
	f->param_sizes = f->param_offsets + n;
	f->name = strcpy((char *)(f->param_sizes + n), name);
	for (uint32_t i = 0; i < n; i++) {
		f->param_offsets[i] = ckt_xdr_u32(res->param_offsets_xdr, i);
		f->param_sizes[i] = ckt_xdr_u32(res->param_sizes_xdr, i);
		if (f->param_offsets[i] + f->param_sizes[i] > f->param_bytes)
			f->param_bytes = f->param_offsets[i] + f->param_sizes[i];
	}
	for (uint32_t i = 0;
		i < res->attribute_values_len && i < res->attribute_results_len && i < 32; i++) {
		if (ckt_xdr_u32(res->attribute_results_xdr, i) == CUDA_SUCCESS) {
			f->attributes[i] = (int32_t)ckt_xdr_u32(res->attribute_values_xdr, i);
			f->attribute_valid |= 1u << i;
		}
	}
	return f;
}

static CUresult fetch(
	struct ckt_module *module, const char *name, struct ckt_function **ret_function)
{
	struct ckt_reply reply;
	struct ckt_module_get_function_res res;
	/*
	 * The call needs the id, so a placeholder takes a slot of the table first.  The final
	 * record replaces it.
	 */
	struct ckt_cudacommon_object *placeholder = calloc(1, sizeof *placeholder);
	if (!placeholder)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t id = ckt_cudacommon_object_add(placeholder, CKT_KIND_FUNCTION);
	if (!id) {
		free(placeholder);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	uint64_t saved = ckt_call_context;
	ckt_client_context_use(module->object.context);
	CUresult result = CKT_WAITED(module_get_function, MODULE_GET_FUNCTION, CKT_CALL_F_NUMBERED,
		&reply, .module = module->object.id, .id = id, .name = name,
		.name_len = (uint32_t)strlen(name));
	ckt_client_context_use(saved);
	if (result) {
		ckt_cudacommon_object_remove(placeholder);
		return result;
	}
	struct ckt_function *f = NULL;
	if (!ckt_module_get_function_res_get(&reply.results, &res) ||
		res.param_offsets_len != res.param_sizes_len)
		result = CUDA_ERROR_UNKNOWN;
	else if (!(f = make(&res, name)))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	ckt_call_reply_release(&reply);
	if (result) {
		ckt_cudacommon_object_remove(placeholder);
		return result;
	}
	f->object.context = module->object.context;
	f->module = module->object.id;
	ckt_cudacommon_object_add_fixed(&f->object, id);
	free(placeholder);
	if (ckt_trace_get())
		ckt_trace_kernel(id, name);
	*ret_function = f;
	return CUDA_SUCCESS;
}

CUresult ckt_client_module_function(
	struct ckt_module *module, const char *name, struct ckt_function **ret_function)
{
	CUresult result = CUDA_SUCCESS;
	if (!*name || strlen(name) > 65536)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&module->lock);
	struct ckt_function *f = module->functions;
	while (f && strcmp(f->name, name) != 0)
		f = f->next;
	if (!f) {
		result = fetch(module, name, &f);
		if (!result) {
			f->next = module->functions;
			module->functions = f;
		}
	}
	pthread_mutex_unlock(&module->lock);
	if (!result)
		*ret_function = f;
	return result;
}

CUresult ckt_client_function_resolve(CUfunction handle, struct ckt_function **ret_function)
{
	uint64_t id = ckt_handle_id(handle);
	struct ckt_function *f = ckt_cudacommon_object_find(id, CKT_KIND_FUNCTION);
	if (f) {
		*ret_function = f;
		return CUDA_SUCCESS;
	}
	if (ckt_cudacommon_object_find(id, CKT_KIND_KERNEL))
		return ckt_client_kernel_function(id, ret_function);
	return ckt_client_device_count() ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_INITIALIZED;
}

CKT_EXPORT CUresult cuFuncGetAttribute(
	int *value, CUfunction_attribute attribute, CUfunction handle)
{
	struct ckt_function *f;
	if (!value || (unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	if (!(f->attribute_valid >> attribute & 1))
		return CUDA_ERROR_INVALID_VALUE;
	*value = f->attributes[attribute];
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
	struct ckt_function *f;
	if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	CKT_ROUTE_CONTEXT(f->object.context);
	result = CKT_WAITED(function_set_attribute, FUNCTION_SET_ATTRIBUTE, CKT_CALL_F_NUMBERED,
		NULL, .function = f->object.id, .attribute = attribute, .value = value);
	if (!result) {
		f->attributes[attribute] = value;
		f->attribute_valid |= 1u << attribute;
	}
	return result;
}

CKT_EXPORT CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	struct ckt_function *f;
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	CKT_ROUTE_CONTEXT(result ? 0 : f->object.context);
	if (!result)
		ckt_client_occupancy_forget(f->object.id);
	return result ? result
		      : CKT_BATCHED(function_set_cache_config, FUNCTION_SET_CACHE_CONFIG,
				.function = f->object.id, .config = config);
}

CKT_EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction handle)
{
	struct ckt_function *f;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (!result)
		*module = (CUmodule)(uintptr_t)f->module;
	return result;
}

CKT_EXPORT CUresult cuFuncGetName(const char **name, CUfunction handle)
{
	struct ckt_function *f;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (!result)
		*name = f->name;
	return result;
}

CKT_EXPORT CUresult cuFuncGetParamInfo(
	CUfunction handle, size_t index, size_t *offset, size_t *size)
{
	struct ckt_function *f;
	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (result)
		return result;
	if (index >= f->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = f->param_offsets[index];
	if (size)
		*size = f->param_sizes[index];
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
	struct ckt_function *f;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (!result)
		*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return result;
}

CKT_EXPORT CUresult cuFuncLoad(CUfunction handle)
{
	struct ckt_function *f;
	return ckt_client_function_resolve(handle, &f);
}
