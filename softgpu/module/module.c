/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: parses PTX, places its globals in device memory, and creates handles for its kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/module/module.h"
#include "cudacommon/jit.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/context/waits.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/range.h"
#include "softgpu/module/fatbin.h"
#include "softgpu/module/function.h"
#include "softgpu/module/jit.h"
#include "softgpu/ptx/ptx.h"

CUresult ckt_soft_code_load(const struct ckt_soft_texts *texts, unsigned capability,
	struct ckt_ptx_module **ret_code, char *log, size_t log_size_bytes)
{
	struct ckt_ptx_load_options options = {.target = capability};
	switch (ckt_ptx_module_load(
		texts->texts, texts->n, &options, log, log_size_bytes, ret_code)) {
	case CKT_PTX_OK:
		return CUDA_SUCCESS;
	case CKT_PTX_WRONG_TARGET:
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	case CKT_PTX_NO_MEMORY:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		/*
		 * A real driver reports undefined and duplicate symbols like other errors in PTX.
		 */
		return CUDA_ERROR_INVALID_PTX;
	}
}

static void module_free(struct ckt_soft_object *object)
{
	struct ckt_soft_module *module = (struct ckt_soft_module *)object;
	if (module->code)
		ckt_ptx_module_destroy(module->code);
	struct ckt_soft_range range;
	if (module->globals_base &&
		ckt_soft_range_remove(module->globals_base, 1u << CKT_SOFT_RANGE_GLOBAL, &range))
		ckt_soft_memory_release(&range);
	ckt_soft_object_put(&module->context->object);
	free(module->functions);
	free(module);
}

static void function_free(struct ckt_soft_object *object)
{
	struct ckt_soft_function *function = (struct ckt_soft_function *)object;
	struct ckt_soft_range range;
	if (function->code_base &&
		ckt_soft_range_remove(function->code_base, 1u << CKT_SOFT_RANGE_GLOBAL, &range))
		ckt_soft_memory_release(&range);
	ckt_soft_object_put(&function->module->object);
	free(function);
}

/* Allocates one block for all globals, each aligned to at least 256 bytes, as in a real driver. */
static CUresult place_globals(struct ckt_soft_module *module)
{
	uint64_t end = 0;
	size_t n = ckt_ptx_module_global_count(module->code);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < n; i++) {
			struct ckt_ptx_global *global = ckt_ptx_module_global(module->code, i);
			uint64_t align = global->align_bytes > 256 ? global->align_bytes : 256;
			end = (end + align - 1) / align * align;
			if (pass)
				global->address = module->globals_base + end;
			end += global->size_bytes;
			if (global->size_bytes > 1ULL << 46 || end > 1ULL << 46)
				return CUDA_ERROR_OUT_OF_MEMORY;
		}
		if (pass || end == 0)
			break;
		CUresult result = ckt_soft_memory_alloc(
			module->context, end, CKT_SOFT_RANGE_GLOBAL, &module->globals_base);
		if (result != CUDA_SUCCESS)
			return result;
		end = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult make_functions(struct ckt_soft_module *module)
{
	size_t n = ckt_ptx_module_function_count(module->code);
	module->functions = calloc(n ? n : 1, sizeof(*module->functions));
	if (!module->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct ckt_soft_function *function = calloc(1, sizeof(*function));
		if (!function)
			return CUDA_ERROR_OUT_OF_MEMORY;
		function->code = ckt_ptx_module_function(module->code, i);
		function->info = ckt_ptx_function_info(function->code);
		ckt_soft_function_defaults(function, module->context->device);
		CUresult result =
			ckt_soft_object_init(&function->object, CKT_SOFT_FUNCTION, function_free);
		if (result != CUDA_SUCCESS) {
			free(function);
			return result;
		}
		function->module = module;
		ckt_soft_object_ref(&module->object);
		module->functions[module->n_functions++] = function;
	}
	return CUDA_SUCCESS;
}

CUresult ckt_soft_module_create(struct ckt_soft_context *context, struct ckt_ptx_module *code,
	bool from_library, struct ckt_soft_module **ret_module)
{
	ckt_soft_waits_load(context);
	struct ckt_soft_module *module = calloc(1, sizeof(*module));
	if (!module) {
		ckt_ptx_module_destroy(code);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->context = context;
	module->code = code;
	module->from_library = from_library;
	ckt_soft_object_ref(&context->object);
	CUresult result = ckt_soft_object_init(&module->object, CKT_SOFT_MODULE, module_free);
	if (result != CUDA_SUCCESS) {
		module_free(&module->object);
		return result;
	}
	pthread_mutex_lock(&context->lock);
	module->next = context->modules;
	module->link = &context->modules;
	if (module->next)
		module->next->link = &module->next;
	context->modules = module;
	pthread_mutex_unlock(&context->lock);
	result = place_globals(module);
	if (result == CUDA_SUCCESS) {
		ckt_ptx_module_bind(code);
		result = make_functions(module);
	}
	if (result != CUDA_SUCCESS) {
		ckt_soft_module_close(module);
		return result;
	}
	*ret_module = module;
	return CUDA_SUCCESS;
}

void ckt_soft_module_close(struct ckt_soft_module *module)
{
	if (!ckt_soft_object_remove(&module->object))
		return;
	struct ckt_soft_context *context = module->context;
	pthread_mutex_lock(&context->lock);
	*module->link = module->next;
	if (module->next)
		module->next->link = module->link;
	pthread_mutex_unlock(&context->lock);
	for (size_t i = 0; i < module->n_functions; i++) {
		ckt_soft_object_remove(&module->functions[i]->object);
		ckt_soft_object_put(&module->functions[i]->object);
	}
	ckt_soft_object_put(&module->object);
}

CUresult ckt_soft_module_global(struct ckt_soft_module *module, const char *name, bool managed_only,
	CUdeviceptr *ret_address, size_t *ret_size)
{
	/*
	 * Variables of static linkage are found as well, because nvcc's host code asks for them by
	 * name. If several texts were linked, a visible variable takes precedence.
	 */
	struct ckt_ptx_global *found = NULL;
	size_t n = ckt_ptx_module_global_count(module->code);
	for (size_t i = 0; i < n; i++) {
		struct ckt_ptx_global *global = ckt_ptx_module_global(module->code, i);
		if (strcmp(global->name, name) || (managed_only && !global->managed))
			continue;
		if (!found || (global->is_public && !found->is_public))
			found = global;
	}
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	if (ret_address)
		*ret_address = found->address;
	if (ret_size)
		*ret_size = found->size_bytes;
	return CUDA_SUCCESS;
}

bool ckt_soft_module_managed_at(struct ckt_soft_context *context, uint64_t address)
{
	bool found = false;
	pthread_mutex_lock(&context->lock);
	for (struct ckt_soft_module *module = context->modules; module && !found;
		module = module->next) {
		size_t n = ckt_ptx_module_global_count(module->code);
		for (size_t i = 0; i < n && !found; i++) {
			const struct ckt_ptx_global *global =
				ckt_ptx_module_global(module->code, i);
			found = global->managed && address - global->address < global->size_bytes;
		}
	}
	pthread_mutex_unlock(&context->lock);
	return found;
}

struct ckt_soft_function *ckt_soft_module_function(struct ckt_soft_module *module, const char *name)
{
	for (size_t i = 0; i < module->n_functions; i++)
		if (strcmp(module->functions[i]->info->name, name) == 0)
			return module->functions[i];
	return NULL;
}

/* ---- Lazy loading */

static bool loading_is(const char *mode)
{
	const char *told = getenv("CUDA_MODULE_LOADING");
	return told && strcmp(told, mode) == 0;
}

bool ckt_soft_is_eager(void)
{
	static atomic_int answer = -1;
	if (atomic_load(&answer) < 0)
		atomic_store(&answer, loading_is("EAGER"));
	return atomic_load(&answer);
}

/*
 * With CUDA_MODULE_LOADING=LAZY, code takes device memory when it is loaded.  As with a real
 * driver, the code then lies among the variables, in the order of first uses.
 */
static bool code_takes_memory(void)
{
	static atomic_int answer = -1;
	if (atomic_load(&answer) < 0)
		atomic_store(&answer, loading_is("LAZY"));
	return atomic_load(&answer);
}

CUresult ckt_soft_function_load(struct ckt_soft_function *function)
{
	enum { CODE_BYTES = 4096 };
	CUresult result = CUDA_SUCCESS;
	if (!atomic_load_explicit(&function->waited, memory_order_relaxed) &&
		!atomic_exchange(&function->waited, true))
		ckt_soft_waits_load(function->module->context);
	if (!code_takes_memory() || atomic_load_explicit(&function->loaded, memory_order_acquire))
		return CUDA_SUCCESS;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	if (!atomic_load(&function->loaded)) {
		result = ckt_soft_memory_alloc(function->module->context, CODE_BYTES,
			CKT_SOFT_RANGE_GLOBAL, &function->code_base);
		atomic_store(&function->loaded, result == CUDA_SUCCESS);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- API */

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_cudacommon_jit jit;
	result = ckt_jit_read(&jit, numOptions, options, optionValues);
	if (result != CUDA_SUCCESS)
		return result;
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	result = ckt_soft_jit_check(&jit, context->device->arch->capability);
	if (result != CUDA_SUCCESS)
		return result;
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts texts = {0};
	struct ckt_ptx_module *code;
	struct ckt_soft_module *made;
	unsigned capability = context->device->arch->capability;
	result = ckt_soft_image_texts(image, SIZE_MAX, capability, &texts, log, sizeof(log));
	if (result == CUDA_SUCCESS)
		result = ckt_soft_code_load(&texts, capability, &code, log, sizeof(log));
	if (result == CUDA_SUCCESS)
		result = ckt_soft_module_create(context, code, false, &made);
	ckt_soft_texts_fini(&texts);
	ckt_soft_jit_finish(&jit, log);
	if (result == CUDA_SUCCESS)
		*module = ckt_soft_object_handle(&made->object);
	else if (*log && !ckt_soft_jit_tells(&jit, result))
		ckt_soft_say_once("module not loaded: %s", log);
	return result;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	void *data;
	size_t size;
	result = ckt_soft_file_read(fname, &data, &size);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuModuleLoadDataEx(module, data, 0, NULL, NULL);
	free(data);
	return result;
}

/* The module of a call, with a reference. */
static CUresult enter_module(CUmodule handle, struct ckt_soft_module **ret_module)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_module = ckt_soft_object_get(handle, CKT_SOFT_MODULE);
	return *ret_module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
	struct ckt_soft_module *module;
	CUresult result = enter_module(hmod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	if (module->from_library) {
		result = CUDA_ERROR_NOT_PERMITTED;
	} else {
		result = ckt_soft_context_synchronize(module->context);
		ckt_soft_module_close(module);
	}
	ckt_soft_object_put(&module->object);
	return result;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct ckt_soft_module *module;
	CUresult result = enter_module(hmod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_function *function = NULL;
	if (!hfunc || !name)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!(function = ckt_soft_module_function(module, name)))
		result = CUDA_ERROR_NOT_FOUND;
	else if (!(result = ckt_soft_function_usable(function->info, &function->refusal_said)))
		*hfunc = ckt_soft_object_handle(&function->object);
	ckt_soft_object_put(&module->object);
	return result;
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct ckt_soft_module *module;
	CUresult result = enter_module(mod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	if (count)
		*count = (unsigned)module->n_functions;
	ckt_soft_object_put(&module->object);
	return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct ckt_soft_module *module;
	CUresult result = enter_module(mod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	if (!functions && numFunctions)
		result = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; result == CUDA_SUCCESS && i < numFunctions && i < module->n_functions;
		i++)
		functions[i] = ckt_soft_object_handle(&module->functions[i]->object);
	ckt_soft_object_put(&module->object);
	return result;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct ckt_soft_module *module;
	CUresult result = enter_module(hmod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	result = name && (dptr || bytes) ? ckt_soft_module_global(module, name, false, dptr, bytes)
					 : CUDA_ERROR_INVALID_VALUE;
	ckt_soft_object_put(&module->object);
	return result;
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = ckt_soft_is_eager() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}
