/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/context/error.c: names and texts of errors. */
#include <string.h>

#include "relay.h"

static void test_errors(void)
{
	const char *name, *text;
	unsigned known = 0;
	for (int i = -1; i < 1100; i++) {
		name = text = "x";
		CUresult result = cuGetErrorName((CUresult)i, &name);
		IS(cuGetErrorString((CUresult)i, &text), result);
		IS(name != NULL, result == CUDA_SUCCESS);
		IS(text != NULL, result == CUDA_SUCCESS);
		known += result == CUDA_SUCCESS;
		if (!result)
			YES(!strncmp(name, "CUDA_", 5) && *text);
	}
	YES(known > 90);
	LOCAL(cuGetErrorName(CUDA_ERROR_UNKNOWN, &name), CUDA_SUCCESS);
	TEXT(name, "CUDA_ERROR_UNKNOWN");
	IS(cuGetErrorName(CUDA_SUCCESS, NULL), BAD);
	IS(cuGetErrorString(CUDA_SUCCESS, NULL), BAD);
}

UNIT_SUITE(error, {"errors", test_errors})
