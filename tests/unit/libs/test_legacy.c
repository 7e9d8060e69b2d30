/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublas/legacy.c: the handle that a context's calls go to, its error, memory,
 * characters.  Its calls: test_cublas_roundtrip.c.
 */
#include "client/libs/cublas/cublas.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/loop.h"

cublasStatus_t cublasInit(void);
cublasStatus_t cublasShutdown(void);
cublasStatus_t cublasGetError(void);
cublasStatus_t cublasGetVersion(int *version);
cublasStatus_t cublasAlloc(int n, int size, void **memory);
cublasStatus_t cublasFree(void *memory);
cublasStatus_t cublasSetKernelStream(cudaStream_t stream);
float cublasSdot(int n, const float *x, int incx, const float *y, int incy);
void cublasSgemm(char transa, char transb, int m, int n, int k, float alpha, const float *A,
	int lda, const float *B, int ldb, float beta, float *C, int ldc);

static cublasStatus_t dot(cublasHandle_t handle, int n, const float *x, int incx, const float *y,
	int incy, float *result)
{
	*result = 42;
	return (cublasStatus_t)double_cublas.status;
}

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t transa,
	cublasOperation_t transb, int m, int n, int k, const float *alpha, const float *A, int lda,
	const float *B, int ldb, const float *beta, float *C, int ldc)
{
	double_cublas.calls++;
	return CUBLAS_STATUS_SUCCESS;
}

static void begin(void)
{
	double_basics();
	ckt_cublas.cublasSdot_v2 = dot;
	ckt_cublas.cublasSgemm_v2 = gemm;
}

/* One handle for a context, made by its first call and again after its end. */
static void test_life(void)
{
	int version = 0;
	begin();
	IS(cublasInit(), CUBLAS_STATUS_SUCCESS);
	IS(cublasInit(), CUBLAS_STATUS_SUCCESS);
	IS(double_cublas.created, 1);
	IS(cublasGetVersion(&version), CUBLAS_STATUS_SUCCESS);
	IS(version, 130100);
	IS(cublasShutdown(), CUBLAS_STATUS_SUCCESS);
	IS(cublasShutdown(), CUBLAS_STATUS_SUCCESS);
	loop_deferred();
	IS(double_cublas.destroyed, 1);
	IS(cublasSdot(2, NULL, 1, NULL, 1), 42);
	IS(double_cublas.created, 2);
	IS(cublasShutdown(), CUBLAS_STATUS_SUCCESS);
	double_cublas.status = CUBLAS_STATUS_ALLOC_FAILED;
	IS(cublasInit(), CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasGetError(), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasSdot(2, NULL, 1, NULL, 1), 0);
	begin();
	IS(loop_deferred(), CUDA_SUCCESS);
}

/* The last call's status, once. */
static void test_error(void)
{
	begin();
	IS(cublasGetError(), CUBLAS_STATUS_SUCCESS);
	double_cublas.status = CUBLAS_STATUS_EXECUTION_FAILED;
	IS(cublasSdot(2, NULL, 1, NULL, 1), 0);
	IS(cublasGetError(), CUBLAS_STATUS_EXECUTION_FAILED);
	IS(cublasGetError(), CUBLAS_STATUS_SUCCESS);
	double_cublas.status = 0;
	unsigned calls = double_cublas.calls;
	cublasSgemm('n', 'x', 2, 2, 2, 1, NULL, 2, NULL, 2, 0, NULL, 2);
	IS(double_cublas.calls, calls);
	IS(cublasGetError(), CUBLAS_STATUS_INVALID_VALUE);
	cublasSgemm('n', 'x', 2, 2, 2, 1, NULL, 2, NULL, 2, 0, NULL, 2);
	cublasSgemm('C', 't', 2, 2, 2, 1, NULL, 2, NULL, 2, 0, NULL, 2);
	IS(cublasGetError(), CUBLAS_STATUS_SUCCESS);
	IS(cublasSetKernelStream((cudaStream_t)0x777777), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetKernelStream(NULL), CUBLAS_STATUS_SUCCESS);
	IS(cublasShutdown(), CUBLAS_STATUS_SUCCESS);
	IS(loop_deferred(), CUDA_SUCCESS);
}

static void test_memory(void)
{
	void *memory = &memory;
	begin();
	IS(cublasAlloc(0, 4, &memory), CUBLAS_STATUS_INVALID_VALUE);
	YES(memory == NULL);
	IS(cublasAlloc(4, -1, &memory), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasAlloc(4, 4, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasAlloc(100, 8, &memory), CUBLAS_STATUS_SUCCESS);
	YES(memory != NULL);
	IS(cublasFree(memory), CUBLAS_STATUS_SUCCESS);
	IS(cublasFree(NULL), CUBLAS_STATUS_SUCCESS);
	IS(loop_deferred(), CUDA_SUCCESS);
}

UNIT_SUITE(legacy, {"life", test_life}, {"error", test_error}, {"memory", test_memory})
