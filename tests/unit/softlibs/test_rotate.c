/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/blas/rotate.c: rotations by their definition, and that those which are made do what
 * they are made for.
 */
#include "softlibs.h"

enum { N = 6 };

static int at(int i, int step)
{
	return step > 0 ? i * step : (i - N + 1) * step;
}

static void test_rot(void)
{
	static const int steps[][2] = {{1, 1}, {-1, 2}, {2, -1}};
	lib_begin();
	for (int mode = 0; mode < 2; mode++) {
		OK(cublasSetPointerMode_v2(lib_handle, (cublasPointerMode_t)mode));
		for (int i = 0; i < 12; i++) {
			cudaDataType type = lib_types4[i % 4],
				     real = type == CUDA_C_32F ? CUDA_R_32F
				: type == CUDA_C_64F           ? CUDA_R_64F
							       : type;
			int incx = steps[i % 3][0], incy = steps[i % 3][1];
			double c = 0.5;
			double complex s = ckt_blas_type_complex(type) ? 0.25 - I : -0.75;
			struct lib_array x = lib_array(type, 20), y = lib_array(type, 20);
			for (int e = 0; e < N; e++) {
				double complex a = lib_get(x.p, type, at(e, incx)),
					       b = lib_get(y.p, type, at(e, incy));
				lib_set(x.expected, type, at(e, incx), c * a + s * b);
				lib_set(y.expected, type, at(e, incy), c * b - conj(s) * a);
			}
			OK(LIB_CALL(type, cublasSrot_v2, cublasDrot_v2, cublasCrot_v2,
				cublasZrot_v2, lib_handle, N, x.p, incx, y.p, incy,
				lib_scalar(real, c), lib_scalar(type, s)));
			YES(lib_same(&x, 0));
			YES(lib_same(&y, 0));
			lib_free(&x);
			lib_free(&y);
		}
	}
	lib_end();
}

/* c and s of the call, not of the run; halves. */
static void test_rot_ex(void)
{
	float c = 0.5f, s = 0.25f;
	lib_begin();
	struct lib_array x = lib_array(CUDA_R_16F, N), y = lib_array(CUDA_R_16F, N);
	for (int e = 0; e < N; e++) {
		double complex a = lib_get(x.p, x.type, e), b = lib_get(y.p, y.type, e);
		lib_set(x.expected, x.type, e, 0.5 * a + 0.25 * b);
		lib_set(y.expected, y.type, e, 0.5 * b - 0.25 * a);
	}
	OK(cublasRotEx(
		lib_handle, N, x.p, x.type, 1, y.p, y.type, 1, &c, &s, CUDA_R_32F, CUDA_R_32F));
	YES(lib_same(&x, 0));
	YES(lib_same(&y, 0));
	lib_free(&x);
	lib_free(&y);
	lib_end();
}

static void test_rotg(void)
{
	lib_begin();
	float a = 3, b = 4, c = 0, s = 0;
	OK(cublasSrotg_v2(lib_handle, &a, &b, &c, &s));
	YES(fabsf(a - 5) < 1e-6f && fabsf(c - 0.6f) < 1e-6f && fabsf(s - 0.8f) < 1e-6f);
	/* Complex: c a + s b is what a becomes, and the other 0. */
	double complex za = 1 + 2 * I, zb = -3 + 0.5 * I, was = za, zs = 0;
	double zc = 0;
	OK(cublasZrotg_v2(lib_handle, (cuDoubleComplex *)&za, (cuDoubleComplex *)&zb, &zc,
		(cuDoubleComplex *)&zs));
	YES(cabs(zc * was + zs * zb - za) < 1e-14);
	YES(cabs(zc * zb - conj(zs) * was) < 1e-14);
	/* On the device, in order. */
	struct lib_array p = lib_array(CUDA_R_32F, 4);
	float *f = (float *)p.p;
	f[0] = 3, f[1] = 4;
	OK(cublasSetPointerMode_v2(lib_handle, CUBLAS_POINTER_MODE_DEVICE));
	OK(cublasSrotg_v2(lib_handle, f, f + 1, f + 2, f + 3));
	OK(cuStreamSynchronize(lib_stream));
	YES(f[0] == a && f[2] == c && f[3] == s);
	lib_free(&p);
	lib_end();
}

static void test_modified(void)
{
	static const float flags[] = {-2, -1, 0, 1};
	lib_begin();
	for (size_t i = 0; i < COUNT(flags); i++) {
		float param[5] = {flags[i], 0.5f, -0.25f, 2, 1.5f};
		double h[2][2] = {
			{flags[i] == 0 || flags[i] == -2 ? 1 : 0.5, flags[i] == 1 ? 1 : 2},
			{flags[i] == 1 ? -1 : -0.25, flags[i] == 0 || flags[i] == -2 ? 1 : 1.5}};
		if (flags[i] == -2)
			h[0][1] = h[1][0] = 0;
		struct lib_array x = lib_array(CUDA_R_32F, 20), y = lib_array(CUDA_R_32F, 20);
		for (int e = 0; e < N; e++) {
			double complex a = lib_get(x.p, x.type, at(e, 2)),
				       b = lib_get(y.p, y.type, at(e, -1));
			lib_set(x.expected, x.type, at(e, 2), h[0][0] * a + h[0][1] * b);
			lib_set(y.expected, y.type, at(e, -1), h[1][0] * a + h[1][1] * b);
		}
		OK(cublasSrotm_v2(lib_handle, N, (float *)x.p, 2, (float *)y.p, -1, param));
		YES(lib_same(&x, 0));
		YES(lib_same(&y, 0));
		lib_free(&x);
		lib_free(&y);
	}
	/* What rotmg makes turns (sqrt(d1) x1, sqrt(d2) y1) so that the second is 0. */
	double d1 = 2, d2 = 3, x1 = 1.5, y1 = -0.5, param[5] = {0}, was = x1;
	OK(cublasDrotmg_v2(lib_handle, &d1, &d2, &x1, &y1, param));
	double h21 = param[0] == 1 ? -1 : param[2], h22 = param[0] == 0 ? 1 : param[4];
	double h11 = param[0] == 0 ? 1 : param[1], h12 = param[0] == 1 ? 1 : param[3];
	YES(fabs(h21 * was + h22 * y1) < 1e-12);
	YES(fabs(h11 * was + h12 * y1 - x1) < 1e-12);
	YES(param[0] != -2);
	lib_end();
}

UNIT_SUITE(rotate, {"rotations", test_rot}, {"of halves", test_rot_ex}, {"made", test_rotg},
	{"modified", test_modified})
