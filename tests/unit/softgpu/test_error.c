/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/context/error.c: every CUresult of cuda.h has its name and a description. */
#include "files.h"
#include "softgpu/gen.h"

static void test_every(void)
{
	unsigned by_name = 0;
	YES(ckt_soft_error_count > 90);
	for (size_t i = 0; i < ckt_soft_error_count; i++) {
		const char *name = NULL, *text = NULL;
		OK(cuGetErrorName(ckt_soft_errors[i].code, &name));
		OK(cuGetErrorString(ckt_soft_errors[i].code, &text));
		TEXT(name, ckt_soft_errors[i].name);
		YES(text && strlen(text) > 3);
		by_name += text && name && !strcmp(text, name);
		YES(!strncmp(name, "CUDA_", 5));
	}
	/* A description is the rule, the name in its stead the exception. */
	YES(by_name * 4 < ckt_soft_error_count);
}

static void test_some(void)
{
	static const struct {
		CUresult code;
		const char *name, *text;
	} table[] = {
		{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
		{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
		{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
		{CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
			"an illegal memory access was encountered"},
		{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
	};
	const char *text;
	for (size_t i = 0; i < COUNT(table); i++) {
		OK(cuGetErrorName(table[i].code, &text));
		TEXT(text, table[i].name);
		OK(cuGetErrorString(table[i].code, &text));
		TEXT(text, table[i].text);
	}
	static const int none[] = {-1, 9, 12345, INT32_MAX};
	for (size_t i = 0; i < COUNT(none); i++) {
		text = "left";
		IS(cuGetErrorName((CUresult)none[i], &text), CUDA_ERROR_INVALID_VALUE);
		YES(text == NULL);
		text = "left";
		IS(cuGetErrorString((CUresult)none[i], &text), CUDA_ERROR_INVALID_VALUE);
		YES(text == NULL);
	}
	IS(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
	IS(cuGetErrorString(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(softgpu / context / error, {"every", test_every}, {"some", test_some})
