/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublasLt/transform.c: from one type, order and batch to another. */
#include "lt.h"

enum { M = 4, N = 3, BATCH = 2 };

static cublasStatus_t call(cublasLtMatrixTransformDesc_t transform, const float *alpha,
	const struct lib_array *a, cublasLtMatrixLayout_t la, const float *beta,
	const struct lib_array *b, cublasLtMatrixLayout_t lb, const struct lib_array *c,
	cublasLtMatrixLayout_t lc)
{
	return cublasLtMatrixTransform((cublasLtHandle_t)lib_handle, transform, alpha,
		a ? a->p : NULL, la, beta, b ? b->p : NULL, lb, c ? c->p : NULL, lc,
		(cudaStream_t)lib_stream);
}

/* Row or column order and op of both, of types that differ. */
static void test_orders(void)
{
	float alpha = 2, beta = -0.5;
	lib_begin();
	for (int o = 0; o < 32; o++) {
		bool row_a = o & 1, row_b = o & 2, row_c = o & 4, op_a = o & 8, op_b = o & 16;
		struct lib_array a = lib_array(CUDA_R_16F, 20 * BATCH),
				 b = lib_array(CUDA_R_32F, 20 * BATCH),
				 c = lib_array(CUDA_R_32F, 20 * BATCH);
		int ra = op_a ? N : M, ca = op_a ? M : N, rb = op_b ? N : M, cb = op_b ? M : N;
		int lda = (row_a ? ca : ra) + 1, ldb = (row_b ? cb : rb) + 1,
		    ldc = (row_c ? N : M) + 1;
		cublasLtMatrixLayoutOpaque_t la = lt_layout(a.type, (uint64_t)ra, (uint64_t)ca, lda,
						     row_a, BATCH, 20),
					     lb = lt_layout(b.type, (uint64_t)rb, (uint64_t)cb, ldb,
						     row_b, BATCH, 20),
					     lc = lt_layout(c.type, M, N, ldc, row_c, BATCH, 20);
		cublasLtMatrixTransformDescOpaque_t transform;
		int32_t opa = op_a ? CUBLAS_OP_T : CUBLAS_OP_N,
			opb = op_b ? CUBLAS_OP_T : CUBLAS_OP_N;
		OK(cublasLtMatrixTransformDescInit(&transform, CUDA_R_32F));
		OK(cublasLtMatrixTransformDescSetAttribute(
			&transform, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &opa, sizeof opa));
		OK(cublasLtMatrixTransformDescSetAttribute(
			&transform, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, &opb, sizeof opb));
#define AT(e, row, ld, i, j) (20 * (e) + ((row) ? (i) * (ld) + (j) : (i) + (j) * (ld)))
		for (int e = 0; e < BATCH; e++)
			for (int i = 0; i < M; i++)
				for (int j = 0; j < N; j++) {
					double x = creal(lib_get(a.p, a.type,
						op_a ? AT(e, row_a, lda, j, i)
						     : AT(e, row_a, lda, i, j)));
					double y = creal(lib_get(b.p, b.type,
						op_b ? AT(e, row_b, ldb, j, i)
						     : AT(e, row_b, ldb, i, j)));
					lib_set(c.expected, c.type, AT(e, row_c, ldc, i, j),
						2 * x - 0.5 * y);
				}
		OK(call(&transform, &alpha, &a, &la, &beta, &b, &lb, &c, &lc));
		YES(lib_same(&c, 0));
		lib_free(&a);
		lib_free(&b);
		lib_free(&c);
	}
	lib_end();
}

static void test_one_and_refused(void)
{
	float one = 1;
	lib_begin();
	struct lib_array a = lib_array(CUDA_R_32F, M * N), c = lib_array(CUDA_R_8I, M * N);
	cublasLtMatrixLayoutOpaque_t la = lt_layout(a.type, M, N, M, false, 1, 0),
				     lc = lt_layout(c.type, M, N, N, true, 1, 0),
				     turned = lt_layout(c.type, N, M, N, false, 1, 0);
	cublasLtMatrixTransformDescOpaque_t transform;
	OK(cublasLtMatrixTransformDescInit(&transform, CUDA_R_32F));
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			lib_set(c.expected, c.type, i * N + j, lib_get(a.p, a.type, i + j * M));
	/* Without B its factor and layout may be missing. */
	OK(call(&transform, &one, &a, &la, NULL, NULL, NULL, &c, &lc));
	YES(lib_same(&c, 0));
	IS(call(&transform, NULL, &a, &la, NULL, NULL, NULL, &c, &lc), CUBLAS_STATUS_INVALID_VALUE);
	IS(call(&transform, &one, &a, NULL, NULL, NULL, NULL, &c, &lc),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(call(&transform, &one, &a, &la, NULL, NULL, NULL, &c, &turned),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(call(&transform, &one, &a, &la, NULL, NULL, NULL, NULL, &lc),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(call(NULL, &one, &a, &la, NULL, NULL, NULL, &c, &lc), CUBLAS_STATUS_INVALID_VALUE);
	IS(call(&transform, &one, NULL, &la, NULL, NULL, NULL, &c, &lc),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(
		   NULL, &transform, &one, a.p, &la, NULL, NULL, NULL, c.p, &lc, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	lib_free(&a);
	lib_free(&c);
	lib_end();
}

UNIT_SUITE(transform, {"orders, types and batches", test_orders},
	{"one matrix, and refused", test_one_and_refused})
