/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cublasXt.h: each is one product or triangle of xt.h. */
#include "client/libs/cublas/xt.h"

#include <string.h>

#define FN(type, function) ((type *)(void *)(function))
#define TYPE(T, size_, complex_, wide_)                            \
	static const struct ckt_xt_type type_##T = {.size = size_, \
		.complex = complex_,                               \
		.wide = wide_,                                     \
		.gemm = FN(ckt_xt_gemm, cublas##T##gemm_v2_64),    \
		.symm = FN(ckt_xt_symm, cublas##T##symm_v2_64),    \
		.trsm = FN(ckt_xt_trsm, cublas##T##trsm_v2_64),    \
		.trmm = FN(ckt_xt_trmm, cublas##T##trmm_v2_64)};
TYPE(S, sizeof(float), false, false)
TYPE(D, sizeof(double), false, true)
TYPE(C, sizeof(cuComplex), true, false)
TYPE(Z, sizeof(cuDoubleComplex), true, true)

static struct ckt_xt_type hermitian(const struct ckt_xt_type *type)
{
	struct ckt_xt_type made = *type;
	made.symm = type->wide ? FN(ckt_xt_symm, cublasZhemm_v2_64)
			       : FN(ckt_xt_symm, cublasChemm_v2_64);
	return made;
}

static struct ckt_xt_matrix stored(const void *data, size_t rows, size_t columns, size_t ld)
{
	return (struct ckt_xt_matrix){.data = data, .ld = ld, .rows = rows, .columns = columns};
}

static struct ckt_xt_matrix half(
	const void *data, size_t n, size_t ld, cublasFillMode_t uplo, enum ckt_xt_form form)
{
	return (struct ckt_xt_matrix){
		.data = data, .ld = ld, .rows = n, .columns = n, .form = form, .uplo = uplo};
}

/* op(matrix) of rows x columns. */
static struct ckt_xt_factor general(
	const void *data, cublasOperation_t op, size_t rows, size_t columns, size_t ld)
{
	bool transposed = op != CUBLAS_OP_N;
	return (struct ckt_xt_factor){.matrix = stored(data, transposed ? columns : rows,
					      transposed ? rows : columns, ld),
		.op = op};
}

static bool op_ok(cublasOperation_t op)
{
	return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

static bool uplo_ok(cublasFillMode_t uplo)
{
	return uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER;
}

static bool side_ok(cublasSideMode_t side)
{
	return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
}

static bool ld_ok(size_t ld, size_t rows)
{
	return ld >= (rows > 1 ? rows : 1);
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* No blocks larger than the matrices. */
static struct ckt_xt_job job_of(
	struct cublasXtContext *own, const struct ckt_xt_type *type, size_t a, size_t b, size_t c)
{
	size_t most = larger(a, larger(b, c)), block = (size_t)own->block;
	return (struct ckt_xt_job){.own = own,
		.type = type,
		.block = block < most ? block
			: most        ? most
				      : 1};
}

/* ---- gemm, symm, hemm, spmm */

static cublasStatus_t gemm(cublasXtHandle_t handle, const struct ckt_xt_type *type,
	cublasOperation_t transa, cublasOperation_t transb, size_t m, size_t n, size_t k,
	const void *alpha, const void *a, size_t lda, const void *b, size_t ldb, const void *beta,
	void *c, size_t ldc)
{
	cublasStatus_t status;
	struct cublasXtContext *own = ckt_xt_take(handle, &status);
	if (!own)
		return status;
	if (!op_ok(transa) || !op_ok(transb) || !alpha || !beta ||
		!ld_ok(lda, transa == CUBLAS_OP_N ? m : k) ||
		!ld_ok(ldb, transb == CUBLAS_OP_N ? k : n) || !ld_ok(ldc, m))
		return CUBLAS_STATUS_INVALID_VALUE;
	/*
	 * Seen on an H200: without a product NVIDIA's leaves C as it is and does not scale it,
	 * unlike cublas*gemm.
	 */
	if (!k)
		return CUBLAS_STATUS_SUCCESS;
	struct ckt_xt_product p = {.left = general(a, transa, m, k, lda),
		.right = general(b, transb, k, n, ldb),
		.alpha = alpha,
		.beta = beta,
		.result = stored(c, m, n, ldc),
		.m = m,
		.n = n,
		.k = k};
	struct ckt_xt_job job = job_of(own, type, m, n, k);
	return ckt_xt_product(&job, &p);
}

/* What symm, hemm and spmm have in common; a: the symmetric factor. */
static cublasStatus_t symmetric(cublasXtHandle_t handle, const struct ckt_xt_type *type,
	cublasSideMode_t side, struct ckt_xt_factor a, size_t m, size_t n, const void *alpha,
	const void *b, size_t ldb, const void *beta, void *c, size_t ldc)
{
	cublasStatus_t status;
	struct cublasXtContext *own = ckt_xt_take(handle, &status);
	if (!own)
		return status;
	bool left = side == CUBLAS_SIDE_LEFT;
	size_t order = left ? m : n;
	if (!side_ok(side) || !uplo_ok(a.matrix.uplo) || !alpha || !beta ||
		!ld_ok(a.matrix.ld, a.matrix.form == CKT_XT_PACKED ? 1 : order) || !ld_ok(ldb, m) ||
		!ld_ok(ldc, m))
		return CUBLAS_STATUS_INVALID_VALUE;
	a.symmetric = true;
	a.matrix.rows = a.matrix.columns = order;
	struct ckt_xt_factor other = general(b, CUBLAS_OP_N, m, n, ldb);
	struct ckt_xt_product p = {.left = left ? a : other,
		.right = left ? other : a,
		.alpha = alpha,
		.beta = beta,
		.result = stored(c, m, n, ldc),
		.m = m,
		.n = n,
		.k = order};
	struct ckt_xt_job job = job_of(own, type, m, n, 0);
	return ckt_xt_product(&job, &p);
}

/* ---- Rank k */

enum rank { RANK_K, RANK_2K, RANK_KX };
struct rank_scalars {
	double wide[2][2];
	float small[2][2];
};

/* A real scalar as one of the complex type. */
static const void *as_complex(
	const struct ckt_xt_type *type, const void *real, struct rank_scalars *into, unsigned which)
{
	if (type->wide) {
		into->wide[which][0] = *(const double *)real;
		return into->wide[which];
	}
	into->small[which][0] = *(const float *)real;
	return into->small[which];
}

static const void *conjugate(
	const struct ckt_xt_type *type, const void *value, struct rank_scalars *into)
{
	if (type->wide) {
		memcpy(into->wide[0], value, sizeof into->wide[0]);
		into->wide[0][1] = -into->wide[0][1];
		return into->wide[0];
	}
	memcpy(into->small[0], value, sizeof into->small[0]);
	into->small[0][1] = -into->small[0][1];
	return into->small[0];
}

/*
 * On the diagonal the function of cuBLAS; off it C_ij = alpha op(A)_i op(B)_j^T, and with A and B
 * exchanged of rank 2k.
 */
static cublasStatus_t ranked(cublasXtHandle_t handle, const struct ckt_xt_type *type,
	enum rank rank, bool hermitian_, ckt_xt_syrk *syrk, ckt_xt_syr2k *syr2k,
	cublasFillMode_t uplo, cublasOperation_t trans, size_t n, size_t k, const void *alpha,
	const void *a, size_t lda, const void *b, size_t ldb, const void *beta, void *c, size_t ldc)
{
	cublasStatus_t status;
	struct rank_scalars scalars = {0};
	struct cublasXtContext *own = ckt_xt_take(handle, &status);
	if (!own)
		return status;
	bool plain = trans == CUBLAS_OP_N;
	/*
	 * Of a complex matrix what is symmetric has no conjugate, and what is hermitian no
	 * transpose; of a real one they are the same.
	 */
	bool trans_ok = plain ||
		(hermitian_ ? trans == CUBLAS_OP_C
			    : trans == CUBLAS_OP_T || (trans == CUBLAS_OP_C && !type->complex));
	if (!uplo_ok(uplo) || !trans_ok || !alpha || !beta || !ld_ok(lda, plain ? n : k) ||
		!ld_ok(ldb, plain ? n : k) || !ld_ok(ldc, n))
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasOperation_t turned = hermitian_ ? CUBLAS_OP_C : CUBLAS_OP_T;
	cublasOperation_t left = plain ? CUBLAS_OP_N : turned, right = plain ? turned : CUBLAS_OP_N;
	struct ckt_xt_product p = {.left = general(a, left, n, k, lda),
		.right = general(b, right, k, n, ldb),
		.alpha = alpha,
		.beta = beta,
		.result = stored(c, n, n, ldc),
		.m = n,
		.n = n,
		.k = k,
		.ranked = true,
		.uplo = uplo,
		.diagonal = syrk,
		.diagonal2 = syr2k,
		.trans = trans,
		.diagonal_alpha = alpha,
		.diagonal_beta = beta,
		.other = general(b, left, n, k, ldb)};
	if (rank == RANK_2K) {
		p.two = true;
		p.left2 = general(b, left, n, k, ldb);
		p.right2 = general(a, right, k, n, lda);
		p.alpha2 = hermitian_ ? conjugate(type, alpha, &scalars) : alpha;
	}
	if (hermitian_ && rank == RANK_K)
		p.alpha = as_complex(type, alpha, &scalars, 0);
	if (hermitian_)
		p.beta = as_complex(type, beta, &scalars, 1);
	struct ckt_xt_job job = job_of(own, type, n, k, 0);
	return ckt_xt_product(&job, &p);
}

/* ---- Triangles */

static cublasStatus_t triangular(cublasXtHandle_t handle, const struct ckt_xt_type *type,
	cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
	cublasDiagType_t diag, size_t m, size_t n, const void *alpha, const void *a, size_t lda,
	const void *b, size_t ldb, void *c, size_t ldc,
	cublasStatus_t (*run)(const struct ckt_xt_job *job, struct ckt_xt_triangle *triangle))
{
	cublasStatus_t status;
	struct cublasXtContext *own = ckt_xt_take(handle, &status);
	if (!own)
		return status;
	size_t order = side == CUBLAS_SIDE_LEFT ? m : n;
	if (!side_ok(side) || !uplo_ok(uplo) || !op_ok(trans) ||
		(unsigned)diag > CUBLAS_DIAG_UNIT || !alpha || !ld_ok(lda, order) ||
		!ld_ok(ldb, m) || !ld_ok(ldc, m))
		return CUBLAS_STATUS_INVALID_VALUE;
	struct ckt_xt_triangle t = {.a = half(a, order, lda, uplo, CKT_XT_TRIANGLE),
		.b = stored(b, m, n, ldb),
		.c = stored(c, m, n, ldc),
		.side = side,
		.trans = trans,
		.diag = diag,
		.m = m,
		.n = n,
		.alpha = alpha};
	struct ckt_xt_job job = job_of(own, type, m, n, 0);
	return run(&job, &t);
}

/* ---- The functions */

#define XT CKT_LIB_EXPORT cublasStatus_t

#define FUNCTIONS(T, E)                                                                            \
	XT cublasXt##T##gemm(cublasXtHandle_t handle, cublasOperation_t transa,                    \
		cublasOperation_t transb, size_t m, size_t n, size_t k, const E *alpha,            \
		const E *A, size_t lda, const E *B, size_t ldb, const E *beta, E *C, size_t ldc)   \
	{                                                                                          \
		return gemm(handle, &type_##T, transa, transb, m, n, k, alpha, A, lda, B, ldb,     \
			beta, C, ldc);                                                             \
	}                                                                                          \
	XT cublasXt##T##symm(cublasXtHandle_t handle, cublasSideMode_t side,                       \
		cublasFillMode_t uplo, size_t m, size_t n, const E *alpha, const E *A, size_t lda, \
		const E *B, size_t ldb, const E *beta, E *C, size_t ldc)                           \
	{                                                                                          \
		struct ckt_xt_factor a = {.matrix = half(A, 0, lda, uplo, CKT_XT_TRIANGLE)};       \
		return symmetric(handle, &type_##T, side, a, m, n, alpha, B, ldb, beta, C, ldc);   \
	}                                                                                          \
	XT cublasXt##T##spmm(cublasXtHandle_t handle, cublasSideMode_t side,                       \
		cublasFillMode_t uplo, size_t m, size_t n, const E *alpha, const E *AP,            \
		const E *B, size_t ldb, const E *beta, E *C, size_t ldc)                           \
	{                                                                                          \
		struct ckt_xt_factor a = {.matrix = half(AP, 0, 1, uplo, CKT_XT_PACKED)};          \
		return symmetric(handle, &type_##T, side, a, m, n, alpha, B, ldb, beta, C, ldc);   \
	}                                                                                          \
	XT cublasXt##T##syrk(cublasXtHandle_t handle, cublasFillMode_t uplo,                       \
		cublasOperation_t trans, size_t n, size_t k, const E *alpha, const E *A,           \
		size_t lda, const E *beta, E *C, size_t ldc)                                       \
	{                                                                                          \
		return ranked(handle, &type_##T, RANK_K, false,                                    \
			FN(ckt_xt_syrk, cublas##T##syrk_v2_64), NULL, uplo, trans, n, k, alpha, A, \
			lda, A, lda, beta, C, ldc);                                                \
	}                                                                                          \
	XT cublasXt##T##syr2k(cublasXtHandle_t handle, cublasFillMode_t uplo,                      \
		cublasOperation_t trans, size_t n, size_t k, const E *alpha, const E *A,           \
		size_t lda, const E *B, size_t ldb, const E *beta, E *C, size_t ldc)               \
	{                                                                                          \
		return ranked(handle, &type_##T, RANK_2K, false, NULL,                             \
			FN(ckt_xt_syr2k, cublas##T##syr2k_v2_64), uplo, trans, n, k, alpha, A,     \
			lda, B, ldb, beta, C, ldc);                                                \
	}                                                                                          \
	XT cublasXt##T##syrkx(cublasXtHandle_t handle, cublasFillMode_t uplo,                      \
		cublasOperation_t trans, size_t n, size_t k, const E *alpha, const E *A,           \
		size_t lda, const E *B, size_t ldb, const E *beta, E *C, size_t ldc)               \
	{                                                                                          \
		return ranked(handle, &type_##T, RANK_KX, false, NULL,                             \
			FN(ckt_xt_syr2k, cublas##T##syrkx_64), uplo, trans, n, k, alpha, A, lda,   \
			B, ldb, beta, C, ldc);                                                     \
	}                                                                                          \
	XT cublasXt##T##trsm(cublasXtHandle_t handle, cublasSideMode_t side,                       \
		cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, size_t m,   \
		size_t n, const E *alpha, const E *A, size_t lda, E *B, size_t ldb)                \
	{                                                                                          \
		return triangular(handle, &type_##T, side, uplo, trans, diag, m, n, alpha, A, lda, \
			B, ldb, B, ldb, ckt_xt_solve);                                             \
	}                                                                                          \
	XT cublasXt##T##trmm(cublasXtHandle_t handle, cublasSideMode_t side,                       \
		cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, size_t m,   \
		size_t n, const E *alpha, const E *A, size_t lda, const E *B, size_t ldb, E *C,    \
		size_t ldc)                                                                        \
	{                                                                                          \
		return triangular(handle, &type_##T, side, uplo, trans, diag, m, n, alpha, A, lda, \
			B, ldb, C, ldc, ckt_xt_multiply);                                          \
	}

#define HERMITIAN(T, E, R)                                                                         \
	XT cublasXt##T##hemm(cublasXtHandle_t handle, cublasSideMode_t side,                       \
		cublasFillMode_t uplo, size_t m, size_t n, const E *alpha, const E *A, size_t lda, \
		const E *B, size_t ldb, const E *beta, E *C, size_t ldc)                           \
	{                                                                                          \
		struct ckt_xt_type type = hermitian(&type_##T);                                    \
		struct ckt_xt_factor a = {                                                         \
			.matrix = half(A, 0, lda, uplo, CKT_XT_TRIANGLE), .hermitian = true};      \
		return symmetric(handle, &type, side, a, m, n, alpha, B, ldb, beta, C, ldc);       \
	}                                                                                          \
	XT cublasXt##T##herk(cublasXtHandle_t handle, cublasFillMode_t uplo,                       \
		cublasOperation_t trans, size_t n, size_t k, const R *alpha, const E *A,           \
		size_t lda, const R *beta, E *C, size_t ldc)                                       \
	{                                                                                          \
		return ranked(handle, &type_##T, RANK_K, true,                                     \
			FN(ckt_xt_syrk, cublas##T##herk_v2_64), NULL, uplo, trans, n, k, alpha, A, \
			lda, A, lda, beta, C, ldc);                                                \
	}                                                                                          \
	XT cublasXt##T##her2k(cublasXtHandle_t handle, cublasFillMode_t uplo,                      \
		cublasOperation_t trans, size_t n, size_t k, const E *alpha, const E *A,           \
		size_t lda, const E *B, size_t ldb, const R *beta, E *C, size_t ldc)               \
	{                                                                                          \
		return ranked(handle, &type_##T, RANK_2K, true, NULL,                              \
			FN(ckt_xt_syr2k, cublas##T##her2k_v2_64), uplo, trans, n, k, alpha, A,     \
			lda, B, ldb, beta, C, ldc);                                                \
	}                                                                                          \
	XT cublasXt##T##herkx(cublasXtHandle_t handle, cublasFillMode_t uplo,                      \
		cublasOperation_t trans, size_t n, size_t k, const E *alpha, const E *A,           \
		size_t lda, const E *B, size_t ldb, const R *beta, E *C, size_t ldc)               \
	{                                                                                          \
		return ranked(handle, &type_##T, RANK_KX, true, NULL,                              \
			FN(ckt_xt_syr2k, cublas##T##herkx_64), uplo, trans, n, k, alpha, A, lda,   \
			B, ldb, beta, C, ldc);                                                     \
	}

FUNCTIONS(S, float)
FUNCTIONS(D, double)
FUNCTIONS(C, cuComplex)
FUNCTIONS(Z, cuDoubleComplex)
HERMITIAN(C, cuComplex, float)
HERMITIAN(Z, cuDoubleComplex, double)
