/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublas/xt.c: handles, devices, what is refused of them, and blocks on the way to a
 * device.
 */
#include "tests/unit/libs/xt_bench.h"

static void test_handles(void)
{
	int number = 0, both[] = {0, 1}, twice[] = {1, 1}, none[] = {0, 2};
	cublasXtPinnedMemMode_t mode;
	cublasXtHandle_t handle = bench_begin(7);
	IS(double_cublas.created, 2);
	IS(cublasXtGetBlockDim(handle, &number), CUBLAS_STATUS_SUCCESS);
	IS(number, 7);
	IS(cublasXtSetBlockDim(handle, 0), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtSetBlockDim(NULL, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtGetPinningMemMode(handle, &mode), CUBLAS_STATUS_SUCCESS);
	IS(mode, CUBLASXT_PINNING_DISABLED);
	IS(cublasXtSetPinningMemMode(handle, CUBLASXT_PINNING_ENABLED), CUBLAS_STATUS_SUCCESS);
	IS(cublasXtGetPinningMemMode(handle, &mode), CUBLAS_STATUS_SUCCESS);
	IS(mode, CUBLASXT_PINNING_ENABLED);
	IS(cublasXtSetPinningMemMode(handle, (cublasXtPinnedMemMode_t)2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDeviceSelect(handle, 2, none), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDeviceSelect(handle, 0, both), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDeviceSelect(handle, 1, NULL), CUBLAS_STATUS_INVALID_VALUE);
	/* Others in their stead. */
	IS(cublasXtDeviceSelect(handle, 1, both), CUBLAS_STATUS_SUCCESS);
	IS(double_cublas.created, 3);
	IS(double_cublas.destroyed, 2);
	IS(cublasXtMaxBoards(&number), CUBLAS_STATUS_SUCCESS);
	IS(number, 2);
	IS(cublasXtGetNumBoards(2, both, &number), CUBLAS_STATUS_SUCCESS);
	IS(number, 2);
	IS(cublasXtGetNumBoards(2, twice, &number), CUBLAS_STATUS_SUCCESS);
	IS(number, 1);
	IS(cublasXtSetCpuRoutine(handle, CUBLASXT_GEMM, CUBLASXT_DOUBLE, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasXtSetCpuRatio(handle, CUBLASXT_GEMM, CUBLASXT_DOUBLE, 0.5f),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasXtSetCpuRatio(handle, CUBLASXT_GEMM, CUBLASXT_DOUBLE, 1.5f),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtSetCpuRatio(handle, CUBLASXT_HERK, CUBLASXT_DOUBLE, 0.5f),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasXtSetCpuRatio(handle, CUBLASXT_TRMM, CUBLASXT_COMPLEX, 0.5f),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasXtSetCpuRatio(handle, CUBLASXT_ROUTINE_MAX, CUBLASXT_COMPLEX, 0.5f),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDestroy(NULL), CUBLAS_STATUS_INVALID_VALUE);
	bench_end(handle);
}

/* What lies on the device is used there; what is packed comes without what is not stored. */
static void test_blocks(void)
{
	double full[5 * 6], packed[15], tile[4];
	static const struct ckt_xt_type type = {.size = sizeof(double), .wide = true};
	cublasXtHandle_t handle = bench_begin(2);
	struct ckt_xt_job job = {.own = handle, .type = &type, .block = 2};
	struct ckt_xt_tile got;
	for (int i = 0; i < 30; i++)
		full[i] = i;
	struct ckt_xt_matrix matrix = {.data = full, .ld = 6, .rows = 5, .columns = 5};
	ckt_xt_place(&matrix);
	IS(matrix.device, -1);
	IS(ckt_xt_fetch(&job, &handle->devices[0], CKT_XT_LEFT, &matrix, 2, 1, &got),
		CUBLAS_STATUS_SUCCESS);
	/* Row 4 alone of columns 2 and 3. */
	IS(got.ld, 2);
	IS(((const double *)got.data)[0], 16);
	IS(((const double *)got.data)[2], 22);
	bench_on_device(full, sizeof full, 1);
	ckt_xt_place(&matrix);
	IS(matrix.device, 1);
	IS(ckt_xt_fetch(&job, &handle->devices[1], CKT_XT_LEFT, &matrix, 1, 1, &got),
		CUBLAS_STATUS_SUCCESS);
	YES(got.data == full + 2 + 2 * 6 && got.ld == 6);
	/* On another device than the one that computes it is copied. */
	IS(ckt_xt_fetch(&job, &handle->devices[0], CKT_XT_LEFT, &matrix, 1, 1, &got),
		CUBLAS_STATUS_SUCCESS);
	YES(got.data != full + 2 + 2 * 6 && got.ld == 2);
	/* Lower, 5 x 5: column 2 begins at 9 with its diagonal element. */
	for (int i = 0; i < 15; i++)
		packed[i] = 100 + i;
	struct ckt_xt_matrix half = {.data = packed,
		.ld = 1,
		.rows = 5,
		.columns = 5,
		.form = CKT_XT_PACKED,
		.uplo = CUBLAS_FILL_MODE_LOWER,
		.device = -1};
	IS(ckt_xt_fetch(&job, &handle->devices[0], CKT_XT_RIGHT, &half, 1, 1, &got),
		CUBLAS_STATUS_SUCCESS);
	memcpy(tile, got.data, sizeof tile);
	IS(tile[0], 109);
	IS(tile[1], 110);
	IS(tile[3], 112);
	half.uplo = CUBLAS_FILL_MODE_UPPER;
	IS(ckt_xt_fetch(&job, &handle->devices[0], CKT_XT_RIGHT, &half, 0, 1, &got),
		CUBLAS_STATUS_SUCCESS);
	memcpy(tile, got.data, sizeof tile);
	/* Column 2 begins at 3, column 3 at 6, both with row 0. */
	IS(tile[0], 103);
	IS(tile[1], 104);
	IS(tile[2], 106);
	IS(tile[3], 107);
	bench_end(handle);
}

static void test_scalars(void)
{
	static const struct ckt_xt_type small = {.size = 8, .complex = true},
					wide = {.size = 8, .wide = true};
	float imaginary[2] = {0, 1}, nothing[2] = {0, -0.0f};
	double zero = 0, one = 1;
	NO(ckt_xt_is_zero(&small, imaginary));
	YES(ckt_xt_is_zero(&small, nothing));
	YES(ckt_xt_is_zero(&wide, &zero));
	NO(ckt_xt_is_zero(&wide, &one));
	IS(*(const float *)ckt_xt_one(&small), 1);
	IS(*(const double *)ckt_xt_minus_one(&wide), -1);
}

UNIT_SUITE(xt, {"handles", test_handles}, {"blocks", test_blocks}, {"scalars", test_scalars})
