/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries and kernels: images without a context.  Each context that uses a library loads its
 * image as a module.  Only the client knows libraries and kernels; the worker knows only modules
 * and functions.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/module/library.h"
#include "base/fork.h"
#include "client/conn/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/module/function.h"
#include "client/cuda/module/module.h"
#include "client/cuda/module/module_image.h"
#include "cudacommon/jit.h"

enum { CONTEXTS_MAX = 64 };

struct loaded {
	uint64_t context;
	uint64_t module;
};

struct library {
	struct ckt_cudacommon_object object;
	pthread_mutex_t lock;
	/* A copy, or the program's own image if the program promises to keep it. */
	void *data;
	size_t size;
	bool owned;
	unsigned n_options;
	CUjit_option *options;
	void **values;
	struct loaded loaded[CONTEXTS_MAX];
	unsigned loaded_count;
	struct kernel *kernels;
};

struct kernel {
	struct ckt_cudacommon_object object;
	struct kernel *next;
	uint64_t library;
	char name[];
};

static void renew(struct ckt_cudacommon_object *object, void *unused)
{
	(void)unused;
	((struct library *)object)->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void forked(void)
{
	ckt_cudacommon_object_each(CKT_KIND_LIBRARY, renew, NULL);
}
CKT_IN_CHILD(forked);

static struct library *find_library(CUlibrary handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_LIBRARY);
}

static struct kernel *find_kernel(uint64_t id)
{
	return ckt_cudacommon_object_find(id, CKT_KIND_KERNEL);
}

/*
 * Finds the library's module in the current context; loads it first if necessary.  Precondition:
 * library->lock held.
 */
static CUresult module_in(struct library *library, struct ckt_module **ret_module)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	struct loaded *place = NULL;
	for (unsigned i = 0; i < library->loaded_count; i++) {
		*ret_module =
			ckt_cudacommon_object_find(library->loaded[i].module, CKT_KIND_MODULE);
		if (*ret_module && library->loaded[i].context == context->object.id)
			return CUDA_SUCCESS;
		/* The module's context was destroyed or reset. */
		if (!*ret_module)
			place = &library->loaded[i];
	}
	if (!place && library->loaded_count == CONTEXTS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUmodule module;
	result = ckt_client_module_load(library->data, library->size, library->n_options,
		library->options, library->values, &module);
	if (result)
		return result;
	if (!place)
		place = &library->loaded[library->loaded_count++];
	*place = (struct loaded){.context = context->object.id, .module = ckt_handle_id(module)};
	*ret_module = ckt_cudacommon_object_find(ckt_handle_id(module), CKT_KIND_MODULE);
	return CUDA_SUCCESS;
}

/*
 * Finds the module in the current context.  If the thread has none, the function uses the primary
 * context of the first device.
 */
static CUresult any_module(struct library *library, struct ckt_module **ret_module)
{
	struct ckt_context *context;
	CUcontext primary;
	uint64_t saved = ckt_call_context;
	CUresult result = ckt_client_context_current(&context);
	if (result) {
		result = cuDevicePrimaryCtxRetain(&primary, 0);
		if (result)
			return result;
		ckt_client_context_use(ckt_handle_id(primary));
	}
	pthread_mutex_lock(&library->lock);
	result = module_in(library, ret_module);
	pthread_mutex_unlock(&library->lock);
	ckt_client_context_use(saved);
	return result;
}

static void free_library(struct library *library)
{
	if (library->owned)
		free(library->data);
	free(library->options);
	free(library->values);
	library->data = NULL;
	library->options = NULL;
	library->values = NULL;
}

static CUresult load(CUlibrary *ret_library, const void *data, size_t size, bool copy,
	CUjit_option *options, void **values, unsigned n_options)
{
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	struct library *library = calloc(1, sizeof *library);
	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&library->lock, NULL);
	library->size = size;
	library->owned = copy;
	library->data = copy ? malloc(size) : (void *)data;
	CUjit_option *kept = malloc((n_options + 1) * sizeof *kept);
	void **kept_values = malloc((n_options + 1) * sizeof *kept_values);
	library->options = kept;
	library->values = kept_values;
	if (!library->data || !kept || !kept_values ||
		!ckt_cudacommon_object_add(&library->object, CKT_KIND_LIBRARY)) {
		free_library(library);
		free(library);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (copy)
		memcpy(library->data, data, size);
	/*
	 * With a current context, an invalid image is an error now, as in CUDA.  Otherwise its first
	 * use returns the error.
	 */
	struct ckt_module *module;
	CUresult result = CUDA_SUCCESS;
	if (ckt_call_context) {
		library->options = options;
		library->values = values;
		library->n_options = n_options;
		result = any_module(library, &module);
	}
	/*
	 * The options for logs and times point to memory for this call only, so later loads omit
	 * them.
	 */
	unsigned n_kept = 0;
	for (unsigned i = 0; i < n_options; i++) {
		if (ckt_jit_writes(options[i]))
			continue;
		kept[n_kept] = options[i];
		kept_values[n_kept++] = values[i];
	}
	library->options = kept;
	library->values = kept_values;
	library->n_options = n_kept;
	if (result) {
		free_library(library);
		ckt_cudacommon_object_remove(&library->object);
	} else {
		*ret_library = (CUlibrary)(uintptr_t)library->object.id;
	}
	return result;
}

CKT_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
	CUjit_option *jit_options, void **jit_values, unsigned int n_jit, CUlibraryOption *options,
	void **values, unsigned int n_options)
{
	const void *data;
	size_t size;
	bool preserved = false;
	if (!library || !code || (n_jit && (!jit_options || !jit_values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n_options && options; i++)
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			preserved = !values || values[i];
	CUresult result = ckt_client_image_extent(code, &data, &size);
	return result ? result
		      : load(library, data, size, !preserved, jit_options, jit_values, n_jit);
}

CKT_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path,
	CUjit_option *jit_options, void **jit_values, unsigned int n_jit, CUlibraryOption *options,
	void **values, unsigned int n_options)
{
	void *data;
	size_t size;
	if (!library || !path)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_file_read(path, &data, &size);
	if (result)
		return result;
	result = cuLibraryLoadData(library, data, jit_options, jit_values, n_jit, NULL, NULL, 0);
	free(data);
	return result;
}

CKT_EXPORT CUresult cuLibraryUnload(CUlibrary handle)
{
	struct library *library = find_library(handle);
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < library->loaded_count; i++) {
		struct ckt_module *module =
			ckt_cudacommon_object_find(library->loaded[i].module, CKT_KIND_MODULE);
		if (module)
			ckt_client_module_unload(module);
	}
	for (struct kernel *k = library->kernels; k;) {
		struct kernel *next = k->next;
		ckt_cudacommon_object_remove(&k->object);
		k = next;
	}
	free_library(library);
	ckt_cudacommon_object_remove(&library->object);
	return CUDA_SUCCESS;
}

/* Finds or adds the library's kernel of that name.  The name must exist in the image. */
static CUresult intern_kernel(struct library *library, const char *name, CUkernel *ret_kernel)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&library->lock);
	struct kernel *k = library->kernels;
	while (k && strcmp(k->name, name) != 0)
		k = k->next;
	if (!k) {
		k = calloc(1, sizeof *k + strlen(name) + 1);
		if (k) {
			strcpy(k->name, name);
			k->library = library->object.id;
			if (ckt_cudacommon_object_add(&k->object, CKT_KIND_KERNEL)) {
				k->next = library->kernels;
				library->kernels = k;
			} else {
				free(k);
				k = NULL;
			}
		}
		if (!k)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&library->lock);
	if (!result)
		*ret_kernel = (CUkernel)(uintptr_t)k->object.id;
	return result;
}

CKT_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name)
{
	struct ckt_module *module;
	struct ckt_function *function;
	struct library *library = find_library(handle);
	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = any_module(library, &module);
	if (!result)
		result = ckt_client_module_function(module, name, &function);
	return result ? result : intern_kernel(library, name, kernel);
}

CKT_EXPORT CUresult cuLibraryGetModule(CUmodule *ret_module, CUlibrary handle)
{
	struct ckt_module *module;
	struct library *library = find_library(handle);
	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&library->lock);
	CUresult result = module_in(library, &module);
	pthread_mutex_unlock(&library->lock);
	if (!result)
		*ret_module = (CUmodule)(uintptr_t)module->object.id;
	return result;
}

CKT_EXPORT CUresult cuLibraryGetGlobal(
	CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name)
{
	CUmodule module;
	CUresult result = cuLibraryGetModule(&module, handle);
	return result ? result : cuModuleGetGlobal_v2(address, size, module, name);
}

CKT_EXPORT CUresult cuLibraryGetManaged(
	CUdeviceptr *ret_address, size_t *ret_size, CUlibrary handle, const char *name)
{
	CUmodule module;
	CUdeviceptr address;
	size_t size;
	bool managed;
	CUresult result = cuLibraryGetModule(&module, handle);
	if (!result)
		result = ckt_client_module_variable(module, name, &address, &size, &managed);
	if (result || !managed)
		return result ? result : CUDA_ERROR_NOT_FOUND;
	if (ret_address)
		*ret_address = address;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

/*
 * Functions with one address for host and device need a CPU and a GPU that share an address space.
 * No library here has such functions.
 */
CKT_EXPORT CUresult cuLibraryGetUnifiedFunction(
	void **ret_function, CUlibrary handle, const char *symbol)
{
	if (!ret_function || !symbol)
		return CUDA_ERROR_INVALID_VALUE;
	return find_library(handle) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CKT_EXPORT CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
	struct ckt_module *module;
	struct library *library = find_library(handle);
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = any_module(library, &module);
	return result ? result
		      : cuModuleGetFunctionCount(count, (CUmodule)(uintptr_t)module->object.id);
}

struct kernel_list {
	struct library *library;
	CUkernel *kernels;
	unsigned count;
};

static CUresult collect(void *data, const char *name)
{
	struct kernel_list *list = data;
	CUresult result = intern_kernel(list->library, name, &list->kernels[list->count]);
	if (!result)
		list->count++;
	return result;
}

CKT_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary handle)
{
	struct ckt_module *module;
	struct library *library = find_library(handle);
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = any_module(library, &module);
	struct kernel_list list = {.library = library, .kernels = kernels};
	return result ? result : ckt_client_module_each_function(module, n, collect, &list);
}

/* ---- Kernels */

CUresult ckt_client_kernel_function(uint64_t id, struct ckt_function **ret_function)
{
	struct ckt_module *module;
	struct kernel *kernel = find_kernel(id);
	struct library *library =
		kernel ? ckt_cudacommon_object_find(kernel->library, CKT_KIND_LIBRARY) : NULL;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&library->lock);
	CUresult result = module_in(library, &module);
	pthread_mutex_unlock(&library->lock);
	return result ? result : ckt_client_module_function(module, kernel->name, ret_function);
}

CKT_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel handle)
{
	struct ckt_function *f;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_kernel_function(ckt_handle_id(handle), &f);
	if (!result)
		*function = (CUfunction)(uintptr_t)f->object.id;
	return result;
}

/* The attributes of a kernel are those of its function in the device's primary context. */
static CUresult function_on(CUkernel handle, CUdevice device, CUfunction *ret_function)
{
	CUcontext primary;
	uint64_t saved = ckt_call_context;
	CUresult result = cuDevicePrimaryCtxRetain(&primary, device);
	if (result)
		return result;
	struct ckt_context *current;
	if (ckt_client_context_current(&current) || current->device != device)
		ckt_client_context_use(ckt_handle_id(primary));
	result = cuKernelGetFunction(ret_function, handle);
	ckt_client_context_use(saved);
	cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

CKT_EXPORT CUresult cuKernelGetAttribute(
	int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice device)
{
	CUfunction function;
	CUresult result = function_on(handle, device, &function);
	return result ? result : cuFuncGetAttribute(value, attribute, function);
}

CKT_EXPORT CUresult cuKernelSetAttribute(
	CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device)
{
	CUfunction function;
	CUresult result = function_on(handle, device, &function);
	return result ? result : cuFuncSetAttribute(function, attribute, value);
}

CKT_EXPORT CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device)
{
	CUfunction function;
	CUresult result = function_on(handle, device, &function);
	return result ? result : cuFuncSetCacheConfig(function, config);
}

CKT_EXPORT CUresult cuKernelGetName(const char **name, CUkernel handle)
{
	struct kernel *kernel = find_kernel(ckt_handle_id(handle));
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel handle)
{
	struct kernel *kernel = find_kernel(ckt_handle_id(handle));
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = (CUlibrary)(uintptr_t)kernel->library;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuKernelGetParamInfo(
	CUkernel handle, size_t index, size_t *offset, size_t *size)
{
	struct ckt_module *module;
	struct ckt_function *function;
	struct kernel *kernel = find_kernel(ckt_handle_id(handle));
	struct library *library =
		kernel ? ckt_cudacommon_object_find(kernel->library, CKT_KIND_LIBRARY) : NULL;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = any_module(library, &module);
	if (!result)
		result = ckt_client_module_function(module, kernel->name, &function);
	return result ? result
		      : cuFuncGetParamInfo(
				(CUfunction)(uintptr_t)function->object.id, index, offset, size);
}
