/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublas/check_factor.c: what factors and solutions refuse. */
#include "softlibs.h"

#define BAD(call) IS(call, CUBLAS_STATUS_INVALID_VALUE)

static void test_refused(void)
{
	int info = 5;
	float *list[1] = {NULL};
	lib_begin();
	IS(cublasSgetrfBatched(NULL, 1, list, 1, NULL, &info, 1), CUBLAS_STATUS_NOT_INITIALIZED);
	BAD(cublasSgetrfBatched(lib_handle, -1, list, 1, NULL, &info, 1));
	BAD(cublasSgetrfBatched(lib_handle, 2, list, 1, NULL, &info, 1));
	BAD(cublasSgetrfBatched(lib_handle, 1, NULL, 1, NULL, &info, 1));
	BAD(cublasSgetrfBatched(lib_handle, 1, list, 1, NULL, NULL, 1));
	BAD(cublasSgetrfBatched(lib_handle, 1, list, 1, NULL, &info, -1));
	BAD(cublasSgetriBatched(lib_handle, 2, (const float **)list, 2, NULL, list, 1, &info, 1));
	BAD(cublasSmatinvBatched(lib_handle, 33, (const float **)list, 33, list, 33, &info, 1));
	BAD(cublasSgetrsBatched(lib_handle, (cublasOperation_t)7, 1, 1, (const float **)list, 1,
		NULL, list, 1, &info, 1));
	BAD(cublasSgetrsBatched(
		lib_handle, CUBLAS_OP_N, 1, -1, (const float **)list, 1, NULL, list, 1, &info, 1));
	BAD(cublasSgetrsBatched(
		lib_handle, CUBLAS_OP_N, 1, 1, (const float **)list, 1, NULL, list, 1, NULL, 1));
	BAD(cublasSgeqrfBatched(lib_handle, 3, 1, list, 2, list, &info, 1));
	BAD(cublasSgeqrfBatched(lib_handle, 1, 1, list, 1, NULL, &info, 1));
	BAD(cublasSgelsBatched(lib_handle, CUBLAS_OP_N, 3, 1, 1, list, 3, list, 2, &info, NULL, 1));
	IS(cublasSgelsBatched(lib_handle, CUBLAS_OP_N, 1, 2, 1, list, 1, list, 1, &info, NULL, 1),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasSgelsBatched(lib_handle, CUBLAS_OP_T, 2, 2, 1, list, 2, list, 2, &info, NULL, 1),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(info, 5);
	OK(cublasSgetrfBatched(lib_handle, 1, NULL, 1, NULL, NULL, 0));
	lib_end();
}

UNIT_SUITE(check_factor, {"refused", test_refused})
