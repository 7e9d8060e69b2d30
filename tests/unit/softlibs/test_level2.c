/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/blas/level2.c: matrix and vector, for every way a matrix is stored, against the
 * matrix written out.
 */
#include "softlibs.h"

/* Their header tells C++ alone of them. */
cublasStatus_t cublasHSHgemvStridedBatched_64(cublasHandle_t handle, cublasOperation_t trans,
	int64_t m, int64_t n, const float *alpha, const void *A, int64_t lda, long long stride_a,
	const void *x, int64_t incx, long long stride_x, const float *beta, void *y, int64_t incy,
	long long stride_y, int64_t batch);
cublasStatus_t cublasTSTgemvStridedBatched(cublasHandle_t handle, cublasOperation_t trans, int m,
	int n, const float *alpha, const void *A, int lda, long long stride_a, const void *x,
	int incx, long long stride_x, const float *beta, void *y, int incy, long long stride_y,
	int batch);

enum storage {
	GENERAL,
	BAND,
	TRIANGLE,
	TRIANGLE_BAND,
	TRIANGLE_PACKED,
	SYMMETRIC,
	SYMMETRIC_BAND,
	SYMMETRIC_PACKED
};

struct matrix {
	enum storage storage;
	int m, n, k, kl, ku, ld;
	cublasFillMode_t uplo;
	cublasDiagType_t diag;
	bool hermitian;
	struct lib_array array;
};

enum { LD = 9, STEPS = 4 };

/* Where element (i, j) lies; -1: nowhere. */
static int where(const struct matrix *a, int i, int j)
{
	bool lower = a->uplo == CUBLAS_FILL_MODE_LOWER;
	switch (a->storage) {
	case GENERAL:
		return i + j * a->ld;
	case BAND:
		return i - j > a->kl || j - i > a->ku ? -1 : a->ku + i - j + j * a->ld;
	default:
		break;
	}
	if (lower ? i < j : i > j)
		return -1;
	switch (a->storage) {
	case TRIANGLE:
	case SYMMETRIC:
		return i + j * a->ld;
	case TRIANGLE_BAND:
	case SYMMETRIC_BAND:
		return abs(i - j) > a->k ? -1 : (lower ? i - j : a->k + i - j) + j * a->ld;
	default:
		return lower ? i + (2 * a->n - j - 1) * j / 2 : i + j * (j + 1) / 2;
	}
}

static double complex element(const struct matrix *a, int i, int j)
{
	bool symmetric = a->storage >= SYMMETRIC;
	int at = where(a, i, j);
	if (symmetric && at < 0 && where(a, j, i) >= 0) {
		double complex value = lib_get(a->array.p, a->array.type, where(a, j, i));
		return a->hermitian ? conj(value) : value;
	}
	if (at < 0)
		return 0;
	if (!symmetric && a->storage >= TRIANGLE && i == j && a->diag == CUBLAS_DIAG_UNIT)
		return 1;
	double complex value = lib_get(a->array.p, a->array.type, at);
	return a->hermitian && i == j ? creal(value) : value;
}

static struct matrix matrix(enum storage storage, cudaDataType type, int m, int n,
	cublasFillMode_t uplo, cublasDiagType_t diag)
{
	struct matrix a = {.storage = storage,
		.m = m,
		.n = n,
		.k = 2,
		.kl = 1,
		.ku = 2,
		.ld = LD,
		.uplo = uplo,
		.diag = diag};
	a.array = lib_array(type, LD * 9);
	return a;
}

/* Element i of a vector of n with a step that may be negative. */
static int at(int i, int n, int step)
{
	return step > 0 ? i * step : (i - n + 1) * step;
}

static const int steps[STEPS][2] = {{1, 1}, {2, 1}, {-1, 3}, {2, -2}};
static const double complex alphas[] = {1, -1.5, 0.5 + I, 1}, betas[] = {0, 0.5, 1, -I};

struct vectors {
	struct lib_array x, y;
	int incx, incy;
	const void *alpha, *beta;
};

/* y as alpha op(a) x + beta y makes it; where beta is 0, NaN stands there before. */
static struct vectors vectors(const struct matrix *a, int op, int step)
{
	cudaDataType type = a->array.type;
	struct vectors v = {.x = lib_array(type, 40),
		.y = lib_array(type, 40),
		.incx = steps[step][0],
		.incy = steps[step][1]};
	double complex alpha = alphas[step], beta = betas[step];
	if (!ckt_blas_type_complex(type))
		alpha = creal(alpha), beta = creal(beta);
	int rows = op == CUBLAS_OP_N ? a->m : a->n, columns = op == CUBLAS_OP_N ? a->n : a->m;
	for (int i = 0; i < rows; i++) {
		double complex sum = 0;
		for (int j = 0; j < columns; j++)
			sum += (op == CUBLAS_OP_N ? element(a, i, j)
						  : lib_op(element(a, j, i), op)) *
				lib_get(v.x.p, type, at(j, columns, v.incx));
		int to = at(i, rows, v.incy);
		double complex old = beta == 0 ? 0 : beta * lib_get(v.y.p, type, to);
		lib_set(v.y.expected, type, to, alpha * sum + old);
		if (beta == 0)
			lib_set_nan(v.y.p, type, to);
	}
	v.alpha = lib_scalar(type, alpha);
	v.beta = lib_scalar(type, beta);
	return v;
}

static void vectors_check(struct vectors *v, struct matrix *a)
{
	YES(lib_same(&v->y, 0));
	YES(lib_same(&v->x, 0));
	YES(lib_same(&a->array, 0));
	lib_free(&v->x);
	lib_free(&v->y);
	lib_free(&a->array);
}

static void test_general(void)
{
	lib_begin();
	for (int mode = 0; mode < 2; mode++) {
		OK(cublasSetPointerMode_v2(lib_handle, (cublasPointerMode_t)mode));
		for (int i = 0; i < 4 * 3 * STEPS * 2; i++) {
			cudaDataType type = lib_types4[i % 4];
			int op = i / 4 % 3, step = i / 12 % STEPS;
			bool band = i / 12 / STEPS;
			struct matrix a = matrix(band ? BAND : GENERAL, type, 6, 5,
				CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_NON_UNIT);
			struct vectors v = vectors(&a, op, step);
			if (band)
				OK(LIB_CALL(type, cublasSgbmv_v2, cublasDgbmv_v2, cublasCgbmv_v2,
					cublasZgbmv_v2, lib_handle, op, 6, 5, a.kl, a.ku, v.alpha,
					a.array.p, LD, v.x.p, v.incx, v.beta, v.y.p, v.incy));
			else
				OK(LIB_CALL(type, cublasSgemv_v2, cublasDgemv_v2, cublasCgemv_v2,
					cublasZgemv_v2, lib_handle, op, 6, 5, v.alpha, a.array.p,
					LD, v.x.p, v.incx, v.beta, v.y.p, v.incy));
			vectors_check(&v, &a);
		}
	}
	lib_end();
}

/* Batches, of halves too: each of a batch is a call. */
static void test_batched(void)
{
	enum { M = 4, N = 3, BATCH = 3 };
	float alpha = 1, beta = 0;
	lib_begin();
	for (int t = 0; t < 3; t++)
		for (int op = 0; op < 2; op++)
			for (int inc = -2; inc <= 2; inc++) {
				if (!inc)
					continue;
				cudaDataType type = t == 0 ? CUDA_R_32F
					: t == 1           ? CUDA_R_16F
							   : CUDA_R_16BF;
				struct lib_array a = lib_array(type, M * N * BATCH),
						 x = lib_array(type, 10 * BATCH),
						 y = lib_array(type, 10 * BATCH);
				int rows = op ? N : M, columns = op ? M : N;
				for (int e = 0; e < BATCH; e++)
					for (int i = 0; i < rows; i++) {
						double complex sum = 0;
						for (int j = 0; j < columns; j++)
							sum += lib_get(a.p, type,
								       e * M * N +
									       (op ? j + i * M
										   : i + j * M)) *
								lib_get(x.p, type,
									10 * e +
										at(j, columns,
											inc));
						lib_set(y.expected, type, 10 * e + at(i, rows, inc),
							sum);
					}
				cublasOperation_t trans = op ? CUBLAS_OP_T : CUBLAS_OP_N;
				if (t == 0)
					OK(cublasSgemvStridedBatched(lib_handle, trans, M, N,
						&alpha, (float *)a.p, M, M * N, (float *)x.p, inc,
						10, &beta, (float *)y.p, inc, 10, BATCH));
				else if (t == 1)
					OK(cublasHSHgemvStridedBatched_64(lib_handle, trans, M, N,
						&alpha, a.p, M, M * N, x.p, inc, 10, &beta, y.p,
						inc, 10, BATCH));
				else
					OK(cublasTSTgemvStridedBatched(lib_handle, trans, M, N,
						&alpha, a.p, M, M * N, x.p, inc, 10, &beta, y.p,
						inc, 10, BATCH));
				YES(lib_same(&y, 0));
				lib_free(&a);
				lib_free(&x);
				lib_free(&y);
			}
	lib_end();
}

static cublasStatus_t symmetric(const struct matrix *a, const struct vectors *v)
{
	cudaDataType type = a->array.type;
	switch (a->storage) {
	case SYMMETRIC:
		if (a->hermitian)
			return LIB_CALL(type, NULL, NULL, cublasChemv_v2, cublasZhemv_v2,
				lib_handle, a->uplo, a->n, v->alpha, a->array.p, LD, v->x.p,
				v->incx, v->beta, v->y.p, v->incy);
		return LIB_CALL(type, cublasSsymv_v2, cublasDsymv_v2, cublasCsymv_v2,
			cublasZsymv_v2, lib_handle, a->uplo, a->n, v->alpha, a->array.p, LD, v->x.p,
			v->incx, v->beta, v->y.p, v->incy);
	case SYMMETRIC_BAND:
		return LIB_CALL(type, cublasSsbmv_v2, cublasDsbmv_v2, cublasChbmv_v2,
			cublasZhbmv_v2, lib_handle, a->uplo, a->n, a->k, v->alpha, a->array.p, LD,
			v->x.p, v->incx, v->beta, v->y.p, v->incy);
	default:
		return LIB_CALL(type, cublasSspmv_v2, cublasDspmv_v2, cublasChpmv_v2,
			cublasZhpmv_v2, lib_handle, a->uplo, a->n, v->alpha, a->array.p, v->x.p,
			v->incx, v->beta, v->y.p, v->incy);
	}
}

static void test_symmetric(void)
{
	lib_begin();
	for (int i = 0; i < 4 * STEPS * 2 * 4; i++) {
		cudaDataType type = lib_types4[i % 4];
		int kind = i / 4 / STEPS / 2;
		bool complex_type = ckt_blas_type_complex(type);
		struct matrix a = matrix(kind == 3 ? SYMMETRIC : SYMMETRIC + kind, type, 6, 6,
			(cublasFillMode_t)(i / 4 / STEPS % 2), CUBLAS_DIAG_NON_UNIT);
		/* Banded and packed complex ones are always Hermitian. */
		a.hermitian = complex_type && kind != 3;
		struct vectors v = vectors(&a, CUBLAS_OP_N, i / 4 % STEPS);
		OK(symmetric(&a, &v));
		vectors_check(&v, &a);
	}
	lib_end();
}

static cublasStatus_t triangular(const struct matrix *a, int op, bool solve, void *x, int incx)
{
	cudaDataType type = a->array.type;
#define PAIR(s, d, c, z, ...)                                                                    \
	(solve ? LIB_CALL(type, s##sv_v2, d##sv_v2, c##sv_v2, z##sv_v2, lib_handle, a->uplo, op, \
			 a->diag, a->n, __VA_ARGS__, x, incx)                                    \
	       : LIB_CALL(type, s##mv_v2, d##mv_v2, c##mv_v2, z##mv_v2, lib_handle, a->uplo, op, \
			 a->diag, a->n, __VA_ARGS__, x, incx))
	switch (a->storage) {
	case TRIANGLE:
		return PAIR(cublasStr, cublasDtr, cublasCtr, cublasZtr, a->array.p, LD);
	case TRIANGLE_BAND:
		return PAIR(cublasStb, cublasDtb, cublasCtb, cublasZtb, a->k, a->array.p, LD);
	default:
		return PAIR(cublasStp, cublasDtp, cublasCtp, cublasZtp, a->array.p);
	}
}

static void test_triangular(void)
{
	lib_begin();
	for (int i = 0; i < 4 * 3 * 2 * 2 * 3 * 2 * 3; i++) {
		int rest = i;
#define TAKE(n)       \
	(rest % (n)); \
	rest /= (n)
		int type_index = TAKE(4);
		int op = TAKE(3);
		int uplo = TAKE(2);
		int diag = TAKE(2);
		int kind = TAKE(3);
		bool solve = TAKE(2);
		int step = TAKE(3);
		cudaDataType type = lib_types4[type_index];
		int n = 6, inc = steps[step][0];
		struct matrix a = matrix(TRIANGLE + kind, type, n, n, (cublasFillMode_t)uplo,
			(cublasDiagType_t)diag);
		/* Large numbers on the diagonal: solutions do not grow. */
		for (int j = 0; j < n; j++) {
			lib_set(a.array.p, type, where(&a, j, j), 8);
			lib_set(a.array.expected, type, where(&a, j, j), 8);
		}
		for (int j = 0; diag && j < n * LD; j++) {
			lib_set(a.array.p, type, j, lib_get(a.array.p, type, j) / 16);
			lib_set(a.array.expected, type, j, lib_get(a.array.p, type, j));
		}
		struct lib_array x = lib_array(type, 20);
		double complex y[6] = {0};
		for (int r = 0; r < n; r++)
			for (int c = 0; c < n; c++)
				y[r] += (op == CUBLAS_OP_N ? element(&a, r, c)
							   : lib_op(element(&a, c, r), op)) *
					lib_get(x.p, type, at(c, n, inc));
		/* The product from the vector, or the vector back from the product. */
		for (int r = 0; r < n; r++)
			lib_set(solve ? x.p : x.expected, type, at(r, n, inc), y[r]);
		OK(triangular(&a, op, solve, x.p, inc));
		YES(lib_same(&x, type == CUDA_R_32F || type == CUDA_C_32F ? 1e-4 : 1e-11));
		YES(lib_same(&a.array, 0));
		lib_free(&x);
		lib_free(&a.array);
	}
	lib_end();
}

UNIT_SUITE(level2, {"general and banded", test_general}, {"batched, of halves too", test_batched},
	{"symmetric and Hermitian", test_symmetric},
	{"triangular: products and solutions", test_triangular})
