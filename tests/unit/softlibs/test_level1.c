/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/blas/level1.c: vectors of every type, with steps, and what they come to, in both
 * pointer modes.
 */
#include <stdio.h>

#include "softlibs.h"

enum { N = 9, STEPS = 4 };

static const int steps[STEPS][2] = {{1, 1}, {2, 3}, {-1, 2}, {-2, -1}};
static const cudaDataType ex_types[] = {
	CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

static int at(int i, int step)
{
	return step > 0 ? i * step : (i - N + 1) * step;
}

static cudaDataType compute_of(cudaDataType type)
{
	return type == CUDA_R_16F || type == CUDA_R_16BF ? CUDA_R_32F : type;
}

static bool typed(cudaDataType type)
{
	return compute_of(type) == type;
}

struct pair {
	struct lib_array x, y;
	int incx, incy;
};

static struct pair pair(cudaDataType type, int step)
{
	return (struct pair){
		lib_array(type, 40), lib_array(type, 40), steps[step][0], steps[step][1]};
}

static void pair_check(struct pair *p)
{
	YES(lib_same(&p->x, 0));
	YES(lib_same(&p->y, 0));
	lib_free(&p->x);
	lib_free(&p->y);
}

static void one_update(cudaDataType type, int step)
{
	cudaDataType compute = compute_of(type);
	struct pair p = pair(type, step);
	double complex alpha = ckt_blas_type_complex(type) ? 0.5 - I : -1.5;
	for (int i = 0; i < N; i++) {
		int to = at(i, p.incy);
		lib_set(p.y.expected, type, to,
			lib_get(p.y.p, type, to) + alpha * lib_get(p.x.p, type, at(i, p.incx)));
	}
	const void *factor = lib_scalar(compute, alpha);
	if (typed(type))
		OK(LIB_CALL(type, cublasSaxpy_v2, cublasDaxpy_v2, cublasCaxpy_v2, cublasZaxpy_v2,
			lib_handle, N, factor, p.x.p, p.incx, p.y.p, p.incy));
	else
		OK(cublasAxpyEx(lib_handle, N, factor, compute, p.x.p, type, p.incx, p.y.p, type,
			p.incy, compute));
	pair_check(&p);

	p = pair(type, step);
	int inc = abs(p.incx);
	for (int i = 0; i < N; i++)
		lib_set(p.x.expected, type, i * inc, alpha * lib_get(p.x.p, type, i * inc));
	factor = lib_scalar(compute, alpha);
	if (typed(type))
		OK(LIB_CALL(type, cublasSscal_v2, cublasDscal_v2, cublasCscal_v2, cublasZscal_v2,
			lib_handle, N, factor, p.x.p, inc));
	else
		OK(cublasScalEx_64(lib_handle, N, factor, compute, p.x.p, type, inc, compute));
	pair_check(&p);
}

static void one_move(cudaDataType type, int step)
{
	struct pair p = pair(type, step);
	for (int i = 0; i < N; i++)
		lib_set(p.y.expected, type, at(i, p.incy), lib_get(p.x.p, type, at(i, p.incx)));
	if (typed(type))
		OK(LIB_CALL(type, cublasScopy_v2, cublasDcopy_v2, cublasCcopy_v2, cublasZcopy_v2,
			lib_handle, N, p.x.p, p.incx, p.y.p, p.incy));
	else
		OK(cublasCopyEx(lib_handle, N, p.x.p, type, p.incx, p.y.p, type, p.incy));
	pair_check(&p);
	p = pair(type, step);
	for (int i = 0; i < N; i++) {
		lib_set(p.y.expected, type, at(i, p.incy), lib_get(p.x.p, type, at(i, p.incx)));
		lib_set(p.x.expected, type, at(i, p.incx), lib_get(p.y.p, type, at(i, p.incy)));
	}
	if (typed(type))
		OK(LIB_CALL(type, cublasSswap_v2, cublasDswap_v2, cublasCswap_v2, cublasZswap_v2,
			lib_handle, N, p.x.p, p.incx, p.y.p, p.incy));
	else
		OK(cublasSwapEx(lib_handle, N, p.x.p, type, p.incx, p.y.p, type, p.incy));
	pair_check(&p);
}

/* Where a result goes in the handle's mode: the host's is there when the call returns. */
static char host_result[16];

static void *result_place(struct lib_array *device)
{
	cublasPointerMode_t mode;
	OK(cublasGetPointerMode_v2(lib_handle, &mode));
	memset(host_result, 0x77, sizeof host_result);
	return mode == CUBLAS_POINTER_MODE_HOST ? host_result : device->p;
}

static void result_check(
	const void *place, cudaDataType type, double complex shall, double tolerance)
{
	if (place != host_result)
		OK(cuStreamSynchronize(lib_stream));
	char rounded[16];
	lib_set(rounded, type, 0, shall);
	bool near = cabs(lib_get(place, type, 0) - lib_get(rounded, type, 0)) <=
		tolerance * (1 + cabs(shall));
	if (!near)
		fprintf(stderr, "type %d: %g%+gi, not %g%+gi\n", type,
			creal(lib_get(place, type, 0)), cimag(lib_get(place, type, 0)),
			creal(shall), cimag(shall));
	YES(near);
}

static void one_result(cudaDataType type, int step, struct lib_array *device)
{
	cudaDataType compute = compute_of(type),
		     real = compute == CUDA_C_32F ? CUDA_R_32F
		: compute == CUDA_C_64F           ? CUDA_R_64F
						  : type;
	struct pair p = pair(type, step);
	double complex dot = 0, dotc = 0;
	double sum = 0, squares = 0;
	int inc = abs(p.incx), best = 0, least = 0;
	double sizes[N];
	for (int i = 0; i < N; i++) {
		double complex x = lib_get(p.x.p, type, at(i, p.incx)),
			       y = lib_get(p.y.p, type, at(i, p.incy)),
			       z = lib_get(p.x.p, type, i * inc);
		dot += x * y;
		dotc += conj(x) * y;
		sizes[i] = fabs(creal(z)) + fabs(cimag(z));
		sum += sizes[i];
		squares += creal(z * conj(z));
		best = sizes[i] > sizes[best] ? i : best;
		least = sizes[i] < sizes[least] ? i : least;
	}
	void *to = result_place(device);
	if (typed(type))
		OK(LIB_CALL(type, cublasSdot_v2, cublasDdot_v2, cublasCdotu_v2, cublasZdotu_v2,
			lib_handle, N, p.x.p, p.incx, p.y.p, p.incy, to));
	else
		OK(cublasDotEx(lib_handle, N, p.x.p, type, p.incx, p.y.p, type, p.incy, to, type,
			compute));
	result_check(to, type, dot, 0);
	OK(cublasDotcEx(
		lib_handle, N, p.x.p, type, p.incx, p.y.p, type, p.incy, to, type, compute));
	result_check(to, type, dotc, 0);
	if (typed(type))
		OK(LIB_CALL(type, cublasSnrm2_v2, cublasDnrm2_v2, cublasScnrm2_v2, cublasDznrm2_v2,
			lib_handle, N, p.x.p, inc, to));
	else
		OK(cublasNrm2Ex(lib_handle, N, p.x.p, type, inc, to, type, compute));
	result_check(to, real, sqrt(squares),
		real == CUDA_R_64F           ? 1e-14
			: real == CUDA_R_32F ? 1e-6
					     : 1e-2);
	if (typed(type))
		OK(LIB_CALL(type, cublasSasum_v2, cublasDasum_v2, cublasScasum_v2, cublasDzasum_v2,
			lib_handle, N, p.x.p, inc, to));
	else
		OK(cublasAsumEx_64(lib_handle, N, p.x.p, type, inc, to, type, compute));
	result_check(to, real, sum, 0);
	if (typed(type))
		OK(LIB_CALL(type, cublasIsamax_v2, cublasIdamax_v2, cublasIcamax_v2,
			cublasIzamax_v2, lib_handle, N, p.x.p, inc, to));
	else
		OK(cublasIamaxEx(lib_handle, N, p.x.p, type, inc, to));
	result_check(to, CUDA_R_32I, best + 1, 0);
	OK(cublasIaminEx(lib_handle, N, p.x.p, type, inc, to));
	result_check(to, CUDA_R_32I, least + 1, 0);
	pair_check(&p);
}

static void test_all(void)
{
	lib_begin();
	struct lib_array device = lib_array(CUDA_R_64F, 2);
	for (int mode = 0; mode < 2; mode++) {
		OK(cublasSetPointerMode_v2(lib_handle, (cublasPointerMode_t)mode));
		for (size_t t = 0; t < COUNT(ex_types); t++)
			for (int step = 0; step < STEPS; step++) {
				one_update(ex_types[t], step);
				one_move(ex_types[t], step);
				one_result(ex_types[t], step, &device);
			}
	}
	lib_free(&device);
	lib_end();
}

/* Complex by real, indices of 64 bits, and nothing at all. */
static void test_odd(void)
{
	float half = 0.5f, number = 9;
	int64_t wide = 0;
	int index = 7;
	lib_begin();
	struct lib_array x = lib_array(CUDA_C_32F, 8);
	for (int i = 0; i < 4; i++)
		lib_set(x.expected, x.type, 2 * i, lib_get(x.p, x.type, 2 * i) / 2);
	OK(cublasCsscal_v2(lib_handle, 4, &half, (cuComplex *)x.p, 2));
	YES(lib_same(&x, 0));
	memset(x.p, 0, 64);
	((float *)x.p)[7] = -3;
	OK(cublasIcamax_v2_64(lib_handle, 8, (cuComplex *)x.p, 1, &wide));
	IS(wide, 4);
	OK(cublasIsamax_v2(lib_handle, 0, NULL, 1, &index));
	IS(index, 0);
	OK(cublasSdot_v2(lib_handle, 0, NULL, 1, NULL, 1, &number));
	IS(number, 0);
	number = 9;
	OK(cublasSnrm2_v2(lib_handle, -1, NULL, 1, &number));
	IS(number, 0);
	OK(cublasSaxpy_v2(lib_handle, 0, &half, NULL, 1, NULL, 1));
	lib_free(&x);
	lib_end();
}

UNIT_SUITE(level1, {"all types, steps and modes", test_all}, {"odd ones", test_odd})
