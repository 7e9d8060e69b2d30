/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies vectors and matrices between the host and the device with the driver's two-dimensional
 * copies.
 */
#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/cublas/handle.h"

/* Copies height pieces of width bytes; the pitches are in bytes. */
static cublasStatus_t copy(uint64_t from, size_t from_pitch, uint64_t to, size_t to_pitch,
	size_t width, size_t height, const CUstream *stream)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext context;
	if (!width || !height)
		return CUBLAS_STATUS_SUCCESS;
	if (!d || ckt_softlib_context(&context) != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	/* With unified addressing, the driver knows the side of each address. */
	CUDA_MEMCPY2D what = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = from,
		.srcPitch = from_pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = to,
		.dstPitch = to_pitch,
		.WidthInBytes = width,
		.Height = height,
	};
	CUresult result = stream ? d->memcpy_2d_async(&what, *stream) : d->memcpy_2d(&what);
	return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t vector(int64_t n, int64_t size, const void *x, int64_t incx, void *y,
	int64_t incy, const CUstream *stream)
{
	if (n < 0 || size <= 0 || incx <= 0 || incy <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (n && (!x || !y))
		return CUBLAS_STATUS_INVALID_VALUE;
	return copy((uintptr_t)x, (size_t)(incx * size), (uintptr_t)y, (size_t)(incy * size),
		(size_t)size, (size_t)n, stream);
}

static cublasStatus_t matrix(int64_t rows, int64_t cols, int64_t size, const void *a, int64_t lda,
	void *b, int64_t ldb, const CUstream *stream)
{
	if (rows < 0 || cols < 0 || size <= 0 || lda <= 0 || ldb <= 0 || lda < rows || ldb < rows)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (rows && cols && (!a || !b))
		return CUBLAS_STATUS_INVALID_VALUE;
	return copy((uintptr_t)a, (size_t)(lda * size), (uintptr_t)b, (size_t)(ldb * size),
		(size_t)(rows * size), (size_t)cols, stream);
}

#define VECTOR(name, type)                                                           \
	CKT_CUBLAS_API cublasStatus_t name(                                          \
		type n, type elemSize, const void *x, type incx, void *y, type incy) \
	{                                                                            \
		return vector(n, elemSize, x, incx, y, incy, NULL);                  \
	}
#define VECTOR_ASYNC(name, type)                                                            \
	CKT_CUBLAS_API cublasStatus_t name(type n, type elemSize, const void *x, type incx, \
		void *y, type incy, cudaStream_t stream)                                    \
	{                                                                                   \
		CUstream on = (CUstream)stream;                                             \
		return vector(n, elemSize, x, incx, y, incy, &on);                          \
	}
#define MATRIX(name, type)                                                                       \
	CKT_CUBLAS_API cublasStatus_t name(                                                      \
		type rows, type cols, type elemSize, const void *A, type lda, void *B, type ldb) \
	{                                                                                        \
		return matrix(rows, cols, elemSize, A, lda, B, ldb, NULL);                       \
	}
#define MATRIX_ASYNC(name, type)                                                               \
	CKT_CUBLAS_API cublasStatus_t name(type rows, type cols, type elemSize, const void *A, \
		type lda, void *B, type ldb, cudaStream_t stream)                              \
	{                                                                                      \
		CUstream on = (CUstream)stream;                                                \
		return matrix(rows, cols, elemSize, A, lda, B, ldb, &on);                      \
	}

VECTOR(cublasSetVector, int)
VECTOR(cublasGetVector, int)
VECTOR(cublasSetVector_64, int64_t)
VECTOR(cublasGetVector_64, int64_t)
VECTOR_ASYNC(cublasSetVectorAsync, int)
VECTOR_ASYNC(cublasGetVectorAsync, int)
VECTOR_ASYNC(cublasSetVectorAsync_64, int64_t)
VECTOR_ASYNC(cublasGetVectorAsync_64, int64_t)
MATRIX(cublasSetMatrix, int)
MATRIX(cublasGetMatrix, int)
MATRIX(cublasSetMatrix_64, int64_t)
MATRIX(cublasGetMatrix_64, int64_t)
MATRIX_ASYNC(cublasSetMatrixAsync, int)
MATRIX_ASYNC(cublasGetMatrixAsync, int)
MATRIX_ASYNC(cublasSetMatrixAsync_64, int64_t)
MATRIX_ASYNC(cublasGetMatrixAsync_64, int64_t)
