/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: modules that belong to no context.  Loading a library unpacks the texts for each
 * device's capability, because the program may free the image afterwards.  The first use of a
 * kernel or variable in a context makes the texts a module there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/module/library.h"
#include "cudacommon/jit.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/module/fatbin.h"
#include "softgpu/module/function.h"
#include "softgpu/module/jit.h"
#include "softgpu/module/module.h"
#include "softgpu/ptx/ptx.h"

struct instance {
	struct instance *next;
	/* only compared; ckt_soft_libraries_forget removes the instance */
	struct ckt_soft_context *context;
	struct ckt_soft_module *module; /* referenced */
};

struct ckt_soft_kernel {
	struct ckt_soft_object object;
	struct ckt_soft_library *library;  /* referenced */
	struct ckt_ptx_function_info info; /* a copy; name, params and refusal owned */
	atomic_bool refusal_said;
	/* by device: attributes set before any context has loaded the function */
	struct ckt_soft_function *settings;
};

struct ckt_soft_library {
	struct ckt_soft_object object;
	struct ckt_soft_library *next, **link; /* in `libraries` */
	struct {
		unsigned capability;
		CUresult result; /* of the unpacking */
		/* the message for the first use; owned, NULL: none */
		char *why;
		struct ckt_soft_texts texts;
	} images[16];
	size_t n_images;
	/* the loader's log has the message about the missing image */
	bool told;
	/* for the first capability and the first context; NULL after use */
	struct ckt_ptx_module *parsed;
	unsigned parsed_capability;
	struct ckt_soft_kernel **kernels;
	size_t n_kernels;
	struct instance *instances;
};

/* One lock for all libraries: loading a module in a context is rare and must happen once. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_soft_library *libraries;

static void kernel_free(struct ckt_soft_object *object)
{
	struct ckt_soft_kernel *kernel = (struct ckt_soft_kernel *)object;
	ckt_soft_object_put(&kernel->library->object);
	free((char *)kernel->info.name);
	free((struct ckt_ptx_param *)kernel->info.params);
	free((char *)kernel->info.refusal);
	free(kernel->settings);
	free(kernel);
}

static void library_free(struct ckt_soft_object *object)
{
	struct ckt_soft_library *library = (struct ckt_soft_library *)object;
	for (size_t i = 0; i < library->n_images; i++) {
		ckt_soft_texts_fini(&library->images[i].texts);
		free(library->images[i].why);
	}
	if (library->parsed)
		ckt_ptx_module_destroy(library->parsed);
	free(library->kernels);
	free(library);
}

static CUresult make_kernel(
	struct ckt_soft_library *library, const struct ckt_ptx_function_info *info)
{
	struct ckt_soft_kernel *kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size_t n_devices = (size_t)ckt_soft_device_count(),
	       params_bytes = info->n_params * sizeof(*info->params);
	struct ckt_ptx_param *params = malloc(params_bytes ? params_bytes : 1);
	kernel->library = library;
	ckt_soft_object_ref(&library->object);
	kernel->info = *info;
	kernel->info.name = strdup(info->name);
	kernel->info.params = params;
	kernel->info.refusal = info->refusal ? strdup(info->refusal) : NULL;
	kernel->settings = calloc(n_devices, sizeof(*kernel->settings));
	if (!params || !kernel->info.name || (info->refusal && !kernel->info.refusal) ||
		!kernel->settings ||
		ckt_soft_object_init(&kernel->object, CKT_SOFT_KERNEL, kernel_free) !=
			CUDA_SUCCESS) {
		kernel_free(&kernel->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (params_bytes)
		memcpy(params, info->params, params_bytes);
	for (size_t i = 0; i < n_devices; i++) {
		kernel->settings[i].info = &kernel->info;
		ckt_soft_function_defaults(&kernel->settings[i], ckt_soft_device((int)i));
	}
	library->kernels[library->n_kernels++] = kernel;
	return CUDA_SUCCESS;
}

/*
 * Unpacks the texts for every capability, and parses the first that succeeds, to report errors now.
 */
static CUresult library_fill(
	struct ckt_soft_library *library, const void *code, char *log, size_t log_size)
{
	struct ckt_soft_context *context;
	int n_devices = ckt_soft_device_count();
	int first = ckt_soft_enter_faulted(&context) == CUDA_SUCCESS ? context->device->ordinal : 0;
	CUresult error = CUDA_ERROR_NO_BINARY_FOR_GPU;
	for (int k = 0; k < n_devices; k++) {
		unsigned capability = ckt_soft_device((first + k) % n_devices)->arch->capability;
		size_t i = 0;
		while (i < library->n_images && library->images[i].capability != capability)
			i++;
		if (i < library->n_images ||
			i == sizeof(library->images) / sizeof(*library->images))
			continue;
		library->n_images++;
		library->images[i].capability = capability;
		char why[CKT_SOFT_LOG_MAX] = "";
		library->images[i].result = ckt_soft_image_texts(
			code, SIZE_MAX, capability, &library->images[i].texts, why, sizeof(why));
		library->images[i].why = *why ? strdup(why) : NULL;
		if (k == 0) {
			error = library->images[i].result;
			snprintf(log, log_size, "%s", why);
		}
		if (library->images[i].result == CUDA_SUCCESS && !library->parsed) {
			library->parsed_capability = capability;
			error = ckt_soft_code_load(&library->images[i].texts, capability,
				&library->parsed, log, log_size);
			if (error != CUDA_SUCCESS)
				return error;
		}
	}
	if (!library->parsed)
		return error;
	size_t n = ckt_ptx_module_function_count(library->parsed);
	library->kernels = calloc(n ? n : 1, sizeof(*library->kernels));
	if (!library->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		CUresult result = make_kernel(library,
			ckt_ptx_function_info(ckt_ptx_module_function(library->parsed, i)));
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

static bool is_fatbin(const void *code)
{
	uint32_t magic;
	memcpy(&magic, code, sizeof magic);
	/* a container, or the wrapper that nvcc makes */
	return magic == 0xba55ed50 || magic == 0x466243b1;
}

static void drop_kernels(struct ckt_soft_library *library)
{
	for (size_t i = 0; i < library->n_kernels; i++) {
		if (ckt_soft_object_remove(&library->kernels[i]->object))
			ckt_soft_object_put(&library->kernels[i]->object);
	}
}

/* Reports the use of a library that has no image for the device. */
static CUresult no_image(const struct ckt_soft_library *library, size_t i)
{
	if (library->images[i].result == CUDA_ERROR_NO_BINARY_FOR_GPU && library->images[i].why &&
		!library->told)
		ckt_soft_say_once("library not loaded: %s", library->images[i].why);
	return library->images[i].result;
}

/* The library's module in the context.  Precondition: library_lock is held. */
static CUresult instance_get(struct ckt_soft_library *library, struct ckt_soft_context *context,
	struct ckt_soft_module **ret_module)
{
	for (struct instance *i = library->instances; i; i = i->next) {
		if (i->context == context) {
			*ret_module = i->module;
			return CUDA_SUCCESS;
		}
	}
	unsigned capability = context->device->arch->capability;
	struct ckt_ptx_module *code = NULL;
	if (library->parsed && library->parsed_capability == capability) {
		code = library->parsed;
		library->parsed = NULL;
	}
	CUresult result = CUDA_SUCCESS;
	if (!code) {
		size_t i = 0;
		while (i < library->n_images && library->images[i].capability != capability)
			i++;
		if (i == library->n_images)
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
		char log[CKT_SOFT_LOG_MAX];
		result = no_image(library, i);
		if (result == CUDA_SUCCESS)
			result = ckt_soft_code_load(
				&library->images[i].texts, capability, &code, log, sizeof(log));
		if (result != CUDA_SUCCESS)
			return result;
	}
	struct instance *instance = calloc(1, sizeof(*instance));
	if (!instance) {
		ckt_ptx_module_destroy(code);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = ckt_soft_module_create(context, code, true, &instance->module);
	if (result != CUDA_SUCCESS) {
		free(instance);
		return result;
	}
	ckt_soft_object_ref(&instance->module->object);
	instance->context = context;
	instance->next = library->instances;
	library->instances = instance;
	for (size_t i = 0; i < library->n_kernels; i++) {
		struct ckt_soft_kernel *kernel = library->kernels[i];
		struct ckt_soft_function *function =
			ckt_soft_module_function(instance->module, kernel->info.name);
		if (function)
			ckt_soft_function_copy_settings(
				function, &kernel->settings[context->device->ordinal]);
	}
	*ret_module = instance->module;
	return CUDA_SUCCESS;
}

void ckt_soft_libraries_forget(struct ckt_soft_context *context)
{
	pthread_mutex_lock(&library_lock);
	for (struct ckt_soft_library *library = libraries; library; library = library->next) {
		for (struct instance **p = &library->instances; *p;) {
			struct instance *instance = *p;
			if (instance->context != context) {
				p = &instance->next;
				continue;
			}
			*p = instance->next;
			ckt_soft_object_put(&instance->module->object);
			free(instance);
		}
	}
	pthread_mutex_unlock(&library_lock);
}

/* ---- API */

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_cudacommon_jit jit;
	result = ckt_jit_read(&jit, numJitOptions, jitOptions, jitOptionsValues);
	if (result != CUDA_SUCCESS)
		return result;
	if (!library || !code || (numLibraryOptions && !libraryOptions))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numLibraryOptions; i++) {
		if (libraryOptions[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
			return CKT_SOFT_UNSUPPORTED(
				"cuLibraryLoadData with a table of host functions");
		if (libraryOptions[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
			return CUDA_ERROR_INVALID_VALUE;
	}
	struct ckt_soft_library *made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = ckt_soft_object_init(&made->object, CKT_SOFT_LIBRARY, library_free);
	if (result != CUDA_SUCCESS) {
		free(made);
		return result;
	}
	char log[CKT_SOFT_LOG_MAX] = "";
	result = library_fill(made, code, log, sizeof(log));
	ckt_soft_jit_finish(&jit, log);
	made->told = ckt_soft_jit_tells(&jit, CUDA_ERROR_NO_BINARY_FOR_GPU);
	/*
	 * If a fat binary has no image for the device, only its use fails, as with an H200's
	 * driver.
	 */
	if (result == CUDA_ERROR_NO_BINARY_FOR_GPU && is_fatbin(code))
		result = CUDA_SUCCESS;
	if (result != CUDA_SUCCESS) {
		if (*log && !ckt_soft_jit_tells(&jit, result))
			ckt_soft_say_once("library not loaded: %s", log);
		drop_kernels(made);
		ckt_soft_object_remove(&made->object);
		ckt_soft_object_put(&made->object);
		return result;
	}
	pthread_mutex_lock(&library_lock);
	made->next = libraries;
	made->link = &libraries;
	if (made->next)
		made->next->link = &made->next;
	libraries = made;
	struct ckt_soft_context *context;
	struct ckt_soft_module *module;
	/* A load error is reported when the program uses the library. */
	if (ckt_soft_is_eager() && ckt_soft_enter(&context) == CUDA_SUCCESS)
		instance_get(made, context, &module);
	pthread_mutex_unlock(&library_lock);
	*library = ckt_soft_object_handle(&made->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues, unsigned int numLibraryOptions)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!fileName)
		return CUDA_ERROR_INVALID_VALUE;
	void *data;
	size_t size;
	result = ckt_soft_file_read(fileName, &data, &size);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuLibraryLoadData(library, data, jitOptions, jitOptionsValues, numJitOptions,
		libraryOptions, libraryOptionValues, numLibraryOptions);
	free(data);
	return result;
}

/* The library of a call, with a reference. */
static CUresult enter_library(CUlibrary handle, struct ckt_soft_library **ret_library)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	*ret_library = ckt_soft_object_get(handle, CKT_SOFT_LIBRARY);
	return *ret_library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle)
{
	struct ckt_soft_library *library;
	CUresult result = enter_library(handle, &library);
	if (result != CUDA_SUCCESS)
		return result;
	if (ckt_soft_object_remove(&library->object)) {
		struct instance *instances;
		pthread_mutex_lock(&library_lock);
		*library->link = library->next;
		if (library->next)
			library->next->link = library->link;
		instances = library->instances;
		library->instances = NULL;
		drop_kernels(library);
		pthread_mutex_unlock(&library_lock);
		while (instances) {
			struct instance *instance = instances;
			instances = instance->next;
			ckt_soft_context_synchronize(instance->module->context);
			ckt_soft_module_close(instance->module);
			ckt_soft_object_put(&instance->module->object);
			free(instance);
		}
		ckt_soft_object_put(&library->object);
	}
	ckt_soft_object_put(&library->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary handle, const char *name)
{
	struct ckt_soft_library *library;
	CUresult result = enter_library(handle, &library);
	if (result != CUDA_SUCCESS)
		return result;
	result = pKernel && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_ERROR_NOT_FOUND && !library->kernels)
		result = no_image(library, 0);
	for (size_t i = 0; result == CUDA_ERROR_NOT_FOUND && i < library->n_kernels; i++) {
		if (strcmp(library->kernels[i]->info.name, name) == 0) {
			result = ckt_soft_function_usable(
				&library->kernels[i]->info, &library->kernels[i]->refusal_said);
			if (result == CUDA_SUCCESS)
				*pKernel = ckt_soft_object_handle(&library->kernels[i]->object);
		}
	}
	ckt_soft_object_put(&library->object);
	return result;
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct ckt_soft_library *library;
	CUresult result = enter_library(lib, &library);
	if (result != CUDA_SUCCESS)
		return result;
	if (count)
		*count = (unsigned)library->n_kernels;
	ckt_soft_object_put(&library->object);
	return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuLibraryEnumerateKernels(
	CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct ckt_soft_library *library;
	CUresult result = enter_library(lib, &library);
	if (result != CUDA_SUCCESS)
		return result;
	if (!kernels && numKernels)
		result = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; result == CUDA_SUCCESS && i < numKernels && i < library->n_kernels;
		i++)
		kernels[i] = ckt_soft_object_handle(&library->kernels[i]->object);
	ckt_soft_object_put(&library->object);
	return result;
}

/* The library's module in the current context, with a reference. */
static CUresult current_module(CUlibrary handle, struct ckt_soft_module **ret_module)
{
	struct ckt_soft_library *library;
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	result = enter_library(handle, &library);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&library_lock);
	result = instance_get(library, context, ret_module);
	if (result == CUDA_SUCCESS)
		ckt_soft_object_ref(&(*ret_module)->object);
	pthread_mutex_unlock(&library_lock);
	ckt_soft_object_put(&library->object);
	return result;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	if (!pMod)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_module *module;
	CUresult result = current_module(library, &module);
	if (result != CUDA_SUCCESS)
		return result;
	*pMod = ckt_soft_object_handle(&module->object);
	ckt_soft_object_put(&module->object);
	return CUDA_SUCCESS;
}

static CUresult get_global(CUlibrary library, const char *name, bool managed_only,
	CUdeviceptr *ret_address, size_t *ret_bytes)
{
	if (!name || (!ret_address && !ret_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_module *module;
	CUresult result = current_module(library, &module);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_module_global(module, name, managed_only, ret_address, ret_bytes);
	ckt_soft_object_put(&module->object);
	return result;
}

CUresult CUDAAPI cuLibraryGetGlobal(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return get_global(library, name, false, dptr, bytes);
}

CUresult CUDAAPI cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return get_global(library, name, true, dptr, bytes);
}

/* ---- Kernels */

CUresult ckt_soft_kernel_function(
	CUkernel handle, struct ckt_soft_context *context, struct ckt_soft_function **ret_function)
{
	pthread_mutex_lock(&library_lock);
	struct ckt_soft_kernel *kernel = ckt_soft_object_get(handle, CKT_SOFT_KERNEL);
	struct ckt_soft_module *module;
	CUresult result = kernel ? instance_get(kernel->library, context, &module)
				 : CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS) {
		*ret_function = ckt_soft_module_function(module, kernel->info.name);
		if (*ret_function)
			ckt_soft_object_ref(&(*ret_function)->object);
		else
			result = CUDA_ERROR_NOT_FOUND;
	}
	pthread_mutex_unlock(&library_lock);
	if (kernel)
		ckt_soft_object_put(&kernel->object);
	return result;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pFunc)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_function *function;
	result = ckt_soft_kernel_function(kernel, context, &function);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_usable(function->info, &function->refusal_said);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_function_load(function);
	if (result == CUDA_SUCCESS)
		*pFunc = ckt_soft_object_handle(&function->object);
	ckt_soft_object_put(&function->object);
	return result;
}

static CUresult enter_kernel(CUkernel handle, struct ckt_soft_kernel **ret_kernel)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	*ret_kernel = ckt_soft_object_get(handle, CKT_SOFT_KERNEL);
	return *ret_kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *pLib, CUkernel handle)
{
	struct ckt_soft_kernel *kernel;
	CUresult result = enter_kernel(handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (pLib)
		*pLib = ckt_soft_object_handle(&kernel->library->object);
	ckt_soft_object_put(&kernel->object);
	return pLib ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc)
{
	struct ckt_soft_kernel *kernel;
	CUresult result = enter_kernel(hfunc, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (name)
		*name = kernel->info.name;
	ckt_soft_object_put(&kernel->object);
	return name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuKernelGetParamInfo(
	CUkernel handle, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct ckt_soft_kernel *kernel;
	CUresult result = enter_kernel(handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (!paramOffset || paramIndex >= kernel->info.n_params) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		*paramOffset = kernel->info.params[paramIndex].offset_bytes;
		if (paramSize)
			*paramSize = kernel->info.params[paramIndex].size_bytes;
	}
	ckt_soft_object_put(&kernel->object);
	return result;
}

CUresult CUDAAPI cuKernelGetAttribute(
	int *pi, CUfunction_attribute attrib, CUkernel handle, CUdevice dev)
{
	struct ckt_soft_kernel *kernel;
	CUresult result = enter_kernel(handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (!ckt_soft_device(dev))
		result = CUDA_ERROR_INVALID_DEVICE;
	else
		result = pi ? ckt_soft_function_attribute(&kernel->settings[dev], attrib, pi)
			    : CUDA_ERROR_INVALID_VALUE;
	ckt_soft_object_put(&kernel->object);
	return result;
}

CUresult CUDAAPI cuKernelSetAttribute(
	CUfunction_attribute attrib, int val, CUkernel handle, CUdevice dev)
{
	struct ckt_soft_kernel *kernel;
	CUresult result = enter_kernel(handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_device *device = ckt_soft_device(dev);
	pthread_mutex_lock(&library_lock);
	result = device
		? ckt_soft_function_set_attribute(&kernel->settings[dev], device, attrib, val)
		: CUDA_ERROR_INVALID_DEVICE;
	for (struct instance *i = kernel->library->instances; result == CUDA_SUCCESS && i;
		i = i->next) {
		struct ckt_soft_function *function = i->context->device == device
			? ckt_soft_module_function(i->module, kernel->info.name)
			: NULL;
		if (function)
			result = ckt_soft_function_set_attribute(function, device, attrib, val);
	}
	pthread_mutex_unlock(&library_lock);
	ckt_soft_object_put(&kernel->object);
	return result;
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	struct ckt_soft_kernel *kernel;
	CUresult result = enter_kernel(handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	ckt_soft_object_put(&kernel->object);
	if (!ckt_soft_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_SUCCESS;
}
