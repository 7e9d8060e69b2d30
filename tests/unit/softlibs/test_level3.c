/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/blas/level3.c: products of special matrices, solutions, sums. */
#include "softlibs.h"

enum { LD = 8, M = 5, N = 4, K = 3 };

struct three {
	cudaDataType type;
	struct lib_array a, b, c;
	double complex alpha, beta;
	const void *pa, *pb;
};

static const double complex factors[][2] = {{1, 0}, {-1.5, 0.5}, {0.5 + I, 1 - I}};

/* real: the factors of Hermitian updates. */
static struct three three(int i, bool real_alpha, bool real_beta)
{
	struct three t = {
		.type = lib_types4[i % 4], .alpha = factors[i % 3][0], .beta = factors[i % 3][1]};
	bool complex_type = ckt_blas_type_complex(t.type);
	cudaDataType real = t.type == CUDA_C_32F ? CUDA_R_32F
		: t.type == CUDA_C_64F           ? CUDA_R_64F
						 : t.type;
	if (!complex_type || real_alpha)
		t.alpha = creal(t.alpha);
	if (!complex_type || real_beta)
		t.beta = creal(t.beta);
	t.a = lib_array(t.type, LD * LD);
	t.b = lib_array(t.type, LD * LD);
	t.c = lib_array(t.type, LD * LD);
	t.pa = lib_scalar(real_alpha ? real : t.type, t.alpha);
	t.pb = lib_scalar(real_beta ? real : t.type, t.beta);
	return t;
}

static void three_check(struct three *t, double tolerance)
{
	YES(lib_same(&t->c, tolerance));
	YES(lib_same(&t->a, 0));
	YES(lib_same(&t->b, tolerance));
	lib_free(&t->a);
	lib_free(&t->b);
	lib_free(&t->c);
}

/* Element of C: beta 0 reads nothing, so NaN stands there. */
static void set_c(struct three *t, int i, int j, double complex sum, bool real)
{
	double complex value =
		sum + (t->beta == 0 ? 0 : t->beta * lib_get(t->c.p, t->type, i + j * LD));
	lib_set(t->c.expected, t->type, i + j * LD, real ? creal(value) : value);
	if (t->beta == 0)
		lib_set_nan(t->c.p, t->type, i + j * LD);
}

static double complex get(const struct lib_array *array, int op, int i, int j)
{
	return op == CUBLAS_OP_N ? lib_get(array->p, array->type, i + j * LD)
				 : lib_op(lib_get(array->p, array->type, j + i * LD), op);
}

static cublasStatus_t rank_k(
	const struct three *t, int kind, bool hermitian, cublasFillMode_t uplo, int op)
{
	if (kind == 0 && hermitian)
		return LIB_CALL(t->type, NULL, NULL, cublasCherk_v2, cublasZherk_v2, lib_handle,
			uplo, op, N, K, t->pa, t->a.p, LD, t->pb, t->c.p, LD);
	if (kind == 0)
		return LIB_CALL(t->type, cublasSsyrk_v2, cublasDsyrk_v2, cublasCsyrk_v2,
			cublasZsyrk_v2, lib_handle, uplo, op, N, K, t->pa, t->a.p, LD, t->pb,
			t->c.p, LD);
	if (kind == 1 && hermitian)
		return LIB_CALL(t->type, NULL, NULL, cublasCher2k_v2, cublasZher2k_v2, lib_handle,
			uplo, op, N, K, t->pa, t->a.p, LD, t->b.p, LD, t->pb, t->c.p, LD);
	if (kind == 1)
		return LIB_CALL(t->type, cublasSsyr2k_v2, cublasDsyr2k_v2, cublasCsyr2k_v2,
			cublasZsyr2k_v2, lib_handle, uplo, op, N, K, t->pa, t->a.p, LD, t->b.p, LD,
			t->pb, t->c.p, LD);
	if (hermitian)
		return LIB_CALL(t->type, NULL, NULL, cublasCherkx, cublasZherkx, lib_handle, uplo,
			op, N, K, t->pa, t->a.p, LD, t->b.p, LD, t->pb, t->c.p, LD);
	return LIB_CALL(t->type, cublasSsyrkx, cublasDsyrkx, cublasCsyrkx, cublasZsyrkx, lib_handle,
		uplo, op, N, K, t->pa, t->a.p, LD, t->b.p, LD, t->pb, t->c.p, LD);
}

/* syrk, syr2k, syrkx and the Hermitian ones: a triangle of sums. */
static void test_rank_k(void)
{
	lib_begin();
	for (int i = 0; i < 12 * 2 * 2 * 3 * 2; i++) {
		bool lower = i / 12 & 1, plain = i / 24 & 1;
		int kind = i / 48 % 3;
		bool hermitian = i / 144 && ckt_blas_type_complex(lib_types4[i % 4]);
		int op = plain ? CUBLAS_OP_N : hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
		int other = plain ? (hermitian ? CUBLAS_OP_C : CUBLAS_OP_T) : CUBLAS_OP_N;
		struct three t = three(i, hermitian && kind == 0, hermitian);
		for (int c = 0; c < N; c++)
			for (int r = lower ? c : 0; r < (lower ? N : c + 1); r++) {
				double complex ab = 0, ba = 0, aa = 0;
				for (int l = 0; l < K; l++) {
					double complex a = get(&t.a, op, r, l),
						       b = get(&t.b, op, r, l);
					aa += a * get(&t.a, other, l, c);
					ab += a * get(&t.b, other, l, c);
					ba += b * get(&t.a, other, l, c);
				}
				double complex sum = kind == 0 ? t.alpha * aa
					: kind == 1
					? t.alpha * ab + (hermitian ? conj(t.alpha) : t.alpha) * ba
					: t.alpha * ab;
				set_c(&t, r, c, sum, hermitian && r == c);
			}
		OK(rank_k(&t, kind, hermitian,
			lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, op));
		three_check(&t, 0);
	}
	lib_end();
}

static void test_symm(void)
{
	lib_begin();
	for (int i = 0; i < 12 * 2 * 2 * 2; i++) {
		bool lower = i / 12 & 1, left = i / 24 & 1,
		     hermitian = i / 48 && ckt_blas_type_complex(lib_types4[i % 4]);
		struct three t = three(i, false, false);
		int size = left ? M : N;
		for (int c = 0; c < N; c++)
			for (int r = 0; r < M; r++) {
				double complex sum = 0;
				for (int l = 0; l < size; l++) {
					int x = left ? r : l, y = left ? l : c;
					bool stored = lower ? x >= y : x <= y;
					double complex a = lib_get(
						t.a.p, t.type, stored ? x + y * LD : y + x * LD);
					a = !hermitian   ? a
						: x == y ? creal(a)
						: stored ? a
							 : conj(a);
					sum += a *
						lib_get(t.b.p, t.type,
							left ? l + c * LD : r + l * LD);
				}
				set_c(&t, r, c, t.alpha * sum, false);
			}
		cublasSideMode_t side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
		cublasFillMode_t uplo = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
		if (hermitian)
			OK(LIB_CALL(t.type, NULL, NULL, cublasChemm_v2, cublasZhemm_v2, lib_handle,
				side, uplo, M, N, t.pa, t.a.p, LD, t.b.p, LD, t.pb, t.c.p, LD));
		else
			OK(LIB_CALL(t.type, cublasSsymm_v2, cublasDsymm_v2, cublasCsymm_v2,
				cublasZsymm_v2, lib_handle, side, uplo, M, N, t.pa, t.a.p, LD,
				t.b.p, LD, t.pb, t.c.p, LD));
		three_check(&t, 0);
	}
	lib_end();
}

/* Element of op of a triangle. */
static double complex triangle(const struct three *t, bool lower, bool unit, int op, int i, int j)
{
	int x = op == CUBLAS_OP_N ? i : j, y = op == CUBLAS_OP_N ? j : i;
	if (lower ? x < y : x > y)
		return 0;
	return x == y && unit ? 1 : lib_op(lib_get(t->a.p, t->type, x + y * LD), op);
}

static void test_triangular(void)
{
	lib_begin();
	for (int i = 0; i < 12 * 2 * 2 * 2 * 3 * 3; i++) {
		bool lower = i / 12 & 1, left = i / 24 & 1, unit = i / 48 & 1;
		int op = i / 96 % 3, what = i / 288; /* trmm, trmm in place, trsm */
		struct three t = three(i, false, false);
		int size = left ? M : N;
		/* Solutions must not grow. */
		for (int j = 0; j < LD * LD; j++) {
			double complex value = j % (LD + 1) ? lib_get(t.a.p, t.type, j) / 16 : 2;
			lib_set(t.a.p, t.type, j, value);
			lib_set(t.a.expected, t.type, j, value);
		}
		struct lib_array *to = what ? &t.b : &t.c;
		for (int c = 0; c < N; c++)
			for (int r = 0; r < M; r++) {
				double complex sum = 0;
				for (int l = 0; l < size; l++)
					sum += left ? triangle(&t, lower, unit, op, r, l) *
							lib_get(t.b.p, t.type, l + c * LD)
						    : lib_get(t.b.p, t.type, r + l * LD) *
							triangle(&t, lower, unit, op, l, c);
				/*
				 * The solution of this product's system with alpha is alpha times
				 * what was multiplied.
				 */
				lib_set(to->expected, t.type, r + c * LD,
					what == 2 ? sum : t.alpha * sum);
			}
		cublasSideMode_t side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
		cublasFillMode_t uplo = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
		cublasDiagType_t diag = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
		if (what == 2) {
			for (int c = 0; c < N; c++)
				for (int r = 0; r < M; r++) {
					double complex x = lib_get(t.b.p, t.type, r + c * LD);
					lib_set(t.b.p, t.type, r + c * LD,
						lib_get(t.b.expected, t.type, r + c * LD));
					lib_set(t.b.expected, t.type, r + c * LD, t.alpha * x);
				}
			OK(LIB_CALL(t.type, cublasStrsm_v2, cublasDtrsm_v2, cublasCtrsm_v2,
				cublasZtrsm_v2, lib_handle, side, uplo, op, diag, M, N, t.pa, t.a.p,
				LD, t.b.p, LD));
		} else {
			OK(LIB_CALL(t.type, cublasStrmm_v2, cublasDtrmm_v2, cublasCtrmm_v2,
				cublasZtrmm_v2, lib_handle, side, uplo, op, diag, M, N, t.pa, t.a.p,
				LD, t.b.p, LD, to->p, LD));
		}
		three_check(&t, t.type == CUDA_R_32F || t.type == CUDA_C_32F ? 1e-4 : 1e-12);
	}
	lib_end();
}

/* Of a batch each system is solved; the lists lie on the device. */
static void test_trsm_batched(void)
{
	double one = 1;
	lib_begin();
	struct lib_array a = lib_array(CUDA_R_64F, 2 * LD * LD),
			 b = lib_array(CUDA_R_64F, 2 * LD * LD);
	CUdeviceptr lists;
	OK(cuMemAlloc(&lists, 64));
	double **list = (double **)(uintptr_t)lists, *x = (double *)a.p, *y = (double *)b.p,
	       *shall = (double *)b.expected;
	for (int i = 0; i < 2 * LD * LD; i++)
		x[i] = i % LD == i / LD % LD ? 4 : x[i] / 4;
	for (int e = 0; e < 2; e++) {
		list[e] = x + e * LD * LD;
		list[2 + e] = y + e * LD * LD;
		for (int c = 0; c < N; c++)
			for (int r = 0; r < M; r++) {
				double sum = 0;
				for (int l = 0; l <= r; l++)
					sum += list[e][r + l * LD] *
						shall[e * LD * LD + l + c * LD];
				list[2 + e][r + c * LD] = sum;
			}
	}
	OK(cublasDtrsmBatched(lib_handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
		CUBLAS_DIAG_NON_UNIT, M, N, &one, (const double **)list, LD, list + 2, LD, 2));
	YES(lib_same(&b, 1e-12));
	OK(cuMemFree(lists));
	lib_free(&a);
	lib_free(&b);
	lib_end();
}

static void test_sums(void)
{
	lib_begin();
	for (int i = 0; i < 12 * 9; i++) {
		int opa = i / 12 % 3, opb = i / 36;
		struct three t = three(i, false, false);
		/* A factor of 0 reads nothing. */
		if (i % 3 == 0)
			for (int j = 0; j < LD * LD; j++) {
				lib_set_nan(t.b.p, t.type, j);
				lib_set_nan(t.b.expected, t.type, j);
			}
		for (int c = 0; c < N; c++)
			for (int r = 0; r < M; r++)
				lib_set(t.c.expected, t.type, r + c * LD,
					t.alpha * get(&t.a, opa, r, c) +
						(i % 3 ? t.beta * get(&t.b, opb, r, c) : 0));
		OK(LIB_CALL(t.type, cublasSgeam, cublasDgeam, cublasCgeam, cublasZgeam, lib_handle,
			opa, opb, M, N, t.pa, t.a.p, LD, t.pb, t.b.p, LD, t.c.p, LD));
		three_check(&t, 0);
	}
	lib_end();
}

static void test_diagonal(void)
{
	static const int steps[] = {1, 2, -1};
	lib_begin();
	for (int i = 0; i < 24; i++) {
		bool left = i / 12;
		int inc = steps[i % 3], count = left ? M : N;
		struct three t = three(i, false, false);
		for (int c = 0; c < N; c++)
			for (int r = 0; r < M; r++) {
				int d = left ? r : c;
				lib_set(t.c.expected, t.type, r + c * LD,
					lib_get(t.a.p, t.type, r + c * LD) *
						lib_get(t.b.p, t.type,
							inc > 0 ? d * inc : (d - count + 1) * inc));
			}
		OK(LIB_CALL(t.type, cublasSdgmm, cublasDdgmm, cublasCdgmm, cublasZdgmm, lib_handle,
			left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT, M, N, t.a.p, LD, t.b.p, inc,
			t.c.p, LD));
		three_check(&t, 0);
	}
	lib_end();
}

/* A triangle packed and back: what is outside stays. */
static void test_packed(void)
{
	lib_begin();
	for (int i = 0; i < 8; i++) {
		bool lower = i / 4;
		cublasFillMode_t uplo = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
		struct three t = three(i, false, false);
		int next = 0;
		for (int c = 0; c < N; c++)
			for (int r = lower ? c : 0; r < (lower ? N : c + 1); r++) {
				lib_set(t.b.expected, t.type, next,
					lib_get(t.a.p, t.type, r + c * LD));
				lib_set(t.c.expected, t.type, r + c * LD,
					lib_get(t.a.p, t.type, r + c * LD));
				next++;
			}
		OK(LIB_CALL(t.type, cublasStrttp, cublasDtrttp, cublasCtrttp, cublasZtrttp,
			lib_handle, uplo, N, t.a.p, LD, t.b.p));
		OK(LIB_CALL(t.type, cublasStpttr, cublasDtpttr, cublasCtpttr, cublasZtpttr,
			lib_handle, uplo, N, t.b.p, t.c.p, LD));
		three_check(&t, 0);
	}
	lib_end();
}

UNIT_SUITE(level3, {"rank k", test_rank_k}, {"symmetric and Hermitian products", test_symm},
	{"triangular: products and solutions", test_triangular},
	{"solutions, batched", test_trsm_batched}, {"sums", test_sums}, {"diagonal", test_diagonal},
	{"packed", test_packed})
