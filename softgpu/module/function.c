/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: attributes and parameters. */
#include "softgpu/module/function.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/module/library.h"
#include "softgpu/module/module.h"
#include "softgpu/ptx/ptx.h"

void ckt_soft_function_defaults(
	struct ckt_soft_function *function, const struct ckt_soft_device *device)
{
	function->capability = device->arch->capability;
	const struct ckt_ptx_function_info *info = function->info;
	int left = (48 << 10) - (int)info->static_shared_bytes;
	atomic_store(&function->max_dynamic_shared, left > 0 ? left : 0);
	atomic_store(&function->carveout, -1);
	for (int i = 0; i < 3; i++)
		atomic_store(&function->cluster_set[i], (int)info->cluster[i]);
}

void ckt_soft_function_copy_settings(
	struct ckt_soft_function *to, const struct ckt_soft_function *from)
{
	atomic_store(&to->max_dynamic_shared, atomic_load(&from->max_dynamic_shared));
	atomic_store(&to->carveout, atomic_load(&from->carveout));
	atomic_store(&to->non_portable_cluster, atomic_load(&from->non_portable_cluster));
	atomic_store(&to->cluster_policy, atomic_load(&from->cluster_policy));
	for (int i = 0; i < 3; i++)
		atomic_store(&to->cluster_set[i], atomic_load(&from->cluster_set[i]));
}

CUresult ckt_soft_function_get(CUfunction handle, struct ckt_soft_context *context,
	struct ckt_soft_function **ret_function)
{
	if (!handle)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_function = ckt_soft_object_get(handle, CKT_SOFT_FUNCTION);
	if (*ret_function)
		return CUDA_SUCCESS;
	/* Since CUDA 12, a kernel is accepted in place of a function. */
	return ckt_soft_kernel_function((CUkernel)handle, context, ret_function);
}

CUresult ckt_soft_function_usable(const struct ckt_ptx_function_info *info, atomic_bool *said)
{
	if (!info->refusal)
		return CUDA_SUCCESS;
	if (!atomic_exchange(said, true))
		ckt_soft_say_once("kernel %s cannot run: %s", info->name, info->refusal);
	return CUDA_ERROR_INVALID_PTX;
}

/*
 * The interpreter's register count is an estimate.  It must not contradict the maximum number of
 * threads of a block.
 */
static int registers(const struct ckt_ptx_function_info *info)
{
	unsigned most = 65536 / (info->max_threads ? info->max_threads : 1024);
	return (int)(info->registers < most ? info->registers : most > 255 ? 255 : most);
}

CUresult ckt_soft_function_attribute(
	const struct ckt_soft_function *function, CUfunction_attribute attribute, int *ret_value)
{
	const struct ckt_ptx_function_info *info = function->info;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret_value = (int)info->max_threads;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*ret_value = (int)info->static_shared_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*ret_value = (int)info->const_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*ret_value = (int)info->local_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret_value = registers(info);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		/* The virtual architecture and not the language version, as with a real driver. */
		*ret_value = (int)info->target;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret_value = (int)function->capability;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		*ret_value = 0;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret_value = atomic_load(&function->max_dynamic_shared);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*ret_value = atomic_load(&function->carveout);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*ret_value = 0;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*ret_value = atomic_load(&function->cluster_set[attribute -
			CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*ret_value = atomic_load(&function->non_portable_cluster);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*ret_value = atomic_load(&function->cluster_policy);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_soft_function_set_attribute(struct ckt_soft_function *function,
	const struct ckt_soft_device *device, CUfunction_attribute attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 ||
			value > (int)(device->arch->shared_optin << 10) -
					(int)function->info->static_shared_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		atomic_store(&function->max_dynamic_shared, value);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		atomic_store(&function->carveout, value);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		/* A cluster size in the code cannot be changed. */
		if (value < 0 || function->info->cluster[0])
			return value < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_PERMITTED;
		atomic_store(&function->cluster_set[attribute -
				     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH],
			value);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		atomic_store(&function->non_portable_cluster, value != 0);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		if (value < 0 || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
			return CUDA_ERROR_INVALID_VALUE;
		atomic_store(&function->cluster_policy, value);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ---- API */

static CUresult enter_function(CUfunction handle, struct ckt_soft_function **ret_function)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	return result == CUDA_SUCCESS ? ckt_soft_function_get(handle, context, ret_function)
				      : result;
}

CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(hfunc, &function);
	if (result != CUDA_SUCCESS)
		return result;
	result = pi ? ckt_soft_function_attribute(function, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
	ckt_soft_object_put(&function->object);
	return result;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(hfunc, &function);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_set_attribute(
		function, function->module->context->device, attrib, value);
	ckt_soft_object_put(&function->object);
	return result;
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(hfunc, &function);
	if (result != CUDA_SUCCESS)
		return result;
	ckt_soft_object_put(&function->object);
	return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(hfunc, &function);
	if (result != CUDA_SUCCESS)
		return result;
	ckt_soft_object_put(&function->object);
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		? CUDA_ERROR_INVALID_VALUE
		: CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(hfunc, &function);
	if (result != CUDA_SUCCESS)
		return result;
	if (hmod)
		*hmod = ckt_soft_object_handle(&function->module->object);
	ckt_soft_object_put(&function->object);
	return hmod ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(hfunc, &function);
	if (result != CUDA_SUCCESS)
		return result;
	if (name)
		*name = function->info->name;
	ckt_soft_object_put(&function->object);
	return name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuFuncGetParamInfo(
	CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct ckt_soft_function *function;
	CUresult result = enter_function(func, &function);
	if (result != CUDA_SUCCESS)
		return result;
	if (!paramOffset || paramIndex >= function->info->n_params) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		*paramOffset = function->info->params[paramIndex].offset_bytes;
		if (paramSize)
			*paramSize = function->info->params[paramIndex].size_bytes;
	}
	ckt_soft_object_put(&function->object);
	return result;
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct ckt_soft_function *f;
	CUresult result = enter_function(function, &f);
	if (result != CUDA_SUCCESS)
		return result;
	if (state)
		*state = CU_FUNCTION_LOADING_STATE_LOADED;
	ckt_soft_object_put(&f->object);
	return state ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
	struct ckt_soft_function *f;
	CUresult result = enter_function(function, &f);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_usable(f->info, &f->refusal_said);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_function_load(f);
	ckt_soft_object_put(&f->object);
	return result;
}
