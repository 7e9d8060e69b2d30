/* SPDX-License-Identifier: Apache-2.0 */
/* See xt_bench.h. */
#include "tests/unit/libs/xt_bench.h"

#include <stdlib.h>
#include <string.h>

unsigned bench_calls, bench_allocated, bench_entered, bench_copies;
bool bench_fails;
static const struct ckt_client_table *before;
static struct ckt_client_table table;
static struct {
	uintptr_t from, to;
	int device;
} places[4];
static unsigned place_count;

static CUresult count_devices(int *ret_count)
{
	*ret_count = BENCH_DEVICES;
	return CUDA_SUCCESS;
}

static CUresult retain(CUcontext *ret_context, int ordinal)
{
	*ret_context = (CUcontext)(uintptr_t)(ordinal + 1);
	return CUDA_SUCCESS;
}

static CUresult release_device(int ordinal)
{
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	bench_entered++;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ret_context)
{
	bench_entered--;
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *ret_stream, unsigned flags)
{
	*ret_stream = NULL;
	return CUDA_SUCCESS;
}

static CUresult stream_done(CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult pointer_attribute(
	void *ret_value, CUpointer_attribute attribute, CUdeviceptr address)
{
	for (unsigned i = 0; i < place_count; i++) {
		if (address < places[i].from || address >= places[i].to)
			continue;
		*(int *)ret_value = attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE
			? CU_MEMORYTYPE_DEVICE
			: attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? places[i].device
									   : 0;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static const struct ckt_client_devices devices = {count_devices, retain, release_device, push, pop,
	stream_create, stream_done, stream_done, pointer_attribute};

static CUresult allocate(size_t bytes, uint64_t *ret_address)
{
	if (bench_fails)
		return CUDA_ERROR_OUT_OF_MEMORY;
	void *memory = malloc(bytes);
	memset(memory, 0xee, bytes);
	*ret_address = (uintptr_t)memory;
	bench_allocated++;
	return CUDA_SUCCESS;
}

static CUresult give_back(uint64_t address)
{
	free((void *)(uintptr_t)address);
	bench_allocated--;
	return CUDA_SUCCESS;
}

static CUresult copy(const CUDA_MEMCPY2D *c, CUstream stream, bool async)
{
	const uint8_t *from = c->srcMemoryType == CU_MEMORYTYPE_HOST
		? c->srcHost
		: (const void *)(uintptr_t)c->srcDevice;
	uint8_t *to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost
							     : (void *)(uintptr_t)c->dstDevice;
	for (size_t row = 0; row < c->Height; row++)
		memcpy(to + row * c->dstPitch, from + row * c->srcPitch, c->WidthInBytes);
	bench_copies++;
	return CUDA_SUCCESS;
}

static double at(const double *a, int64_t ld, cublasOperation_t op, int64_t i, int64_t j)
{
	return op == CUBLAS_OP_N ? a[i + j * ld] : a[j + i * ld];
}

void bench_gemm(cublasOperation_t transa, cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
	double alpha, const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
	double *c, int64_t ldc)
{
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++) {
			double sum = 0;
			for (int64_t l = 0; l < k; l++)
				sum += at(a, lda, transa, i, l) * at(b, ldb, transb, l, j);
			c[i + j * ldc] = alpha * sum + (beta == 0 ? 0 : beta * c[i + j * ldc]);
		}
}

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t transa,
	cublasOperation_t transb, int64_t m, int64_t n, int64_t k, const double *alpha,
	const double *a, int64_t lda, const double *b, int64_t ldb, const double *beta, double *c,
	int64_t ldc)
{
	bench_calls++;
	bench_gemm(transa, transb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t syrk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
	int64_t n, int64_t k, const double *alpha, const double *a, int64_t lda, const double *beta,
	double *c, int64_t ldc)
{
	bench_calls++;
	cublasOperation_t other = trans == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < n; i++)
			if (uplo == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j) {
				double sum = 0;
				for (int64_t l = 0; l < k; l++)
					sum += at(a, lda, trans, i, l) * at(a, lda, other, l, j);
				c[i + j * ldc] =
					*alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * ldc]);
			}
	return CUBLAS_STATUS_SUCCESS;
}

/* On the left, of what op(a) makes a lower triangle, not unit: all that the tests use. */
static cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
	cublasOperation_t trans, cublasDiagType_t diag, int64_t m, int64_t n, const double *alpha,
	const double *a, int64_t lda, double *b, int64_t ldb)
{
	bench_calls++;
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++) {
			double sum = *alpha * b[i + j * ldb];
			for (int64_t l = 0; l < i; l++)
				sum -= at(a, lda, trans, i, l) * b[l + j * ldb];
			b[i + j * ldb] = sum / at(a, lda, trans, i, i);
		}
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t trmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
	cublasOperation_t trans, cublasDiagType_t diag, int64_t m, int64_t n, const double *alpha,
	const double *a, int64_t lda, const double *b, int64_t ldb, double *c, int64_t ldc)
{
	bench_calls++;
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = m - 1; i >= 0; i--) {
			double sum = 0;
			for (int64_t l = 0; l <= i; l++)
				sum += at(a, lda, trans, i, l) * b[l + j * ldb];
			c[i + j * ldc] = *alpha * sum;
		}
	return CUBLAS_STATUS_SUCCESS;
}

cublasXtHandle_t bench_begin(int block)
{
	cublasXtHandle_t handle;
	int both[BENCH_DEVICES] = {0, 1};
	double_basics();
	ckt_cublas.cublasDgemm_v2_64 = gemm;
	ckt_cublas.cublasDsyrk_v2_64 = syrk;
	ckt_cublas.cublasDtrsm_v2_64 = trsm;
	ckt_cublas.cublasDtrmm_v2_64 = trmm;
	before = ckt_client_found;
	table = *before;
	table.devices = &devices;
	table.workspace_alloc = allocate;
	table.workspace_free = give_back;
	table.copy_2d = copy;
	ckt_client_found = &table;
	place_count = 0;
	MUST(cublasXtCreate(&handle), CUBLAS_STATUS_SUCCESS);
	MUST(cublasXtDeviceSelect(handle, BENCH_DEVICES, both), CUBLAS_STATUS_SUCCESS);
	MUST(cublasXtSetBlockDim(handle, block), CUBLAS_STATUS_SUCCESS);
	bench_calls = bench_copies = 0;
	return handle;
}

void bench_end(cublasXtHandle_t handle)
{
	IS(cublasXtDestroy(handle), CUBLAS_STATUS_SUCCESS);
	IS(bench_allocated, 0);
	IS(bench_entered, 0);
	IS(double_cublas.destroyed, double_cublas.created);
	IS(loop_deferred(), CUDA_SUCCESS);
	ckt_client_found = before;
}

void bench_on_device(const void *memory, size_t bytes, int device)
{
	places[place_count].from = (uintptr_t)memory;
	places[place_count].to = (uintptr_t)memory + bytes;
	places[place_count++].device = device;
}

void bench_fill(double *values, size_t count, int seed)
{
	for (size_t i = 0; i < count; i++)
		values[i] = (double)((int)(i * 7 + (size_t)seed) % 11 - 5);
}
