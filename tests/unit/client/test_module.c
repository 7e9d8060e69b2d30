/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/module.c: modules: an image travels once, functions and variables are asked
 * for by name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "relay.h"

static void test_loading(void)
{
	CUmodule first, second, none = NULL;
	char image[2048];
	CUmoduleLoadingMode mode;
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	/* An image of this test's own. */
	snprintf(image, sizeof image, "// of test_module.c\n%s", relay_ptx);
	relay_mark();
	IS(cuModuleLoadData(&first, image), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("module_load"), 1);
	IS(relay_count("blob_data"), 1);
	relay_mark();
	IS(cuModuleLoadData(&second, image), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("module_load"), 1);
	IS(relay_count("blob_data"), 0); /* it is there already */
	YES(first != second);
	IS(cuModuleUnload(first), CUDA_SUCCESS);
	LOCAL(cuModuleUnload(first), CUDA_ERROR_INVALID_HANDLE);
	IS(cuModuleUnload(second), CUDA_SUCCESS);
	LOCAL(cuModuleUnload((CUmodule)0x1234), CUDA_ERROR_INVALID_HANDLE);
	IS(cuModuleLoadData(&none, "nonsense") != CUDA_SUCCESS, true);
	IS(cuModuleLoadData(&none, ".version 8.0\n.target sm_70\n.address_size 64\nnonsense\n"),
		CUDA_ERROR_INVALID_PTX);
	YES(!none);
	LOCAL(cuModuleLoadData(&none, NULL), BAD);
	LOCAL(cuModuleLoadData(NULL, image), BAD);
	LOCAL(cuModuleLoadDataEx(&none, image, 1, NULL, NULL), BAD);
	LOCAL(cuModuleLoadDataEx(&none, NULL, 1, &option, NULL), BAD);
	LOCAL(cuModuleGetLoadingMode(&mode), CUDA_SUCCESS);
	IS(mode, CU_MODULE_LAZY_LOADING);
	LOCAL(cuModuleGetLoadingMode(NULL), BAD);
}

/* A large one: its load is the question whether the worker has it. */
static void test_large(void)
{
	enum { LARGE = 100 << 10 };
	CUmodule module;
	static char image[LARGE];
	int length = snprintf(image, sizeof image, "%s\n//", relay_ptx);
	memset(image + length, 'x', sizeof image - 1 - (size_t)length);
	for (int time = 0; time < 2; time++) {
		relay_mark();
		IS(cuModuleLoadData(&module, image), CUDA_SUCCESS);
		relay_settle();
		IS(relay_count("blob_have"), 0);
		IS(relay_count("module_load"), time ? 1 : 2);
		IS(relay_count("blob_data"), time ? 0 : 1);
		IS(cuModuleUnload(module), CUDA_SUCCESS);
	}
}

static void test_files(void)
{
	CUmodule module = NULL;
	CUfunction add;
	char path[] = "/tmp/ckt-module-XXXXXX";
	int fd = mkstemp(path);
	MUST(fd >= 0, true);
	/* and no NUL behind it */
	MUST(write(fd, relay_ptx, strlen(relay_ptx)), strlen(relay_ptx));
	close(fd);
	IS(cuModuleLoad(&module, path), CUDA_SUCCESS);
	IS(cuModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
	IS(cuModuleUnload(module), CUDA_SUCCESS);
	unlink(path);
	LOCAL(cuModuleLoad(&module, path), CUDA_ERROR_FILE_NOT_FOUND);
	LOCAL(cuModuleLoad(&module, "/tmp"), CUDA_ERROR_FILE_NOT_FOUND);
	LOCAL(cuModuleLoad(&module, NULL), BAD);
	LOCAL(cuModuleLoad(NULL, path), BAD);
}

static void test_names(void)
{
	CUmodule module;
	CUfunction add, listed[4] = {NULL};
	CUdeviceptr counter = 0, base = 0;
	size_t size = 0;
	unsigned count = 0;
	static char much[65538];
	MUST(cuModuleLoadData(&module, relay_ptx), CUDA_SUCCESS);
	COST(cuModuleGetGlobal(&counter, &size, module, "counter"), CUDA_SUCCESS, 1, 0);
	IS(size, 4);
	COST(cuModuleGetGlobal(NULL, NULL, module, "counter"), CUDA_SUCCESS, 1, 0);
	IS(cuModuleGetGlobal(&base, &size, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	memset(much, 'n', sizeof much - 1);
	LOCAL(cuModuleGetGlobal(&base, &size, module, much), BAD);
	LOCAL(cuModuleGetGlobal(&base, &size, module, NULL), BAD);
	LOCAL(cuModuleGetGlobal(&base, &size, (CUmodule)0x1234, "counter"),
		CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuMemGetAddressRange(&base, &size, counter), CUDA_SUCCESS);
	YES(base == counter && size == 4);
	LOCAL(cuMemFree(counter), BAD); /* it is the module's */
	IS(cuModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
	LOCAL(cuModuleGetFunction(NULL, module, "add"), BAD);
	COST(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS, 1, 0);
	IS(count, 1);
	LOCAL(cuModuleGetFunctionCount(NULL, module), BAD);
	LOCAL(cuModuleGetFunctionCount(&count, (CUmodule)0x1234), CUDA_ERROR_INVALID_HANDLE);
	IS(cuModuleEnumerateFunctions(listed, 4, module), CUDA_SUCCESS);
	YES(listed[0] == add && !listed[1]);
	LOCAL(cuModuleEnumerateFunctions(NULL, 4, module), BAD);
	LOCAL(cuModuleEnumerateFunctions(listed, 0, module), CUDA_SUCCESS);
	IS(cuModuleUnload(module), CUDA_SUCCESS);
	LOCAL(cuMemGetAddressRange(&base, &size, counter), CUDA_ERROR_NOT_FOUND);
	LOCAL(cuModuleGetGlobal(&counter, &size, module, "counter"), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(module, {"loading", test_loading}, {"large", test_large}, {"files", test_files},
	{"names", test_names})
