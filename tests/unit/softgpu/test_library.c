/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/library.c: libraries and kernels that belong to no context: loading, enumeration,
 * settings by device, the end.
 */
#include <unistd.h>

#include "files.h"

/*
 * A fat binary of machine code alone: who takes the log has the reason there, others on stderr when
 * they ask for something, once.
 */
static void test_machine_code(void)
{
	static const unsigned char code[80] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 64, 0, 0, 0, 0,
		0, 0, 0, 2, 0, 1, 1, 64, 0, 0, 0};
	char log[256] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUlibrary library;
	CUkernel kernel;
	CUmodule module;
	files_catch(2);
	OK(cuLibraryLoadData(&library, code, options, values, 2, NULL, NULL, 0));
	CHECK_RESULT(cuLibraryGetKernel(&kernel, library, "kernel"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_RESULT(cuLibraryGetModule(&module, library), CUDA_ERROR_NO_BINARY_FOR_GPU);
	OK(cuLibraryUnload(library));
	TEXT(files_caught(), "");
	HAS(log, "machine code only");
	files_catch(2);
	OK(cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
	TEXT(files_caught(), "");
	files_catch(2);
	for (int i = 0; i < 3; i++)
		CHECK_RESULT(cuLibraryGetKernel(&kernel, library, "kernel"),
			CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_RESULT(cuLibraryGetModule(&module, library), CUDA_ERROR_NO_BINARY_FOR_GPU);
	OK(cuLibraryUnload(library));
	const char *said = files_caught(),
		   *line = strstr(
			   said, "library not loaded: the fat binary holds machine code only");
	YES(line && !strstr(line + 1, "library not loaded"));
}

static void test_load(void)
{
	CUlibrary library;
	OK(cuInit(0));
	CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED,
			table = CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE,
			strange = (CUlibraryOption)77;
	void *value = (void *)1;
	/* The reason is said once a process. */
	static const struct {
		const char *text;
		CUresult result;
		bool again;
	} images[] = {
		{"", CUDA_ERROR_INVALID_IMAGE, false},
		{"no PTX", CUDA_ERROR_INVALID_IMAGE, true},
		{".version 8.0\n.target sm_80\nnonsense", CUDA_ERROR_INVALID_PTX, false},
		{".version 8.0\n.target sm_90\n.address_size 64\n", CUDA_SUCCESS, false},
		{".version 8.7\n.target sm_120\n", CUDA_ERROR_NO_BINARY_FOR_GPU, false},
		{".version 8.7\n.target sm_120\n", CUDA_ERROR_NO_BINARY_FOR_GPU, true},
	};
	for (size_t i = 0; i < COUNT(images); i++) {
		files_catch(2);
		CUresult result =
			cuLibraryLoadData(&library, images[i].text, NULL, NULL, 0, NULL, NULL, 0);
		const char *said = files_caught();
		IS(result, images[i].result);
		if (result == CUDA_SUCCESS)
			OK(cuLibraryUnload(library));
		else if (images[i].again)
			TEXT(said, "");
		else
			HAS(said, "library not loaded");
	}
	/* A fat binary without an image for the device is looked at late. */
	static const unsigned char empty[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
	CUkernel kernel;
	CUmodule module;
	CUdeviceptr address;
	size_t size;
	files_context();
	OK(cuLibraryLoadData(&library, empty, NULL, NULL, 0, NULL, NULL, 0));
	CHECK_RESULT(cuLibraryGetKernel(&kernel, library, "kernel"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_RESULT(cuLibraryGetModule(&module, library), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_RESULT(cuLibraryGetGlobal(&address, &size, library, "variable"),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	OK(cuLibraryUnload(library));
	test_machine_code();
	OK(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, &preserved, &value, 1));
	OK(cuLibraryUnload(library));
	CHECK_RESULT(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, &table, &value, 1),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, &strange, &value, 1),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 1),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryLoadData(NULL, test_ptx, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryLoadFromFile(&library, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
	CHECK_RESULT(cuLibraryLoadFromFile(&library, "/", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
	CHECK_RESULT(cuLibraryLoadFromFile(&library, NULL, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_VALUE);
	char path[] = "/tmp/cricket-library-XXXXXX";
	int fd = mkstemp(path);
	IS(write(fd, test_ptx, strlen(test_ptx)), strlen(test_ptx));
	close(fd);
	OK(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	remove(path);
	unsigned count = 0;
	OK(cuLibraryGetKernelCount(&count, library));
	IS(count, 4);
	OK(cuLibraryUnload(library));
}

static void test_kernels(void)
{
	CUlibrary library, of = NULL;
	CUkernel kernel, list[8] = {NULL};
	const char *name = NULL;
	size_t offset = 77, size = 77;
	OK(cuInit(0));
	OK(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "wait_for"));
	OK(cuLibraryEnumerateKernels(list, 2, library));
	YES(list[0] && list[1] && !list[2]);
	OK(cuLibraryEnumerateKernels(list, 8, library));
	YES(list[3] && !list[4]);
	OK(cuLibraryEnumerateKernels(NULL, 0, library));
	CHECK_RESULT(cuLibraryEnumerateKernels(NULL, 1, library), CUDA_ERROR_INVALID_VALUE);
	OK(cuKernelGetName(&name, kernel));
	TEXT(name, "wait_for");
	OK(cuKernelGetLibrary(&of, kernel));
	YES(of == library);
	OK(cuKernelGetParamInfo(kernel, 1, &offset, &size));
	YES(offset == 8 && size == 8);
	CHECK_RESULT(cuKernelGetParamInfo(kernel, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuKernelGetParamInfo(kernel, 0, NULL, &size), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuKernelGetName(NULL, kernel), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuKernelGetLibrary(NULL, kernel), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryGetKernel(NULL, library, "wait_for"), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryGetKernel(&kernel, library, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryGetKernelCount(NULL, library), CUDA_ERROR_INVALID_VALUE);
	OK(cuLibraryUnload(library));
	CHECK_RESULT(cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuKernelGetLibrary(&of, kernel), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuLibraryGetKernel(&kernel, library, "wait_for"), CUDA_ERROR_INVALID_HANDLE);
}

/* A setting belongs to a device: those that have the function and those that will. */
static void test_settings(void)
{
	const CUfunction_attribute SHARED = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	CUlibrary library;
	CUkernel kernel;
	CUfunction f;
	int value = 0;
	CUcontext primary = test_context();
	OK(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "touch"));
	OK(cuKernelGetFunction(&f, kernel));
	OK(cuKernelSetAttribute(SHARED, 200000, kernel, 0));
	OK(cuFuncGetAttribute(&value, SHARED, f));
	IS(value, 200000);
	/* an 8.0 has 163 KiB */
	CHECK_RESULT(cuKernelSetAttribute(SHARED, 200000, kernel, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuKernelSetAttribute(SHARED, 160000, kernel, 1));
	CHECK_RESULT(cuKernelSetAttribute(SHARED, 1, kernel, 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuKernelGetAttribute(&value, SHARED, kernel, -1), CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuKernelGetAttribute(NULL, SHARED, kernel, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuKernelGetAttribute(&value, SHARED, kernel, 1));
	IS(value, 160000);
	CUcontext second = files_second();
	OK(cuKernelGetFunction(&f, kernel));
	OK(cuFuncGetAttribute(&value, SHARED, f));
	IS(value, 160000);
	OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel, 0));
	IS(value, 90);
	OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel, 1));
	IS(value, 80);
	OK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
	CHECK_RESULT(cuKernelSetCacheConfig(kernel, (CUfunc_cache)4, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 2),
		CUDA_ERROR_INVALID_DEVICE);
	files_second_end(second);
	OK(cuCtxSetCurrent(primary));
	CHECK_RESULT(cuKernelGetFunction(NULL, kernel), CUDA_ERROR_INVALID_VALUE);
	/* The context's modules went with it; the library makes new ones. */
	test_context();
	CHECK_RESULT(
		cuKernelGetFunction(&f, (CUkernel)(uintptr_t)0x1230), CUDA_ERROR_INVALID_HANDLE);
	OK(cuKernelGetFunction(&f, kernel));
	OK(cuFuncGetAttribute(&value, SHARED, f));
	IS(value, 200000);
	OK(cuLibraryUnload(library));
	CHECK_RESULT(cuFuncGetAttribute(&value, SHARED, f), CUDA_ERROR_INVALID_HANDLE);
}

static void test_variables(void)
{
	static const char text[] =
		PTX_HEADER ".visible .global .align 4 .u32 plain[3];\n"
			   ".visible .global .attribute(.managed) .align 8 .u64 shared = 5;\n";
	CUlibrary library;
	CUdeviceptr p = 0;
	size_t size = 0;
	test_context();
	OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetGlobal(&p, &size, library, "plain"));
	IS(size, 12);
	OK(cuLibraryGetGlobal(NULL, &size, library, "plain"));
	OK(cuLibraryGetManaged(&p, &size, library, "shared"));
	IS(size, 8);
	IS(*(uint64_t *)(uintptr_t)p, 5);
	CHECK_RESULT(cuLibraryGetManaged(&p, &size, library, "plain"), CUDA_ERROR_NOT_FOUND);
	CHECK_RESULT(cuLibraryGetGlobal(&p, &size, library, "absent"), CUDA_ERROR_NOT_FOUND);
	CHECK_RESULT(cuLibraryGetGlobal(NULL, NULL, library, "plain"), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryGetGlobal(&p, &size, library, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryGetModule(NULL, library), CUDA_ERROR_INVALID_VALUE);
	OK(cuLibraryUnload(library));
	CHECK_RESULT(cuLibraryGetGlobal(&p, &size, library, "plain"), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(softgpu / module / library, {"load", test_load}, {"kernels", test_kernels},
	{"settings", test_settings}, {"variables", test_variables})
