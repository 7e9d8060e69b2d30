/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/function.c: kernels by their stubs. */
#include "files.h"

static void test_functions(void)
{
	struct cudaFuncAttributes attributes;
	cudaFunction_t function;
	const char *name;
	static char nothing;
	const void *kernel = files_kernel();
	IS(cudaFuncGetAttributes(&attributes, kernel), OK);
	YES(attributes.maxThreadsPerBlock > 0);
	IS(cudaFuncGetAttributes(NULL, kernel), BAD);
	IS(cudaFuncGetAttributes(&attributes, NULL), cudaErrorInvalidDeviceFunction);
	YES(cudaFuncGetAttributes(&attributes, &nothing) != OK);
	IS(cudaFuncGetName(&name, kernel), OK);
	TEXT(name, "add");
	IS(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024), OK);
	IS(cudaFuncGetAttributes(&attributes, kernel), OK);
	IS(attributes.maxDynamicSharedSizeBytes, 1024);
	IS(cudaGetFuncBySymbol(&function, &nothing), cudaErrorInvalidDeviceFunction);
	cudaGetLastError();
}

UNIT_SUITE(function, {"functions", test_functions})
