/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/blas/update.c: A += alpha x y^T and its kin, full and packed. */
#include "softlibs.h"

enum { N = 5, M = 6, LD = 7 };

static int at(int i, int n, int step)
{
	return step > 0 ? i * step : (i - n + 1) * step;
}

struct update {
	cudaDataType type;
	struct lib_array a, x, y;
	int incx, incy;
	double complex alpha;
};

static struct update update(int i)
{
	static const int steps[][2] = {{1, 1}, {-2, 1}, {2, -1}};
	struct update u = {
		.type = lib_types4[i % 4], .incx = steps[i % 3][0], .incy = steps[i % 3][1]};
	u.a = lib_array(u.type, LD * M);
	u.x = lib_array(u.type, 20);
	u.y = lib_array(u.type, 20);
	u.alpha = ckt_blas_type_complex(u.type) ? 0.5 - I : -1.5;
	return u;
}

static void update_check(struct update *u)
{
	YES(lib_same(&u->a, 0));
	YES(lib_same(&u->x, 0));
	YES(lib_same(&u->y, 0));
	lib_free(&u->a);
	lib_free(&u->x);
	lib_free(&u->y);
}

static double complex x_of(const struct update *u, int i, int n)
{
	return lib_get(u->x.p, u->type, at(i, n, u->incx));
}

static double complex y_of(const struct update *u, int i, int n)
{
	return lib_get(u->y.p, u->type, at(i, n, u->incy));
}

static void test_general(void)
{
	lib_begin();
	for (int i = 0; i < 24; i++) {
		struct update u = update(i);
		bool conjugate = i / 12;
		for (int c = 0; c < N; c++)
			for (int r = 0; r < M; r++) {
				double complex y = y_of(&u, c, N);
				double complex old = lib_get(u.a.p, u.type, r + c * LD);
				lib_set(u.a.expected, u.type, r + c * LD,
					old + u.alpha * x_of(&u, r, M) * (conjugate ? conj(y) : y));
			}
		const void *alpha = lib_scalar(u.type, u.alpha);
		if (conjugate)
			OK(LIB_CALL(u.type, cublasSger_v2, cublasDger_v2, cublasCgerc_v2,
				cublasZgerc_v2, lib_handle, M, N, alpha, u.x.p, u.incx, u.y.p,
				u.incy, u.a.p, LD));
		else
			OK(LIB_CALL(u.type, cublasSger_v2, cublasDger_v2, cublasCgeru_v2,
				cublasZgeru_v2, lib_handle, M, N, alpha, u.x.p, u.incx, u.y.p,
				u.incy, u.a.p, LD));
		update_check(&u);
	}
	lib_end();
}

static cublasStatus_t call(const struct update *u, cublasFillMode_t uplo, bool packed, bool twice,
	bool hermitian, const void *alpha)
{
	if (packed && twice)
		return LIB_CALL(u->type, cublasSspr2_v2, cublasDspr2_v2, cublasChpr2_v2,
			cublasZhpr2_v2, lib_handle, uplo, N, alpha, u->x.p, u->incx, u->y.p,
			u->incy, u->a.p);
	if (packed)
		return LIB_CALL(u->type, cublasSspr_v2, cublasDspr_v2, cublasChpr_v2, cublasZhpr_v2,
			lib_handle, uplo, N, alpha, u->x.p, u->incx, u->a.p);
	if (twice && hermitian)
		return LIB_CALL(u->type, NULL, NULL, cublasCher2_v2, cublasZher2_v2, lib_handle,
			uplo, N, alpha, u->x.p, u->incx, u->y.p, u->incy, u->a.p, LD);
	if (twice)
		return LIB_CALL(u->type, cublasSsyr2_v2, cublasDsyr2_v2, cublasCsyr2_v2,
			cublasZsyr2_v2, lib_handle, uplo, N, alpha, u->x.p, u->incx, u->y.p,
			u->incy, u->a.p, LD);
	if (hermitian)
		return LIB_CALL(u->type, NULL, NULL, cublasCher_v2, cublasZher_v2, lib_handle, uplo,
			N, alpha, u->x.p, u->incx, u->a.p, LD);
	return LIB_CALL(u->type, cublasSsyr_v2, cublasDsyr_v2, cublasCsyr_v2, cublasZsyr_v2,
		lib_handle, uplo, N, alpha, u->x.p, u->incx, u->a.p, LD);
}

static void test_symmetric(void)
{
	lib_begin();
	for (int i = 0; i < 12 * 2 * 2 * 2 * 2; i++) {
		struct update u = update(i);
		bool lower = i / 12 & 1, packed = i / 24 & 1, twice = i / 48 & 1,
		     complex_type = ckt_blas_type_complex(u.type);
		/* Packed complex ones are Hermitian; of real numbers both are the same. */
		bool hermitian = complex_type && (packed || (i / 96 & 1));
		cudaDataType scalar = u.type;
		if (hermitian && !twice) {
			u.alpha = creal(u.alpha);
			scalar = u.type == CUDA_C_32F ? CUDA_R_32F : CUDA_R_64F;
		}
		for (int c = 0; c < N; c++)
			for (int r = lower ? c : 0; r < (lower ? N : c + 1); r++) {
				double complex xr = x_of(&u, r, N), xc = x_of(&u, c, N),
					       yr = y_of(&u, r, N), yc = y_of(&u, c, N), sum;
				if (hermitian)
					sum = twice ? u.alpha * xr * conj(yc) +
							conj(u.alpha) * yr * conj(xc)
						    : u.alpha * xr * conj(xc);
				else
					sum = u.alpha * (twice ? xr * yc + yr * xc : xr * xc);
				int to = !packed ? r + c * LD
					: lower  ? r + (2 * N - c - 1) * c / 2
						 : r + c * (c + 1) / 2;
				double complex value = lib_get(u.a.p, u.type, to) + sum;
				lib_set(u.a.expected, u.type, to,
					hermitian && r == c ? creal(value) : value);
			}
		OK(call(&u, lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, packed, twice,
			hermitian, lib_scalar(scalar, u.alpha)));
		update_check(&u);
	}
	lib_end();
}

UNIT_SUITE(update, {"general", test_general}, {"symmetric and Hermitian", test_symmetric})
