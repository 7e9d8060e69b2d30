/* SPDX-License-Identifier: Apache-2.0 */
/* The code that libraries load while the driver loads lazily; see code.h. */
#include "server/worker/libs/code/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/driver.h"
#include "server/worker/libs/code/code_table.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/module/module_loading.h"
#include "server/worker/worker.h"

/* ---- Uses */

static void note_use(enum ckt_code_use_kind kind, uint32_t code, const char *symbol)
{
	uint32_t use;
	CUcontext context = NULL;
	ckt_driver.cuCtxGetCurrent(&context);
	ckt_code_lock();
	bool added = ckt_code_use_add(kind, code, symbol, &use);
	ckt_code_unlock();
	if (!added) {
		ckt_warning("no memory to record what a library loaded: variables of "
			    "modules may move at a restore");
		return;
	}
	ckt_inside_note(
		(struct ckt_inside_note){.kind = CKT_NOTE_CODE, .context = context, .use = use});
	if (ckt_inside_has_tables())
		ckt_inside_notes_settle(&ckt_worker);
}

/*
 * Loads the kernel in the current context at once. *ret_function may be the handle that launches
 * it.
 */
static CUresult load_kernel(CUkernel kernel, CUfunction *ret_function)
{
	CUresult result = ckt_driver.cuKernelGetFunction(ret_function, kernel);
	return result ? result : ckt_driver.cuFuncLoad(*ret_function);
}

/* Called before the current context uses a kernel or a function of a kernel. */
static void touch(void *handle)
{
	CUcontext context = NULL;
	uint32_t code = 0;
	CUlibrary library = NULL;
	char *name = NULL;
	if (ckt_driver.cuCtxGetCurrent(&context) || !context || !handle)
		return;
	ckt_code_lock();
	bool known = ckt_code_touched(context, handle);
	const struct ckt_code_kernel *kernel = known ? NULL : ckt_code_kernel_find(handle);
	if (kernel) {
		code = kernel->code;
		library = kernel->library;
		name = strdup(kernel->name);
	}
	ckt_code_unlock();
	CUfunction function = NULL;
	/* A function without a kernel belongs to a module, which was loaded whole. */
	if (known || !name || load_kernel(handle, &function)) {
		free(name);
		return;
	}
	ckt_code_lock();
	ckt_code_touch(context, handle, library);
	ckt_code_touch(context, function, library);
	ckt_code_unlock();
	note_use(CKT_CODE_KERNEL, code, name);
	free(name);
}

/* ---- Libraries */

static bool options_repeat(
	const CUlibraryOption *options, void *const *values, unsigned count, bool *ret_preserved)
{
	bool repeat = true;
	*ret_preserved = false;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			*ret_preserved = true;
		else if (options[i] != CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE ||
			(values && values[i]))
			repeat = false;
	}
	return repeat;
}

static CUresult CUDAAPI library_load_data(CUlibrary *library, const void *code,
	CUjit_option *options, void **values, unsigned count, CUlibraryOption *library_options,
	void **library_values, unsigned library_count)
{
	struct ckt_code_place place;
	uint32_t index = 0;
	bool preserved,
		own = !options_repeat(library_options, library_values, library_count, &preserved) ||
		count;
	bool known = library && ckt_code_locate(code, &place);
	CUlibrary ahead = NULL;
	if (known) {
		ckt_code_lock();
		known = ckt_code_add(&place, preserved, own, &index);
		ahead = known ? ckt_code_take_ahead(index) : NULL;
		ckt_code_unlock();
	}
	if (ahead) {
		*library = ahead;
		return CUDA_SUCCESS;
	}
	CUresult result = ckt_driver.cuLibraryLoadData(library, code, options, values, count,
		library_options, library_values, library_count);
	if (result)
		return result;
	ckt_inside_count_modules();
	ckt_code_lock();
	if (known)
		ckt_code_library_add(*library, index);
	ckt_code_unlock();
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI library_unload(CUlibrary library)
{
	uint32_t index;
	bool used = false;
	CUresult result = ckt_driver.cuLibraryUnload(library);
	if (result)
		return result;
	ckt_code_lock();
	bool known = ckt_code_library_drop(library, &index, &used);
	ckt_code_unlock();
	if (known && used)
		note_use(CKT_CODE_UNLOAD, index, "");
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI library_get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	CUresult result = ckt_driver.cuLibraryGetKernel(kernel, library, name);
	if (result)
		return result;
	ckt_code_lock();
	ckt_code_kernel_add(*kernel, library, name);
	ckt_code_unlock();
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI library_get_global(
	CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
	CUcontext context = NULL;
	uint32_t index = 0;
	CUdeviceptr found;
	ckt_driver.cuCtxGetCurrent(&context);
	CUresult result = ckt_driver.cuLibraryGetGlobal(&found, size, library, name);
	if (result)
		return result;
	if (address)
		*address = found;
	ckt_code_lock();
	/* A variable's address differs from every handle, so both share one table. */
	bool first = ckt_code_library_find(library, &index) &&
		!ckt_code_touched(context, (void *)(uintptr_t)found);
	if (first)
		ckt_code_touch(context, (void *)(uintptr_t)found, library);
	ckt_code_unlock();
	if (first)
		note_use(CKT_CODE_VARIABLE, index, name);
	return CUDA_SUCCESS;
}

/*
 * ---- Modules belong to a context and are loaded whole
 */

static CUresult CUDAAPI module_load_data_ex(
	CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
	struct ckt_code_place place;
	uint32_t index = 0;
	CUcontext context = NULL;
	CUmodule ahead = NULL;
	ckt_driver.cuCtxGetCurrent(&context);
	bool known = module && context && ckt_code_locate(image, &place);
	if (known) {
		ckt_code_lock();
		known = ckt_code_add(&place, false, count > 0, &index);
		ahead = known ? ckt_code_take_ahead_module(index, context) : NULL;
		ckt_code_unlock();
	}
	if (ahead) {
		*module = ahead;
		return CUDA_SUCCESS;
	}
	CUresult result = ckt_driver.cuModuleLoadDataEx(module, image, count, options, values);
	if (result)
		return result;
	ckt_inside_count_modules();
	result = ckt_loading_whole(*module);
	if (result) {
		ckt_driver.cuModuleUnload(*module);
		return result;
	}
	ckt_code_lock();
	known = known && ckt_code_module_add(*module, context, index);
	ckt_code_unlock();
	if (known)
		note_use(CKT_CODE_MODULE, index, "");
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI module_load_data(CUmodule *module, const void *image)
{
	return module_load_data_ex(module, image, 0, NULL, NULL);
}

static CUresult CUDAAPI module_unload(CUmodule module)
{
	uint32_t index;
	CUresult result = ckt_driver.cuModuleUnload(module);
	if (result)
		return result;
	ckt_code_lock();
	bool known = ckt_code_module_drop(module, &index);
	ckt_code_unlock();
	if (known)
		note_use(CKT_CODE_MODULE_UNLOAD, index, "");
	return CUDA_SUCCESS;
}

/*
 * ---- Uses of kernels
 */

static CUresult CUDAAPI kernel_get_function(CUfunction *function, CUkernel kernel)
{
	touch(kernel);
	return ckt_driver.cuKernelGetFunction(function, kernel);
}

#define REAL(name, function)               \
	static __typeof__(function) *real; \
	if (!real)                         \
	*(void **)&real = ckt_inside_real(name)

#define LAUNCHES(suffix, text)                                                                     \
	static CUresult CUDAAPI launch##suffix(CUfunction f, unsigned gx, unsigned gy,             \
		unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,               \
		CUstream stream, void **parameters, void **extra)                                  \
	{                                                                                          \
		REAL("cuLaunchKernel" text, cuLaunchKernel);                                       \
		touch(f);                                                                          \
		return real(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);         \
	}                                                                                          \
	static CUresult CUDAAPI launch_ex##suffix(                                                 \
		const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)       \
	{                                                                                          \
		REAL("cuLaunchKernelEx" text, cuLaunchKernelEx);                                   \
		touch(f);                                                                          \
		return real(config, f, parameters, extra);                                         \
	}                                                                                          \
	static CUresult CUDAAPI launch_cooperative##suffix(CUfunction f, unsigned gx, unsigned gy, \
		unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,               \
		CUstream stream, void **parameters)                                                \
	{                                                                                          \
		REAL("cuLaunchCooperativeKernel" text, cuLaunchCooperativeKernel);                 \
		touch(f);                                                                          \
		return real(f, gx, gy, gz, bx, by, bz, shared, stream, parameters);                \
	}

LAUNCHES(, "")
LAUNCHES(_ptsz, "_ptsz")

static CUresult CUDAAPI get_attribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
	touch(f);
	return ckt_driver.cuFuncGetAttribute(value, attribute, f);
}

static CUresult CUDAAPI set_attribute(CUfunction f, CUfunction_attribute attribute, int value)
{
	touch(f);
	return ckt_driver.cuFuncSetAttribute(f, attribute, value);
}

static CUresult CUDAAPI occupancy(
	int *blocks, CUfunction f, int block, size_t shared, unsigned flags)
{
	touch(f);
	return ckt_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		blocks, f, block, shared, flags);
}

const struct ckt_inside_hook ckt_inside_code_hooks[] = {
	{"cuLibraryLoadData", (void *)library_load_data},
	{"cuLibraryUnload", (void *)library_unload},
	{"cuLibraryGetKernel", (void *)library_get_kernel},
	{"cuLibraryGetGlobal", (void *)library_get_global},
	{"cuModuleLoadData", (void *)module_load_data},
	{"cuModuleLoadDataEx", (void *)module_load_data_ex},
	{"cuModuleLoadFatBinary", (void *)module_load_data},
	{"cuModuleUnload", (void *)module_unload},
	{"cuKernelGetFunction", (void *)kernel_get_function},
	{"cuLaunchKernel", (void *)launch},
	{"cuLaunchKernel_ptsz", (void *)launch_ptsz},
	{"cuLaunchKernelEx", (void *)launch_ex},
	{"cuLaunchKernelEx_ptsz", (void *)launch_ex_ptsz},
	{"cuLaunchCooperativeKernel", (void *)launch_cooperative},
	{"cuLaunchCooperativeKernel_ptsz", (void *)launch_cooperative_ptsz},
	{"cuFuncGetAttribute", (void *)get_attribute},
	{"cuFuncSetAttribute", (void *)set_attribute},
	{"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (void *)occupancy},
	{NULL, NULL},
};

/* ---- A restore */

static CUresult library_ahead(uint32_t index, const uint8_t *data, CUlibrary *ret_library)
{
	struct ckt_code *code = ckt_code_entry(index);
	CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
	void *values[] = {(void *)(uintptr_t)1};
	if (code->ahead) {
		*ret_library = code->ahead;
		return CUDA_SUCCESS;
	}
	/* An earlier step made the library load the code itself. */
	if (ckt_code_library_of(index, ret_library))
		return CUDA_SUCCESS;
	CUresult result = ckt_driver.cuLibraryLoadData(
		ret_library, data, NULL, NULL, 0, options, values, code->preserved);
	if (result)
		return result;
	code->ahead = *ret_library;
	code->handed = false;
	return ckt_code_library_add(*ret_library, index) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult kernel_ahead(uint32_t index, const uint8_t *data, const char *name)
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUcontext context = NULL;
	CUresult result = library_ahead(index, data, &library);
	if (!result)
		result = ckt_driver.cuLibraryGetKernel(&kernel, library, name);
	if (!result)
		result = load_kernel(kernel, &function);
	if (result)
		return result;
	ckt_driver.cuCtxGetCurrent(&context);
	ckt_code_kernel_add(kernel, library, name);
	ckt_code_touch(context, kernel, library);
	ckt_code_touch(context, function, library);
	return CUDA_SUCCESS;
}

static CUresult variable_ahead(uint32_t index, const uint8_t *data, const char *name)
{
	CUlibrary library;
	CUdeviceptr address;
	CUcontext context = NULL;
	CUresult result = library_ahead(index, data, &library);
	if (!result)
		result = ckt_driver.cuLibraryGetGlobal(&address, NULL, library, name);
	ckt_driver.cuCtxGetCurrent(&context);
	if (!result)
		ckt_code_touch(context, (void *)(uintptr_t)address, library);
	return result;
}

static CUresult module_ahead(uint32_t index, const uint8_t *data)
{
	CUmodule module;
	CUcontext context = NULL;
	CUresult result = ckt_driver.cuModuleLoadData(&module, data);
	if (!result)
		result = ckt_loading_whole(module);
	ckt_driver.cuCtxGetCurrent(&context);
	if (!result && !ckt_code_ahead_module_add(index, context, module))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

static CUresult unload_ahead(uint32_t index)
{
	struct ckt_code *code = ckt_code_entry(index);
	bool used;
	uint32_t same;
	/* The library unloads code that it was handed. */
	if (!code->ahead || code->handed)
		return CUDA_SUCCESS;
	CUresult result = ckt_driver.cuLibraryUnload(code->ahead);
	ckt_code_library_drop(code->ahead, &same, &used);
	code->ahead = NULL;
	return result;
}

static CUresult unload_module_ahead(uint32_t index)
{
	uint32_t same;
	CUcontext context = NULL;
	ckt_driver.cuCtxGetCurrent(&context);
	CUmodule module = ckt_code_take_ahead_module(index, context);
	if (!module)
		return CUDA_SUCCESS;
	ckt_code_module_drop(module, &same);
	return ckt_driver.cuModuleUnload(module);
}

CUresult ckt_code_use_ahead(
	uint32_t index, const uint8_t *data, enum ckt_code_use_kind kind, const char *symbol)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	switch (kind) {
	case CKT_CODE_KERNEL:
		result = kernel_ahead(index, data, symbol);
		break;
	case CKT_CODE_VARIABLE:
		result = variable_ahead(index, data, symbol);
		break;
	case CKT_CODE_MODULE:
		result = module_ahead(index, data);
		break;
	case CKT_CODE_UNLOAD:
		result = unload_ahead(index);
		break;
	case CKT_CODE_MODULE_UNLOAD:
		result = unload_module_ahead(index);
		break;
	}
	if (!result)
		note_use(kind, index, symbol);
	return result;
}
