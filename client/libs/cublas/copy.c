/* SPDX-License-Identifier: Apache-2.0 */
/* cublasSetVector and its kin: copies between host and device, by the program's own copies. */
#include "client/libs/cublas/cublas.h"

/* Rows of `width` bytes with a pitch on either side. */
struct block {
	const void *from;
	void *to;
	size_t width, height, from_pitch, to_pitch;
	bool to_device, async;
	cudaStream_t stream;
};

static cublasStatus_t copy(const struct block *b)
{
	const struct ckt_client_table *client = ckt_client();
	CUDA_MEMCPY2D c = {.WidthInBytes = b->width,
		.Height = b->height,
		.srcPitch = b->from_pitch,
		.dstPitch = b->to_pitch};
	if (!client || client->enter())
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!b->from || !b->to)
		return CUBLAS_STATUS_INVALID_VALUE;
	c.srcMemoryType = b->to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType = b->to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	c.srcHost = b->from;
	c.dstHost = b->to;
	c.srcDevice = (uintptr_t)b->from;
	c.dstDevice = (uintptr_t)b->to;
	CUresult result = client->copy_2d(&c, (CUstream)b->stream, b->async);
	return result ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t vector(int64_t n, int64_t size, const void *from, int64_t from_step, void *to,
	int64_t to_step, struct block b)
{
	if (n < 0 || size <= 0 || from_step <= 0 || to_step <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!n)
		return CUBLAS_STATUS_SUCCESS;
	bool dense = from_step == 1 && to_step == 1;
	b.from = from;
	b.to = to;
	b.width = (size_t)(dense ? n * size : size);
	b.height = (size_t)(dense ? 1 : n);
	b.from_pitch = dense ? b.width : (size_t)(from_step * size);
	b.to_pitch = dense ? b.width : (size_t)(to_step * size);
	return copy(&b);
}

static cublasStatus_t matrix(int64_t rows, int64_t columns, int64_t size, const void *from,
	int64_t from_rows, void *to, int64_t to_rows, struct block b)
{
	if (rows < 0 || columns < 0 || size <= 0 || from_rows <= 0 || to_rows <= 0 ||
		from_rows < rows || to_rows < rows)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!rows || !columns)
		return CUBLAS_STATUS_SUCCESS;
	b.from = from;
	b.to = to;
	b.width = (size_t)(rows * size);
	b.height = (size_t)columns;
	b.from_pitch = (size_t)(from_rows * size);
	b.to_pitch = (size_t)(to_rows * size);
	return copy(&b);
}

#define TO_DEVICE                 \
	{                         \
		.to_device = true \
	}
#define TO_HOST                    \
	{                          \
		.to_device = false \
	}
#define TO_DEVICE_ASYNC                                            \
	{                                                          \
		.to_device = true, .async = true, .stream = stream \
	}
#define TO_HOST_ASYNC                                               \
	{                                                           \
		.to_device = false, .async = true, .stream = stream \
	}

/* The function with int and with int64_t. */
#define VECTOR(NAME, way, ...)                                                           \
	CKT_LIB_EXPORT cublasStatus_t NAME(                                              \
		int n, int size, const void *x, int incx, void *y, int incy __VA_ARGS__) \
	{                                                                                \
		return vector(n, size, x, incx, y, incy, (struct block)way);             \
	}                                                                                \
	CKT_LIB_EXPORT cublasStatus_t NAME##_64(int64_t n, int64_t size, const void *x,  \
		int64_t incx, void *y, int64_t incy __VA_ARGS__)                         \
	{                                                                                \
		return vector(n, size, x, incx, y, incy, (struct block)way);             \
	}
#define MATRIX(NAME, way, ...)                                                               \
	CKT_LIB_EXPORT cublasStatus_t NAME(int rows, int columns, int size, const void *a,   \
		int lda, void *b, int ldb __VA_ARGS__)                                       \
	{                                                                                    \
		return matrix(rows, columns, size, a, lda, b, ldb, (struct block)way);       \
	}                                                                                    \
	CKT_LIB_EXPORT cublasStatus_t NAME##_64(int64_t rows, int64_t columns, int64_t size, \
		const void *a, int64_t lda, void *b, int64_t ldb __VA_ARGS__)                \
	{                                                                                    \
		return matrix(rows, columns, size, a, lda, b, ldb, (struct block)way);       \
	}

VECTOR(cublasSetVector, TO_DEVICE)
VECTOR(cublasGetVector, TO_HOST)
VECTOR(cublasSetVectorAsync, TO_DEVICE_ASYNC, , cudaStream_t stream)
VECTOR(cublasGetVectorAsync, TO_HOST_ASYNC, , cudaStream_t stream)
MATRIX(cublasSetMatrix, TO_DEVICE)
MATRIX(cublasGetMatrix, TO_HOST)
MATRIX(cublasSetMatrixAsync, TO_DEVICE_ASYNC, , cudaStream_t stream)
MATRIX(cublasGetMatrixAsync, TO_HOST_ASYNC, , cudaStream_t stream)
