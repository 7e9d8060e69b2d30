/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/error.c: the last error of a thread, and errors' names. */
#include "files.h"

static void test_errors(void)
{
	uint32_t *memory = files_memory(1, 0);
	static const struct {
		cudaError_t error;
		const char *name, *text;
	} cases[] = {
		{cudaSuccess, "cudaSuccess", "no error"},
		{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
		{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
		{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
		{(cudaError_t)54321, "unrecognized error code", "unrecognized error code"},
		{(cudaError_t)-1, "unrecognized error code", "unrecognized error code"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		TEXT(cudaGetErrorName(cases[i].error), cases[i].name);
		TEXT(cudaGetErrorString(cases[i].error), cases[i].text);
	}
	/* The last error stays until it is asked for, also over calls that succeed. */
	IS(cudaGetLastError(), OK);
	IS(cudaMemcpy(memory, memory, 4, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	IS(cudaDeviceSynchronize(), OK);
	IS(cudaPeekAtLastError(), cudaErrorInvalidMemcpyDirection);
	IS(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
	IS(cudaGetLastError(), OK);
	IS(cudaFree(memory), OK);
}

UNIT_SUITE(error, {"errors", test_errors})
