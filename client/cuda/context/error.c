/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of CUDA's errors. */
#include "cudacommon/interface.h"

struct error_text {
	int number;
	const char *name, *text;
};

static const struct error_text errors[] = {
#define CKT_ERROR(number, name, text) {number, name, text},
#include "client/cuda/context/error_table.inc"
#undef CKT_ERROR
};

static const struct error_text *find(CUresult error)
{
	size_t low = 0, high = sizeof errors / sizeof *errors;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (errors[middle].number == (int)error)
			return &errors[middle];
		if (errors[middle].number < (int)error)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

CKT_EXPORT CUresult cuGetErrorName(CUresult error, const char **ret_name)
{
	if (!ret_name)
		return CUDA_ERROR_INVALID_VALUE;
	const struct error_text *e = find(error);
	*ret_name = e ? e->name : NULL;
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CKT_EXPORT CUresult cuGetErrorString(CUresult error, const char **ret_text)
{
	if (!ret_text)
		return CUDA_ERROR_INVALID_VALUE;
	const struct error_text *e = find(error);
	*ret_text = e ? e->text : NULL;
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
