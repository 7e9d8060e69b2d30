/* SPDX-License-Identifier: Apache-2.0 */
/* cuSPARSE: dense to CSR and back, CSR to CSC, SpMV, SpMM, SpGEMM; twice with one handle, about the mid point. */
#include "common.h"

#include <cusparse.h>

enum { N = 256, K = 16 };

struct csr {
	int *rows, *columns;
	float *values;
	int64_t count;
	cusparseSpMatDescr_t descriptor;
};

static struct csr from_dense(cusparseHandle_t handle, float *dense)
{
	struct csr m;
	cusparseDnMatDescr_t from;
	size_t bytes;
	int64_t rows, columns;
	m.rows = device<int>(N + 1);
	TRY(cusparseCreateDnMat(&from, N, N, N, dense, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	TRY(cusparseCreateCsr(&m.descriptor, N, N, 0, m.rows, NULL, NULL, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	TRY(cusparseDenseToSparse_bufferSize(handle, from, m.descriptor, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, &bytes));
	char *buffer = device<char>(bytes);
	TRY(cusparseDenseToSparse_analysis(handle, from, m.descriptor, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, buffer));
	TRY(cusparseSpMatGetSize(m.descriptor, &rows, &columns, &m.count));
	m.columns = device<int>(m.count);
	m.values = device<float>(m.count);
	TRY(cusparseCsrSetPointers(m.descriptor, m.rows, m.columns, m.values));
	TRY(cusparseDenseToSparse_convert(handle, from, m.descriptor, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, buffer));
	TRY(cusparseDestroyDnMat(from));
	CHECK(cudaFree(buffer));
	return m;
}

static void products(cusparseHandle_t handle, const struct csr &m)
{
	float one = 1, zero = 0;
	size_t bytes;
	cusparseDnVecDescr_t x, y;
	cusparseDnMatDescr_t b, c;
	float *in = device(numbers(N * K, 3)), *out = device<float>(N * K);

	TRY(cusparseCreateDnVec(&x, N, in, CUDA_R_32F));
	TRY(cusparseCreateDnVec(&y, N, out, CUDA_R_32F));
	TRY(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descriptor, x, &zero, y, CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG2, &bytes));
	char *buffer = device<char>(bytes);
	TRY(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descriptor, x, &zero, y, CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG2, buffer));
	hash("SpMV", out, N * 4);
	CHECK(cudaFree(buffer));

	TRY(cusparseCreateDnMat(&b, N, K, K, in, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	TRY(cusparseCreateDnMat(&c, N, K, K, out, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	TRY(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descriptor, b, &zero, c, CUDA_R_32F,
		CUSPARSE_SPMM_CSR_ALG3, &bytes));
	buffer = device<char>(bytes);
	TRY(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descriptor, b, &zero, c, CUDA_R_32F,
		CUSPARSE_SPMM_CSR_ALG3, buffer));
	hash("SpMM", out, N * K * 4);
	CHECK(cudaFree(buffer));
	TRY(cusparseDestroyDnVec(x));
	TRY(cusparseDestroyDnVec(y));
	TRY(cusparseDestroyDnMat(b));
	TRY(cusparseDestroyDnMat(c));
}

static void square(cusparseHandle_t handle, const struct csr &m)
{
	float one = 1, zero = 0;
	size_t first, second;
	int64_t rows, columns, count;
	cusparseSpMatDescr_t c;
	cusparseSpGEMMDescr_t state;
	const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
	int *offsets = device<int>(N + 1);
	TRY(cusparseCreateCsr(&c, N, N, 0, offsets, NULL, NULL, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	TRY(cusparseSpGEMM_createDescr(&state));
	TRY(cusparseSpGEMM_workEstimation(handle, plain, plain, &one, m.descriptor, m.descriptor, &zero, c, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, state, &first, NULL));
	char *a = device<char>(first);
	TRY(cusparseSpGEMM_workEstimation(handle, plain, plain, &one, m.descriptor, m.descriptor, &zero, c, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, state, &first, a));
	TRY(cusparseSpGEMM_compute(handle, plain, plain, &one, m.descriptor, m.descriptor, &zero, c, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, state, &second, NULL));
	char *b = device<char>(second);
	TRY(cusparseSpGEMM_compute(handle, plain, plain, &one, m.descriptor, m.descriptor, &zero, c, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, state, &second, b));
	TRY(cusparseSpMatGetSize(c, &rows, &columns, &count));
	int *indices = device<int>(count);
	float *values = device<float>(count);
	TRY(cusparseCsrSetPointers(c, offsets, indices, values));
	TRY(cusparseSpGEMM_copy(handle, plain, plain, &one, m.descriptor, m.descriptor, &zero, c, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, state));
	hash("SpGEMM offsets", offsets, (N + 1) * 4);
	hash("SpGEMM columns", indices, count * 4);
	hash("SpGEMM values", values, count * 4);
	TRY(cusparseSpGEMM_destroyDescr(state));
	TRY(cusparseDestroySpMat(c));
}

static void conversions(cusparseHandle_t handle, const struct csr &m)
{
	size_t bytes;
	int *rows = device<int>(m.count), *offsets = device<int>(N + 1);
	float *values = device<float>(m.count), *dense = device<float>(N * N);
	cusparseDnMatDescr_t to;
	TRY(cusparseCsr2cscEx2_bufferSize(handle, N, N, (int)m.count, m.values, m.rows, m.columns, values, offsets, rows, CUDA_R_32F,
		CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, &bytes));
	char *buffer = device<char>(bytes);
	TRY(cusparseCsr2cscEx2(handle, N, N, (int)m.count, m.values, m.rows, m.columns, values, offsets, rows, CUDA_R_32F, CUSPARSE_ACTION_NUMERIC,
		CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, buffer));
	hash("csc values", values, m.count * 4);
	hash("csc rows", rows, m.count * 4);
	CHECK(cudaFree(buffer));
	TRY(cusparseCreateDnMat(&to, N, N, N, dense, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	TRY(cusparseSparseToDense_bufferSize(handle, m.descriptor, to, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, &bytes));
	buffer = device<char>(bytes);
	TRY(cusparseSparseToDense(handle, m.descriptor, to, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, buffer));
	hash("dense", dense, N * N * 4);
	TRY(cusparseDestroyDnMat(to));
}

int main()
{
	cusparseHandle_t handle;
	std::vector<float> dense = numbers(N * N, 1);
	for (auto &v : dense)
		v = v < 0.4f ? 0 : v;
	TRY(cusparseCreate(&handle));
	struct csr m = from_dense(handle, device(dense));
	printf("%lld numbers\n", (long long)m.count);
	for (int half = 0; half < 2; half++) {
		products(handle, m);
		square(handle, m);
		conversions(handle, m);
		if (!half)
			phase();
	}
	TRY(cusparseDestroySpMat(m.descriptor));
	TRY(cusparseDestroy(handle));
	return finish();
}
