/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads registered modules at the first use of one of their kernels or variables.
 *
 * A module is a CUlibrary, which works in every context.  With a driver that has no libraries, a
 * module is one CUmodule per device instead, in primary contexts only.  Such a driver has no
 * CUkernel handles either.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cudart/module.h"
#include "base/log.h"
#include "client/cudart/init.h"
#include "client/cudart/registration.h"

enum {
	FATBIN_MAGIC = 0xba55ed50,
	LOG_BYTES = 8192,
};

/*
 * Modules are unloaded only when the program closes their library.  When the process ends, the
 * driver frees everything, and unloading through a server could have to wait.  The program
 * unregisters its modules in exit handlers that it registered at start.  This library registers its
 * own exit handler later, when it loads a module, so its handler runs first.
 */
static _Atomic bool exiting;

static void note_exit(void)
{
	atomic_store(&exiting, true);
}

_Atomic uint64_t *ckt_rt_slot(ckt_rt_slots *slots, int device)
{
	_Atomic uint64_t *values = atomic_load_explicit(slots, memory_order_acquire);
	if (!values) {
		_Atomic uint64_t *made = calloc((size_t)ckt_rt_device_count, sizeof *made);
		if (!made)
			return NULL;
		if (atomic_compare_exchange_strong(slots, &values, made))
			values = made;
		else
			free(made);
	}
	return &values[device];
}

/*
 * The size of a fat binary from its own header: magic, version (16 bits), header bytes (16 bits),
 * payload bytes (64 bits).
 */
static size_t fatbin_bytes(const void *image)
{
	uint32_t magic;
	uint16_t header;
	uint64_t payload;
	memcpy(&magic, image, sizeof magic);
	memcpy(&header, (const char *)image + 6, sizeof header);
	memcpy(&payload, (const char *)image + 8, sizeof payload);
	return magic == FATBIN_MAGIC ? header + payload : 0;
}

/*
 * For a program built with -rdc=true whose linked image does not fit this device.  The program also
 * holds the parts as relocatable PTX, which this function links.  On success *ret_image is valid
 * until cuLinkDestroy(*ret_state).
 */
static CUresult link_prelinked(
	const struct ckt_rt_module *module, CUlinkState *ret_state, void **ret_image)
{
	char log[LOG_BYTES] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)sizeof log};
	CUlinkState state;
	size_t size;
	CUresult result = cuLinkCreate(2, options, values, &state);
	if (result)
		return result;
	for (const void *const *part = module->prelinked; *part && result == CUDA_SUCCESS; part++) {
		size_t bytes = fatbin_bytes(*part);
		result = bytes ? cuLinkAddData(state, CU_JIT_INPUT_FATBINARY,
					 (void *)(uintptr_t)*part, bytes, NULL, 0, NULL, NULL)
			       : CUDA_ERROR_INVALID_IMAGE;
	}
	if (result == CUDA_SUCCESS)
		result = cuLinkComplete(state, ret_image, &size);
	if (result) {
		ckt_debug("cannot link a module of -rdc=true: %d %s", (int)result, log);
		cuLinkDestroy(state);
		return result;
	}
	*ret_state = state;
	return CUDA_SUCCESS;
}

/*
 * The driver's error text about a linked image that does not fit the device.  The driver may use
 * the options as long as the library is loaded.  The text is logged only if linking the parts also
 * fails.
 */
struct ckt_rt_link_log {
	CUjit_option options[2];
	void *values[2];
	char text[LOG_BYTES];
};

static CUresult make_log(struct ckt_rt_module *module)
{
	struct ckt_rt_link_log *log = module->link_log ? module->link_log : calloc(1, sizeof *log);
	if (!log)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->link_log = log;
	log->options[0] = CU_JIT_ERROR_LOG_BUFFER;
	log->options[1] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
	log->values[0] = log->text;
	log->values[1] = (void *)(uintptr_t)sizeof log->text;
	log->text[0] = 0;
	return CUDA_SUCCESS;
}

/* Neither the image nor its parts could be loaded: logs the error once. */
static CUresult tell(struct ckt_rt_module *module, CUresult result)
{
	struct ckt_rt_link_log *log = module->link_log;
	if (result == CUDA_ERROR_NO_BINARY_FOR_GPU && log && log->text[0] && !module->told) {
		module->told = true;
		ckt_log_user("cannot load a module: %s", log->text);
	}
	return result;
}

/*
 * Loads the image that was linked at build time.  A driver may read the image only at first use, as
 * NVIDIA's does, and thus load a library without an image for the device.  So this function queries
 * the library's module, because the parts can be linked instead.
 */
static CUresult load_linked(struct ckt_rt_module *module, CUlibrary *ret_library)
{
	CUmodule there;
	CUresult result = make_log(module);
	struct ckt_rt_link_log *log = module->link_log;
	if (!result)
		result = cuLibraryLoadData(
			ret_library, module->image, log->options, log->values, 2, NULL, NULL, 0);
	if (result || cuLibraryGetModule(&there, *ret_library) != CUDA_ERROR_NO_BINARY_FOR_GPU)
		return result;
	cuLibraryUnload(*ret_library);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* Precondition: module->lock held. */
static CUresult load_library(struct ckt_rt_module *module, CUlibrary *ret_library)
{
	CUlinkState state;
	void *linked;
	if (!module->prelinked)
		return cuLibraryLoadData(ret_library, module->image, NULL, NULL, 0, NULL, NULL, 0);
	CUresult result = load_linked(module, ret_library);
	if (result != CUDA_ERROR_NO_BINARY_FOR_GPU)
		return result;
	result = link_prelinked(module, &state, &linked);
	if (result)
		return tell(module, result);
	result = cuLibraryLoadData(ret_library, linked, NULL, NULL, 0, NULL, NULL, 0);
	cuLinkDestroy(state);
	return result;
}

/* Precondition: module->lock held. */
static CUresult load_module(struct ckt_rt_module *module, CUmodule *ret_module)
{
	CUlinkState state;
	void *linked;
	if (!module->prelinked)
		return cuModuleLoadData(ret_module, module->image);
	CUresult result = make_log(module);
	if (!result)
		result = cuModuleLoadDataEx(ret_module, module->image, 2, module->link_log->options,
			module->link_log->values);
	if (result != CUDA_ERROR_NO_BINARY_FOR_GPU)
		return result;
	result = link_prelinked(module, &state, &linked);
	if (result)
		return tell(module, result);
	result = cuModuleLoadData(ret_module, linked);
	cuLinkDestroy(state);
	return result;
}

/* Loads the module as a library, or for the current device.  Exactly one result is set. */
static cudaError_t load(struct ckt_rt_module *module, CUlibrary *ret_library, CUmodule *ret_module)
{
	CUresult result = CUDA_SUCCESS;
	*ret_module = NULL;
	*ret_library = atomic_load_explicit(&module->library, memory_order_acquire);
	if (*ret_library)
		return cudaSuccess;
	if (!module->image)
		return cudaErrorInvalidKernelImage;
	pthread_mutex_lock(&module->lock);
	*ret_library = atomic_load(&module->library);
	if (!*ret_library && !atomic_load(&module->by_device) && !module->gone) {
		result = load_library(module, ret_library);
		ckt_debug("library of fat binary %p loaded: %d", module->image, (int)result);
		if (result == CUDA_SUCCESS)
			atomic_store_explicit(&module->library, *ret_library, memory_order_release);
		else
			*ret_library = NULL;
		if (result == CUDA_ERROR_NOT_SUPPORTED)
			atomic_store(&module->by_device, true);
	}
	if (atomic_load(&module->by_device) && !module->gone) {
		static bool once;
		_Atomic uint64_t *slot = ckt_rt_slot(&module->modules, ckt_rt_thread.device);
		result = CUDA_SUCCESS;
		if (!slot)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		else if (!ckt_rt_thread.primary)
			result = (CUresult)ckt_rt_unsupported(
				"a kernel in a context of the program's own, with a driver without libraries",
				&once);
		else if (!(*ret_module = (CUmodule)(uintptr_t)atomic_load(slot)))
			result = load_module(module, ret_module);
		if (result == CUDA_SUCCESS)
			atomic_store(slot, (uint64_t)(uintptr_t)*ret_module);
	}
	if (result == CUDA_SUCCESS && !module->exit_noted && atexit(note_exit) == 0)
		module->exit_noted = true;
	if (module->gone)
		result = CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&module->lock);
	return (cudaError_t)result;
}

static cudaError_t kernel_of_library(
	struct ckt_rt_kernel *kernel, CUlibrary library, CUkernel *ret_kernel)
{
	CUkernel handle = atomic_load_explicit(&kernel->kernel, memory_order_acquire);
	if (!handle) {
		CUresult result = cuLibraryGetKernel(&handle, library, kernel->name);
		if (result)
			return (cudaError_t)result;
		atomic_store_explicit(&kernel->kernel, handle, memory_order_release);
	}
	*ret_kernel = handle;
	return cudaSuccess;
}

cudaError_t ckt_rt_kernel_handle(struct ckt_rt_kernel *kernel, CUkernel *ret_kernel)
{
	CUlibrary library;
	CUmodule module;
	struct ckt_rt_module *owner = __atomic_load_n(&kernel->module, __ATOMIC_ACQUIRE);
	*ret_kernel = atomic_load_explicit(&kernel->kernel, memory_order_acquire);
	if (*ret_kernel)
		return cudaSuccess;
	if (!owner)
		return cudaErrorInvalidResourceHandle;
	cudaError_t error = load(owner, &library, &module);
	if (error)
		return error;
	static bool once;
	return library ? kernel_of_library(kernel, library, ret_kernel)
		       : (cudaError_t)ckt_rt_unsupported(
				 "a kernel's handle with a driver without libraries", &once);
}

cudaError_t ckt_rt_kernel_function_slow(struct ckt_rt_kernel *kernel, CUfunction *ret_function)
{
	CUlibrary library;
	CUmodule module = NULL;
	CUkernel handle = atomic_load_explicit(&kernel->kernel, memory_order_acquire);
	struct ckt_rt_module *owner = __atomic_load_n(&kernel->module, __ATOMIC_ACQUIRE);
	cudaError_t error = cudaSuccess;
	CUresult result;
	if (!handle && !owner)
		return cudaErrorInvalidResourceHandle;
	if (!handle) {
		error = load(owner, &library, &module);
		if (!error && library)
			error = kernel_of_library(kernel, library, &handle);
	}
	if (error)
		return error;
	if (module)
		result = cuModuleGetFunction(ret_function, module, kernel->name);
	else
		result = cuKernelGetFunction(ret_function, handle);
	if (result)
		return (cudaError_t)result;
	if (ckt_rt_thread.primary) {
		_Atomic uint64_t *slot = ckt_rt_slot(&kernel->functions, ckt_rt_thread.device);
		if (slot)
			atomic_store_explicit(
				slot, (uint64_t)(uintptr_t)*ret_function, memory_order_release);
	}
	return cudaSuccess;
}

cudaError_t ckt_rt_variable_address(
	struct ckt_rt_variable *variable, CUdeviceptr *ret_address, size_t *ret_size)
{
	CUlibrary library;
	CUmodule module;
	size_t size;
	struct ckt_rt_module *owner = __atomic_load_n(&variable->module, __ATOMIC_ACQUIRE);
	if (!owner)
		return cudaErrorInvalidSymbol;
	_Atomic uint64_t *slot = ckt_rt_thread.primary
		? ckt_rt_slot(&variable->addresses, ckt_rt_thread.device)
		: NULL;
	uint64_t known =
		slot && variable->size ? atomic_load_explicit(slot, memory_order_acquire) : 0;
	if (known) {
		*ret_address = known;
		*ret_size = variable->size;
		return cudaSuccess;
	}
	cudaError_t error = load(owner, &library, &module);
	if (error)
		return error;
	CUresult result;
	if (module)
		result = cuModuleGetGlobal(ret_address, &size, module, variable->name);
	else if (variable->managed)
		result = cuLibraryGetManaged(ret_address, &size, library, variable->name);
	else
		result = cuLibraryGetGlobal(ret_address, &size, library, variable->name);
	if (result)
		return (cudaError_t)result;
	*ret_size = variable->size ? variable->size : size;
	if (slot)
		atomic_store_explicit(slot, *ret_address, memory_order_release);
	return cudaSuccess;
}

cudaError_t ckt_rt_module_managed(struct ckt_rt_module *module)
{
	for (struct ckt_rt_variable *variable = module->variables; variable;
		variable = variable->next) {
		CUdeviceptr address;
		size_t size;
		if (!variable->managed)
			continue;
		cudaError_t error = ckt_rt_variable_address(variable, &address, &size);
		if (error)
			return error;
		*variable->managed = (void *)(uintptr_t)address;
	}
	return cudaSuccess;
}

void ckt_rt_module_unload(struct ckt_rt_module *module)
{
	pthread_mutex_lock(&module->lock);
	CUlibrary library = atomic_exchange(&module->library, NULL);
	_Atomic uint64_t *by_device = atomic_load(&module->modules);
	module->gone = true;
	/* In a forked child, or after the driver failed, nothing is left to unload. */
	if ((library || by_device) && !atomic_load(&exiting) && ckt_rt_driver() == cudaSuccess) {
		if (library) {
			cuLibraryUnload(library);
			free(module->link_log);
			module->link_log = NULL;
		}
		for (int i = 0; by_device && i < ckt_rt_device_count; i++) {
			CUmodule loaded = (CUmodule)(uintptr_t)atomic_exchange(&by_device[i], 0);
			CUcontext context;
			if (loaded && ckt_rt_primary(i, &context) == cudaSuccess &&
				cuCtxPushCurrent(context) == CUDA_SUCCESS) {
				cuModuleUnload(loaded);
				cuCtxPopCurrent(&context);
			}
		}
	}
	pthread_mutex_unlock(&module->lock);
}
