/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, functions, libraries, kernels and the linker. */
#include "driver.h"

CASE(load)
{
	CUmodule module = NULL, got = NULL;
	CUfunction function = NULL;
	CUdeviceptr p = 0;
	size_t size = 77;
	unsigned count = 77;
	CUmoduleLoadingMode mode = (CUmoduleLoadingMode)77;
	const char *name = NULL;
	start();
	CALL(cuModuleGetLoadingMode, &mode);
	NUMBER("mode", mode);
	CALL(cuModuleLoadData, &module, api_ptx);
	CALL(cuModuleGetFunction, &function, module, "fill");
	CALL(cuFuncGetName, &name, function);
	TEXT("name", name);
	CALL(cuFuncGetModule, &got, function);
	YES("the same", got == module);
	CALL(cuModuleGetGlobal_v2, &p, &size, module, "table");
	YES("some", p != 0);
	NUMBER("size", (long long)size);
	CALL(cuModuleGetGlobal_v2, NULL, &size, module, "fixed");
	NUMBER("size", (long long)size);
	CALL(cuModuleGetGlobal_v2, &p, NULL, module, "fixed");
	CONTENT("bytes", p, 4);
	CALL(cuModuleGetFunctionCount, &count, module);
	NUMBER("count", count);
	CALL(cuModuleUnload, module);
}

CASE(load_wrong)
{
	CUmodule module = NULL;
	CUfunction function = NULL;
	CUdeviceptr p = 0;
	size_t size = 77;
	start();
	CALL(cuModuleLoadData, NULL, api_ptx);
	CALL(cuModuleLoadData, &module, "nonsense");
	CALL(cuModuleLoad, &module, "/nonexistent/file");
	CALL(cuModuleLoad, &module, NULL);
	module = load();
	CALL(cuModuleGetFunction, &function, module, "not_there");
	CALL(cuModuleGetFunction, &function, module, NULL);
	CALL(cuModuleGetFunction, NULL, module, "fill");
	CALL(cuModuleGetGlobal_v2, &p, &size, module, "not_there");
	CALL(cuModuleGetFunctionCount, NULL, module);
	CALL(cuModuleUnload, NULL);
}

static char path[64];
static const char *file(void)
{
	FILE *f;
	snprintf(path, sizeof(path), "/tmp/ckt-api-%d.ptx", (int)getpid());
	f = fopen(path, "w");
	if (!f || fputs(api_ptx, f) < 0 || fclose(f))
		exit(2);
	return path;
}

CASE(load_forms)
{
	CUmodule module = NULL;
	char log[4096] = "";
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_OPTIMIZATION_LEVEL};
	void *values[] = {log, (void *)sizeof(log), (void *)2};
	int done;
	start();
	CALL(cuModuleLoadDataEx, &module, api_ptx, 3, options, values);
	kernel(module, "fill");
	CALL(cuModuleUnload, module);
	CALL(cuModuleLoadDataEx, &module, api_ptx, 0, NULL, NULL);
	CALL(cuModuleUnload, module);
	file();
	done = CALL(cuModuleLoad, &module, path);
	unlink(path);
	if (!done) {
		kernel(module, "nothing");
		CALL(cuModuleUnload, module);
	}
	CALL(cuModuleLoadFatBinary, &module, api_ptx);
}

static const char broken[] =
	".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n	not.an.instruction;\n	ret;\n}\n";

CASE(compile_error)
{
	CUmodule module = NULL;
	char log[4096] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	start();
	CALL(cuModuleLoadDataEx, &module, broken, 2, options, values);
	YES("said why", log[0] != 0);
	CALL(cuModuleLoadData, &module, broken);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

CASE(enumerate)
{
	CUfunction functions[8];
	const char *names[8];
	CUmodule module;
	memset(functions, 0, sizeof(functions));
	start();
	module = load();
	CALL(cuModuleEnumerateFunctions, functions, 8, module);
	for (int i = 0; i < 4; i++)
		QUIET(cuFuncGetName, &names[i], functions[i]);
	qsort(names, 4, sizeof(names[0]), by_name);
	for (int i = 0; i < 4; i++)
		TEXT("function", names[i]);
	YES("no more", functions[4] == NULL);
	CALL(cuModuleEnumerateFunctions, functions, 1, module);
	CALL(cuModuleEnumerateFunctions, NULL, 1, module);
}

CASE(function)
{
	static const CUfunction_attribute attributes[] = {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
		CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
		CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
	CUmodule module;
	CUfunction function;
	size_t offset = 77, size = 77;
	CUfunctionLoadingState state = (CUfunctionLoadingState)77;
	int value;
	start();
	module = load();
	function = kernel(module, "with_shared");
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		value = -7;
		CALL(cuFuncGetAttribute, &value, attributes[i], function);
		NUMBER("value", value);
	}
	CALL(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
	NUMBER("value", value);
	CALL(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
	YES("some", value > 0);
	CALL(cuFuncGetAttribute, &value, (CUfunction_attribute)99, function);
	CALL(cuFuncGetAttribute, NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
	CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
	CALL(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
	NUMBER("value", value);
	CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
	CALL(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
		function);
	NUMBER("value", value);
	CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_NUM_REGS, 10);
	CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1);
	CALL(cuFuncSetCacheConfig, function, CU_FUNC_CACHE_PREFER_L1);
	CALL(cuFuncSetCacheConfig, function, (CUfunc_cache)99);
	CALL(cuFuncSetSharedMemConfig, function, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
	CALL(cuFuncSetSharedMemConfig, function, (CUsharedconfig)99);
	function = kernel(module, "fill");
	CALL(cuFuncGetParamInfo, function, 0, &offset, &size);
	NUMBER("offset", (long long)offset);
	NUMBER("size", (long long)size);
	CALL(cuFuncGetParamInfo, function, 1, &offset, &size);
	NUMBER("offset", (long long)offset);
	NUMBER("size", (long long)size);
	CALL(cuFuncGetParamInfo, function, 1, &offset, NULL);
	CALL(cuFuncGetParamInfo, function, 2, &offset, &size);
	CALL(cuFuncGetParamInfo, function, 0, NULL, &size);
	CALL(cuFuncLoad, function);
	CALL(cuFuncIsLoaded, &state, function);
	NUMBER("state", state);
	CALL(cuFuncIsLoaded, NULL, function);
	CALL(cuFuncGetName, NULL, function);
	CALL(cuFuncGetModule, NULL, function);
}

CASE(library)
{
	CUlibrary library = NULL, of = NULL;
	CUkernel k = NULL;
	CUmodule module = NULL;
	CUfunction function = NULL;
	CUdeviceptr p = 0;
	size_t size = 77, offset = 77;
	unsigned count = 77;
	const char *name = NULL;
	void *unified = NULL;
	start();
	CALL(cuLibraryLoadData, &library, api_ptx, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cuLibraryGetKernelCount, &count, library);
	NUMBER("count", count);
	CALL(cuLibraryGetKernel, &k, library, "fill");
	CALL(cuKernelGetName, &name, k);
	TEXT("name", name);
	CALL(cuKernelGetLibrary, &of, k);
	YES("the same", of == library);
	CALL(cuKernelGetFunction, &function, k);
	YES("some", function != NULL);
	CALL(cuKernelGetParamInfo, k, 1, &offset, &size);
	NUMBER("offset", (long long)offset);
	NUMBER("size", (long long)size);
	CALL(cuKernelGetParamInfo, k, 2, &offset, &size);
	CALL(cuLibraryGetModule, &module, library);
	YES("some", module != NULL);
	CALL(cuLibraryGetGlobal, &p, &size, library, "table");
	YES("some", p != 0);
	NUMBER("size", (long long)size);
	CALL(cuLibraryGetManaged, &p, &size, library, "table");
	CALL(cuLibraryGetUnifiedFunction, &unified, library, "fill");
	CALL(cuLibraryGetKernel, &k, library, "not_there");
	CALL(cuLibraryGetKernel, NULL, library, "fill");
	CALL(cuLibraryGetGlobal, &p, &size, library, "not_there");
	CALL(cuLibraryUnload, library);
}

CASE(library_kernels)
{
	CUlibrary library = NULL;
	CUkernel kernels[8];
	const char *names[8];
	memset(kernels, 0, sizeof(kernels));
	start();
	QUIET(cuLibraryLoadData, &library, api_ptx, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cuLibraryEnumerateKernels, kernels, 8, library);
	for (int i = 0; i < 4; i++)
		QUIET(cuKernelGetName, &names[i], kernels[i]);
	qsort(names, 4, sizeof(names[0]), by_name);
	for (int i = 0; i < 4; i++)
		TEXT("kernel", names[i]);
	YES("no more", kernels[4] == NULL);
	CALL(cuLibraryEnumerateKernels, NULL, 8, library);
}

CASE(kernel_attributes)
{
	CUlibrary library = NULL;
	CUkernel k = NULL;
	int value = -7;
	start();
	QUIET(cuLibraryLoadData, &library, api_ptx, NULL, NULL, 0, NULL, NULL, 0);
	QUIET(cuLibraryGetKernel, &k, library, "with_shared");
	CALL(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 0);
	NUMBER("value", value);
	CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048, k, 0);
	CALL(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0);
	NUMBER("value", value);
	CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_NUM_REGS, 20, k, 0);
	CALL(cuKernelSetCacheConfig, k, CU_FUNC_CACHE_PREFER_SHARED, 0);
	CALL(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 999);
	CALL(cuKernelGetAttribute, NULL, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k, 0);
}

CASE(library_wrong)
{
	CUlibrary library = NULL;
	CUkernel k = NULL;
	start();
	CALL(cuLibraryLoadData, NULL, api_ptx, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cuLibraryLoadFromFile, &library, "/nonexistent/file", NULL, NULL, 0, NULL, NULL, 0);
	file();
	CALL(cuLibraryLoadFromFile, &library, path, NULL, NULL, 0, NULL, NULL, 0);
	unlink(path);
	CALL(cuLibraryGetKernel, &k, library, "nothing");
	CALL(cuLibraryUnload, library);
	CALL(cuLibraryUnload, NULL);
	CALL(cuKernelGetFunction, NULL, k);
}

static const char calls_other[] =
	".version 7.8\n.target sm_75\n.address_size 64\n"
	".extern .func (.param .b32 r) other(.param .b32 a);\n"
	".visible .entry k(.param .u64 p)\n{\n"
	"	.reg .b32 v;\n	.reg .b64 a;\n	.param .b32 in;\n	.param .b32 out;\n"
	"	st.param.b32 [in], 5;\n	call (out), other, (in);\n	ld.param.b32 v, [out];\n"
	"	ld.param.u64 a, [p];\n	st.global.u32 [a], v;\n	ret;\n}\n";
static const char the_other[] =
	".version 7.8\n.target sm_75\n.address_size 64\n"
	".visible .func (.param .b32 r) other(.param .b32 a)\n{\n"
	"	.reg .b32 v;\n	ld.param.b32 v, [a];\n	add.u32 v, v, 2;\n	st.param.b32 [r], v;\n	ret;\n}\n";

CASE(link)
{
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 77;
	CUmodule module;
	CUfunction function;
	CUdeviceptr p;
	void *params[] = {&p};
	start();
	p = memory(16);
	CALL(cuLinkCreate_v2, 0, NULL, NULL, &state);
	CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, (void *)calls_other, sizeof(calls_other),
		"first", 0, NULL, NULL);
	CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, (void *)the_other, sizeof(the_other),
		"second", 0, NULL, NULL);
	CALL(cuLinkComplete, state, &image, &size);
	YES("some", image != NULL && size > 0 && size != 77);
	QUIET(cuModuleLoadData, &module, image);
	function = kernel(module, "k");
	CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	CONTENT("bytes", p, 8);
	CALL(cuLinkDestroy, state);
}

CASE(link_forms)
{
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 77;
	start();
	CALL(cuLinkCreate, 0, NULL, NULL, &state);
	file();
	CALL(cuLinkAddFile_v2, state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL);
	CALL(cuLinkAddData, state, CU_JIT_INPUT_PTX, (void *)the_other, sizeof(the_other), NULL, 0,
		NULL, NULL);
	CALL(cuLinkComplete, state, &image, &size);
	YES("some", image != NULL);
	CALL(cuLinkDestroy, state);
	CALL(cuLinkCreate_v2, 0, NULL, NULL, &state);
	CALL(cuLinkAddFile, state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL);
	unlink(path);
	CALL(cuLinkAddFile, state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL);
	CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, NULL, 10, "none", 0, NULL, NULL);
	CALL(cuLinkDestroy, state);
	CALL(cuLinkCreate_v2, 0, NULL, NULL, NULL);
}

/* Texture references belong to compilers before CUDA 12. */
CASE(references)
{
	CUtexref texture = NULL;
	CUsurfref surface = NULL;
	CUmodule module;
	start();
	module = load();
	CALL(cuModuleGetTexRef, &texture, module, "not_there");
	CALL(cuModuleGetSurfRef, &surface, module, "not_there");
	CALL(cuModuleGetTexRef, NULL, module, "not_there");
}

CASE(library_managed)
{
	static const char text[] =
		".version 7.8\n"
		".target sm_75\n"
		".address_size 64\n"
		".visible .global .attribute(.managed) .align 4 .b8 both[16] = {1, 2, 3, 4};\n";
	CUlibrary library = NULL;
	CUdeviceptr both = 0, found = 0;
	size_t size = 77;
	start();
	QUIET(cuLibraryLoadData, &library, text, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cuLibraryGetManaged, &both, &size, library, "both");
	NUMBER("size", (long long)size);
	BYTES("both", (void *)both, 16);
	CALL(cuLibraryGetManaged, NULL, &size, library, "both");
	CALL(cuLibraryGetManaged, &found, NULL, library, "both");
	YES("the same", found == both);
	CALL(cuLibraryGetManaged, &found, &size, library, "not there");
	CALL(cuLibraryGetGlobal, &found, &size, library, "both");
	CALL(cuLibraryUnload, library);
}

/* Texts that the driver may look at later. */
CASE(library_garbage)
{
	static const char *const list[] = {
		"nothing that can be loaded",
		".version 7.8\n.target sm_75\n.address_size 64\nnonsense\n",
		".version 99.0\n.target sm_75\n",
	};
	CUmodule module = NULL;
	start();
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		CUlibrary library = NULL;
		CUkernel kernel_of = NULL;
		unsigned count = 77;
		if (!CALL(cuLibraryLoadData, &library, list[i], NULL, NULL, 0, NULL, NULL, 0)) {
			CALL(cuLibraryGetKernelCount, &count, library);
			CALL(cuLibraryGetKernel, &kernel_of, library, "fill");
			CALL(cuLibraryGetModule, &module, library);
			CALL(cuLibraryUnload, library);
		}
		CALL(cuModuleLoadData, &module, list[i]);
	}
}
