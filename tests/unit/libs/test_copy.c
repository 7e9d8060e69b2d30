/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cublas/copy.c: cublasSetVector and its kin. */
#include "client/libs/cublas/cublas.h"
#include "tests/unit/libs/loop.h"

static char host[4096];
#define DEVICE ((void *)0x7e0000001000)

static void test_vectors(void)
{
	/* Elements side by side are one row. */
	IS(cublasSetVector(10, 4, host, 1, DEVICE, 1), CUBLAS_STATUS_SUCCESS);
	IS(loop_copy.WidthInBytes, 40);
	IS(loop_copy.Height, 1);
	IS(loop_copy.srcMemoryType, CU_MEMORYTYPE_HOST);
	YES(loop_copy.srcHost == host);
	IS(loop_copy.dstMemoryType, CU_MEMORYTYPE_DEVICE);
	IS(loop_copy.dstDevice, (uintptr_t)DEVICE);
	NO(loop_copy_async);
	IS(cublasGetVectorAsync_64(10, 8, DEVICE, 3, host, 2, NULL), CUBLAS_STATUS_SUCCESS);
	IS(loop_copy.WidthInBytes, 8);
	IS(loop_copy.Height, 10);
	IS(loop_copy.srcPitch, 24);
	IS(loop_copy.dstPitch, 16);
	IS(loop_copy.srcDevice, (uintptr_t)DEVICE);
	YES(loop_copy.dstHost == host);
	YES(loop_copy_async);
	loop_copy = (CUDA_MEMCPY2D){0};
	IS(cublasSetVector(0, 4, host, 1, DEVICE, 1), CUBLAS_STATUS_SUCCESS);
	IS(cublasSetVector(-1, 4, host, 1, DEVICE, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetVector(1, 0, host, 1, DEVICE, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetVector(1, 4, DEVICE, 0, host, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetVector(1, 4, DEVICE, 1, NULL, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(loop_copy.Height, 0);
}

static void test_matrices(void)
{
	IS(cublasSetMatrix(3, 5, 4, host, 7, DEVICE, 9), CUBLAS_STATUS_SUCCESS);
	IS(loop_copy.WidthInBytes, 12);
	IS(loop_copy.Height, 5);
	IS(loop_copy.srcPitch, 28);
	IS(loop_copy.dstPitch, 36);
	IS(cublasGetMatrixAsync(3, 5, 4, DEVICE, 7, host, 9, NULL), CUBLAS_STATUS_SUCCESS);
	IS(loop_copy.srcMemoryType, CU_MEMORYTYPE_DEVICE);
	YES(loop_copy_async);
	IS(cublasSetMatrix(8, 5, 4, host, 7, DEVICE, 9), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMatrix(3, 5, 4, host, 7, DEVICE, 2), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMatrix(3, 0, 4, host, 7, DEVICE, 9), CUBLAS_STATUS_SUCCESS);
	loop_error = CUDA_ERROR_NO_DEVICE;
	IS(cublasSetMatrix(3, 5, 4, host, 7, DEVICE, 9), CUBLAS_STATUS_NOT_INITIALIZED);
	loop_error = CUDA_SUCCESS;
}

UNIT_SUITE(copy, {"vectors", test_vectors}, {"matrices", test_matrices})
