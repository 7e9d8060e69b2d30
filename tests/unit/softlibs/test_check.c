/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cublas/check.c: arguments that are refused, function by function, each by what is
 * wrong with it.
 */
#include "softlibs.h"

#define BAD(call) IS(call, CUBLAS_STATUS_INVALID_VALUE)
#define NO_HANDLE(call) IS(call, CUBLAS_STATUS_NOT_INITIALIZED)

#define N CUBLAS_OP_N
#define T CUBLAS_OP_T
#define C CUBLAS_OP_C
#define LOW CUBLAS_FILL_MODE_LOWER
#define LEFT CUBLAS_SIDE_LEFT
#define NON CUBLAS_DIAG_NON_UNIT

static float f[64], one = 1;

static void test_gemm(void)
{
#define GEMM(ta, tb, m, n, k, alpha, lda, ldb, beta, c, ldc)                                  \
	cublasSgemm_v2(lib_handle, (cublasOperation_t)(ta), (cublasOperation_t)(tb), m, n, k, \
		alpha, f, lda, f, ldb, beta, c, ldc)
	lib_begin();
	NO_HANDLE(cublasSgemm_v2(NULL, N, N, 1, 1, 1, &one, f, 1, f, 1, &one, f, 1));
	OK(GEMM(N, N, 2, 2, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(4, N, 2, 2, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, -1, 2, 2, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(CUBLAS_OP_CONJG, N, 2, 2, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, N, -1, 2, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, N, 2, -1, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, N, 2, 2, -1, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, N, 3, 2, 2, &one, 2, 2, &one, f, 3));
	BAD(GEMM(T, N, 2, 2, 3, &one, 2, 3, &one, f, 2));
	BAD(GEMM(N, N, 2, 2, 3, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, C, 2, 3, 2, &one, 2, 2, &one, f, 2));
	BAD(GEMM(N, N, 2, 2, 2, &one, 2, 2, &one, f, 1));
	BAD(GEMM(N, N, 0, 0, 0, &one, 0, 1, &one, f, 1));
	BAD(GEMM(N, N, 2, 2, 2, NULL, 2, 2, &one, f, 2));
	BAD(GEMM(N, N, 2, 2, 2, &one, 2, 2, NULL, f, 2));
	BAD(GEMM(N, N, 2, 2, 2, &one, 2, 2, &one, NULL, 2));
	OK(GEMM(N, N, 0, 2, 2, &one, 1, 2, &one, NULL, 1));
	BAD(cublasSgemmStridedBatched(
		lib_handle, N, N, 1, 1, 1, &one, f, 1, 1, f, 1, 1, &one, f, 1, 1, -1));
	OK(cublasSgemmStridedBatched(
		lib_handle, N, N, 1, 1, 1, &one, NULL, 1, 1, NULL, 1, 1, &one, NULL, 1, 1, 0));
	NO_HANDLE(cublasSgemmStridedBatched(
		NULL, N, N, 1, 1, 1, &one, f, 1, 1, f, 1, 1, &one, f, 1, 1, 0));
	lib_end();
}

static void test_types(void)
{
	static const struct {
		cudaDataType a, b, c;
		cublasComputeType_t compute;
	} refused[] = {
		{CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
		{CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUBLAS_COMPUTE_32F},
		{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_32F},
		{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_64F},
		{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_16F},
		{CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32I},
		{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F},
		{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, (cublasComputeType_t)3},
	};
	lib_begin();
	for (size_t i = 0; i < COUNT(refused); i++)
		IS(cublasGemmEx(lib_handle, N, N, 1, 1, 1, &one, f, refused[i].a, 1, f,
			   refused[i].b, 1, &one, f, refused[i].c, 1, refused[i].compute,
			   CUBLAS_GEMM_DEFAULT),
			CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasSgemmEx(lib_handle, N, N, 1, 1, 1, &one, f, CUDA_R_8F_E4M3, 1, f, CUDA_R_8F_E4M3,
		   1, &one, f, CUDA_R_8F_E4M3, 1),
		CUBLAS_STATUS_NOT_SUPPORTED);
	/* What no int counts, and what is not there. */
	IS(cublasSgemm_v2_64(lib_handle, N, N, 1, 1, 1, &one, f, 1ll << 31, f, 1, &one, f, 1),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasUint8gemmBias(
		   lib_handle, N, N, N, 1, 1, 1, NULL, 0, 1, NULL, 0, 1, NULL, 0, 1, 0, 0),
		CUBLAS_STATUS_NOT_SUPPORTED);
	lib_end();
}

static void test_level2(void)
{
	lib_begin();
	NO_HANDLE(cublasSgemv_v2(NULL, N, 1, 1, &one, f, 1, f, 1, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, (cublasOperation_t)9, 1, 1, &one, f, 1, f, 1, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, N, -1, 1, &one, f, 1, f, 1, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, N, 1, -1, &one, f, 1, f, 1, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, T, 2, 1, &one, f, 1, f, 1, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, N, 1, 1, &one, f, 1, f, 0, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, N, 1, 1, &one, f, 1, f, 1, &one, f, 0));
	BAD(cublasSgemv_v2(lib_handle, N, 1, 1, NULL, f, 1, f, 1, &one, f, 1));
	BAD(cublasSgemv_v2(lib_handle, N, 1, 1, &one, NULL, 1, f, 1, &one, f, 1));
	BAD(cublasSgbmv_v2(lib_handle, N, 3, 3, 1, 1, &one, f, 2, f, 1, &one, f, 1));
	BAD(cublasSgbmv_v2(lib_handle, N, 3, 3, -1, 1, &one, f, 3, f, 1, &one, f, 1));
	BAD(cublasStrmv_v2(lib_handle, (cublasFillMode_t)3, N, NON, 2, f, 2, f, 1));
	BAD(cublasStrmv_v2(lib_handle, LOW, N, (cublasDiagType_t)2, 2, f, 2, f, 1));
	BAD(cublasStrsv_v2(lib_handle, LOW, N, NON, 2, f, 1, f, 1));
	BAD(cublasStrsv_v2(lib_handle, LOW, N, NON, 2, f, 2, f, 0));
	BAD(cublasStbmv_v2(lib_handle, LOW, N, NON, 2, 1, f, 1, f, 1));
	BAD(cublasStbsv_v2(lib_handle, LOW, N, NON, 2, -1, f, 2, f, 1));
	BAD(cublasStpmv_v2(lib_handle, LOW, N, NON, -2, f, f, 1));
	BAD(cublasStpsv_v2(lib_handle, LOW, N, NON, 2, NULL, f, 1));
	BAD(cublasSsymv_v2(lib_handle, LOW, 3, &one, f, 2, f, 1, &one, f, 1));
	BAD(cublasSsymv_v2(lib_handle, CUBLAS_FILL_MODE_FULL, 3, &one, f, 3, f, 1, &one, f, 1));
	BAD(cublasSsbmv_v2(lib_handle, LOW, 3, 2, &one, f, 2, f, 1, &one, f, 1));
	BAD(cublasSspmv_v2(lib_handle, LOW, 3, &one, f, f, 1, &one, f, 0));
	BAD(cublasSger_v2(lib_handle, 3, 1, &one, f, 1, f, 1, f, 2));
	BAD(cublasSsyr_v2(lib_handle, LOW, 3, &one, f, 1, f, 2));
	BAD(cublasSsyr2_v2(lib_handle, LOW, -3, &one, f, 1, f, 1, f, 3));
	BAD(cublasSspr_v2(lib_handle, LOW, 3, &one, f, 0, f));
	BAD(cublasSspr2_v2(lib_handle, LOW, 3, NULL, f, 1, f, 1, f));
	OK(cublasSspr_v2(lib_handle, LOW, 0, &one, NULL, 1, NULL));
	lib_end();
}

static void test_level3(void)
{
	static cuComplex c[64], ci = {1, 0};
	lib_begin();
	BAD(cublasSsyrk_v2(lib_handle, LOW, N, 3, 1, &one, f, 2, &one, f, 3));
	BAD(cublasSsyrk_v2(lib_handle, LOW, T, 3, 4, &one, f, 3, &one, f, 3));
	BAD(cublasSsyrk_v2(lib_handle, LOW, N, 3, 1, &one, f, 3, &one, f, 2));
	OK(cublasSsyrk_v2(lib_handle, LOW, C, 1, 1, &one, f, 1, &one, f, 1));
	BAD(cublasCsyrk_v2(lib_handle, LOW, C, 1, 1, &ci, c, 1, &ci, c, 1));
	BAD(cublasCherk_v2(lib_handle, LOW, T, 1, 1, &one, c, 1, &one, c, 1));
	BAD(cublasSsyr2k_v2(lib_handle, LOW, N, 3, 1, &one, f, 3, f, 2, &one, f, 3));
	BAD(cublasSsyr2k_v2(lib_handle, LOW, N, 3, 1, &one, f, 3, f, 0, &one, f, 3));
	BAD(cublasSsyrkx(lib_handle, LOW, N, -3, 1, &one, f, 3, f, 3, &one, f, 3));
	BAD(cublasSsymm_v2(
		lib_handle, (cublasSideMode_t)2, LOW, 2, 2, &one, f, 2, f, 2, &one, f, 2));
	BAD(cublasSsymm_v2(lib_handle, CUBLAS_SIDE_RIGHT, LOW, 1, 3, &one, f, 2, f, 1, &one, f, 1));
	BAD(cublasStrsm_v2(lib_handle, LEFT, LOW, N, NON, 3, 1, &one, f, 2, f, 3));
	BAD(cublasStrsm_v2(lib_handle, LEFT, LOW, N, NON, 3, 1, &one, f, 3, f, 2));
	BAD(cublasStrsm_v2(lib_handle, LEFT, LOW, N, NON, -3, 1, &one, f, 3, f, 3));
	BAD(cublasStrmm_v2(lib_handle, LEFT, LOW, N, NON, 3, 1, &one, f, 3, f, 3, f, 2));
	BAD(cublasSgeam(lib_handle, N, T, 2, 3, &one, f, 2, &one, f, 2, f + 32, 2));
	BAD(cublasSgeam(lib_handle, T, N, 2, 2, &one, f, 2, &one, f + 8, 2, f, 2));
	BAD(cublasSgeam(lib_handle, N, N, 2, 2, &one, f + 8, 2, &one, f, 3, f, 2));
	BAD(cublasSdgmm(lib_handle, (cublasSideMode_t)5, 2, 2, f, 2, f, 1, f, 2));
	BAD(cublasSdgmm(lib_handle, LEFT, 2, 2, f, 2, f, 1, f, 1));
	BAD(cublasStpttr(lib_handle, LOW, 3, f, f + 8, 2));
	BAD(cublasStrttp(lib_handle, (cublasFillMode_t)7, 3, f, 3, f + 16));
	lib_end();
}

UNIT_SUITE(check, {"products", test_gemm}, {"types", test_types}, {"level 2", test_level2},
	{"level 3", test_level3})
