/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/library.c: libraries: loaded when something of them is used, in each context
 * by itself.
 */
#include "relay.h"

static void test_library(void)
{
	CUlibrary library;
	CUkernel kernel, again, none;
	CUfunction f;
	CUdeviceptr address;
	unsigned count = 0;
	size_t size = 0;
	MUST(cuLibraryLoadData(&library, relay_ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
	IS(cuLibraryGetKernel(&kernel, library, "add"), CUDA_SUCCESS);
	LOCAL(cuLibraryGetKernel(&again, library, "add"), CUDA_SUCCESS);
	YES(kernel == again);
	IS(cuLibraryGetKernel(&none, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	LOCAL(cuLibraryGetKernel(NULL, library, "add"), BAD);
	IS(cuLibraryGetKernelCount(&count, library), CUDA_SUCCESS);
	IS(count, 1);
	IS(cuLibraryGetGlobal(&address, &size, library, "counter"), CUDA_SUCCESS);
	IS(size, 4);
	IS(cuKernelGetFunction(&f, kernel), CUDA_SUCCESS);
	uint32_t n = 4;
	void *params[] = {&address, &n};
	/* a kernel for a function */
	COST(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_SUCCESS, 0, 1);
	IS(word_at(address), 7);
	IS(cuLibraryUnload(library), CUDA_SUCCESS);
	LOCAL(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuLibraryGetKernel(&kernel, library, "add"), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuKernelGetFunction(&f, kernel), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0), BAD);
}

UNIT_SUITE(library, {"library", test_library})
