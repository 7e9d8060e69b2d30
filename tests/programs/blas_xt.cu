/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublasXt and the API without handles against cuBLAS's functions with handles: each computes the same from the same, block by block, with
 * operands on the host and on the device.
 */
#include <cublasXt.h>
#include <complex>
#include <vector>
#include <math.h>

#include "phase.h"

#define BLAS(call)                                                                                                               \
	do {                                                                                                                     \
		cublasStatus_t status_ = (call);                                                                                 \
		if (status_ != CUBLAS_STATUS_SUCCESS) {                                                                          \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cublasGetStatusName(status_));                      \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

/* cublas.h and cublas_v2.h exclude each other, and the latter gives its functions the names of these. */
extern "C" {
cublasStatus_t cublasGetError(void);
cublasStatus_t cublasAlloc(int n, int size, void **memory);
cublasStatus_t cublasFree(void *memory);
cublasStatus_t cublasShutdown(void);
double legacyDdot(int n, const double *x, int incx, const double *y, int incy) asm("cublasDdot");
cuDoubleComplex legacyZdotc(int n, const cuDoubleComplex *x, int incx, const cuDoubleComplex *y, int incy) asm("cublasZdotc");
void legacyDtrmm(char side, char uplo, char transa, char diag, int m, int n, double alpha, const double *A, int lda, double *B, int ldb)
	asm("cublasDtrmm");
void legacyZgemm(char transa, char transb, int m, int n, int k, cuDoubleComplex alpha, const cuDoubleComplex *A, int lda, const cuDoubleComplex *B,
		 int ldb, cuDoubleComplex beta, cuDoubleComplex *C, int ldc) asm("cublasZgemm");
}

typedef std::complex<double> complex;

static cublasHandle_t handle;
static cublasXtHandle_t xt;
static int failures, compared;
static const int M = 37, N = 29, K = 45, LD = 50, BLOCK = 16;

static double next_value()
{
	static unsigned seed = 12345;

	seed = seed * 1664525 + 1013904223;
	return (double)(seed >> 8) / (1 << 24) - 0.5;
}

static void set(double *x)
{
	*x = next_value();
}

static void set(complex *x)
{
	*x = complex(next_value(), next_value());
}

/* LD x LD, well conditioned as a triangle. */
template <typename T> static std::vector<T> matrix()
{
	std::vector<T> made(LD * LD);

	for (T &x : made)
		set(&x);
	for (int i = 0; i < LD; i++)
		made[i * LD + i] += 4.0;
	return made;
}

template <typename T> struct operands {
	std::vector<T> a, b, c;
	T *on_device[3];

	operands() : a(matrix<T>()), b(matrix<T>()), c(matrix<T>())
	{
		std::vector<T> *all[] = {&a, &b, &c};
		for (int i = 0; i < 3; i++) {
			CHECK(cudaMalloc(&on_device[i], LD * LD * sizeof(T)));
			CHECK(cudaMemcpy(on_device[i], all[i]->data(), LD * LD * sizeof(T), cudaMemcpyHostToDevice));
		}
	}
	~operands()
	{
		for (T *p : on_device)
			cudaFree(p);
	}
	std::vector<T> result(int which)
	{
		std::vector<T> got(LD * LD);

		CHECK(cudaMemcpy(got.data(), on_device[which], LD * LD * sizeof(T), cudaMemcpyDeviceToHost));
		return got;
	}
};

template <typename T> static void compare(const char *name, const std::vector<T> &expected, const std::vector<T> &got)
{
	double worst = 0;

	for (size_t i = 0; i < expected.size(); i++) {
		double distance = std::abs(expected[i] - got[i]) / (1 + std::abs(expected[i]));
		worst = distance > worst || distance != distance ? distance : worst;
	}
	compared++;
	if (!(worst < 1e-11)) {
		printf("%s differs by %g\n", name, worst);
		failures++;
	}
}

/*
 * WHOLE: with handle, on A, B, C of the device; XT: the same of cublasXt, on pointers that lie on the host first, then on the device, then on
 * both.  The result is in C (2) or B (1).
 */
#define SAME(T, which, WHOLE, XT)                                                                                                \
	do {                                                                                                                     \
		operands<T> whole;                                                                                               \
		for (int where = 0; where < 3; where++) {                                                                        \
			std::vector<T> a = whole.a, b = whole.b, c = whole.c;                                                    \
			operands<T> other;                                                                                       \
			CHECK(cudaMemcpy(other.on_device[0], a.data(), LD *LD * sizeof(T), cudaMemcpyHostToDevice));              \
			CHECK(cudaMemcpy(other.on_device[1], b.data(), LD *LD * sizeof(T), cudaMemcpyHostToDevice));              \
			CHECK(cudaMemcpy(other.on_device[2], c.data(), LD *LD * sizeof(T), cudaMemcpyHostToDevice));              \
			{                                                                                                        \
				[[maybe_unused]] T *A = where ? other.on_device[0] : a.data(), *B = where == 1 ? other.on_device[1] : b.data();    \
				[[maybe_unused]] T *C = where == 1 ? other.on_device[2] : c.data();                                               \
				BLAS(XT);                                                                                        \
			}                                                                                                        \
			if (!where) {                                                                                            \
				[[maybe_unused]] T *A = whole.on_device[0], *B = whole.on_device[1], *C = whole.on_device[2];                      \
				BLAS(WHOLE);                                                                                     \
			}                                                                                                        \
			std::vector<T> &host = which == 1 ? b : c;                                                               \
			compare(#XT, whole.result(which), where == 1 ? other.result(which) : host);                              \
			(void)a;                                                                                                 \
		}                                                                                                                \
	} while (0)

#define Z(x) ((const cuDoubleComplex *)(x))
#define ZC(x) ((cuDoubleComplex *)(x))

static const cublasFillMode_t fills[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};
static const cublasSideMode_t sides[] = {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT};
static const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};

static void products()
{
	const double alpha = 1.25, beta = -0.5;
	const complex zalpha(1.25, -0.75), zbeta(-0.5, 0.25), zero = 0;

	for (cublasOperation_t ta : ops)
		for (cublasOperation_t tb : ops) {
			SAME(double, 2, cublasDgemm(handle, ta, tb, M, N, K, &alpha, A, LD, B, LD, &beta, C, LD),
			     cublasXtDgemm(xt, ta, tb, M, N, K, &alpha, A, LD, B, LD, &beta, C, LD));
			SAME(complex, 2, cublasZgemm_v2(handle, ta, tb, M, N, K, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zero), ZC(C), LD),
			     cublasXtZgemm(xt, ta, tb, M, N, K, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zero), ZC(C), LD));
		}
	for (cublasSideMode_t side : sides)
		for (cublasFillMode_t fill : fills) {
			SAME(double, 2, cublasDsymm(handle, side, fill, M, N, &alpha, A, LD, B, LD, &beta, C, LD),
			     cublasXtDsymm(xt, side, fill, M, N, &alpha, A, LD, B, LD, &beta, C, LD));
			SAME(complex, 2, cublasZsymm(handle, side, fill, M, N, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zbeta), ZC(C), LD),
			     cublasXtZsymm(xt, side, fill, M, N, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zbeta), ZC(C), LD));
			SAME(complex, 2, cublasZhemm(handle, side, fill, M, N, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zbeta), ZC(C), LD),
			     cublasXtZhemm(xt, side, fill, M, N, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zbeta), ZC(C), LD));
		}
}

/* The other triangle stays as it is. */
static void ranks()
{
	const double alpha = 1.25, beta = -0.5;
	const complex zalpha(1.25, -0.75), zbeta(-0.5, 0.25);

	for (cublasFillMode_t fill : fills)
		for (cublasOperation_t op : ops) {
			SAME(double, 2, cublasDsyrk(handle, fill, op, M, K, &alpha, A, LD, &beta, C, LD), cublasXtDsyrk(xt, fill, op, M, K, &alpha, A, LD, &beta, C, LD));
			SAME(double, 2, cublasDsyr2k(handle, fill, op, M, K, &alpha, A, LD, B, LD, &beta, C, LD),
			     cublasXtDsyr2k(xt, fill, op, M, K, &alpha, A, LD, B, LD, &beta, C, LD));
			SAME(double, 2, cublasDsyrkx(handle, fill, op, M, K, &alpha, A, LD, B, LD, &beta, C, LD),
			     cublasXtDsyrkx(xt, fill, op, M, K, &alpha, A, LD, B, LD, &beta, C, LD));
			if (op != CUBLAS_OP_C) {
				SAME(complex, 2, cublasZsyrk(handle, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(&zbeta), ZC(C), LD),
				     cublasXtZsyrk(xt, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(&zbeta), ZC(C), LD));
				SAME(complex, 2, cublasZsyr2k(handle, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zbeta), ZC(C), LD),
				     cublasXtZsyr2k(xt, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(B), LD, Z(&zbeta), ZC(C), LD));
			}
			if (op != CUBLAS_OP_T) {
				SAME(complex, 2, cublasZherk(handle, fill, op, M, K, &alpha, Z(A), LD, &beta, ZC(C), LD),
				     cublasXtZherk(xt, fill, op, M, K, &alpha, Z(A), LD, &beta, ZC(C), LD));
				SAME(complex, 2, cublasZher2k(handle, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(B), LD, &beta, ZC(C), LD),
				     cublasXtZher2k(xt, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(B), LD, &beta, ZC(C), LD));
				SAME(complex, 2, cublasZherkx(handle, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(B), LD, &beta, ZC(C), LD),
				     cublasXtZherkx(xt, fill, op, M, K, Z(&zalpha), Z(A), LD, Z(B), LD, &beta, ZC(C), LD));
			}
		}
}

static void triangles()
{
	const double alpha = 1.25;
	const complex zalpha(1.25, -0.75);
	static const cublasDiagType_t diags[] = {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT};

	for (cublasSideMode_t side : sides)
		for (cublasFillMode_t fill : fills)
			for (cublasOperation_t op : ops) {
				cublasDiagType_t diag = diags[op == CUBLAS_OP_T];
				SAME(double, 2, cublasDtrmm(handle, side, fill, op, diag, M, N, &alpha, A, LD, B, LD, C, LD),
				     cublasXtDtrmm(xt, side, fill, op, diag, M, N, &alpha, A, LD, B, LD, C, LD));
				/* In place. */
				SAME(complex, 1, cublasZtrmm(handle, side, fill, op, diag, M, N, Z(&zalpha), Z(A), LD, Z(B), LD, ZC(B), LD),
				     cublasXtZtrmm(xt, side, fill, op, diag, M, N, Z(&zalpha), Z(A), LD, Z(B), LD, ZC(B), LD));
				SAME(double, 1, cublasDtrsm(handle, side, fill, op, CUBLAS_DIAG_NON_UNIT, M, N, &alpha, A, LD, B, LD),
				     cublasXtDtrsm(xt, side, fill, op, CUBLAS_DIAG_NON_UNIT, M, N, &alpha, A, LD, B, LD));
				SAME(complex, 1, cublasZtrsm(handle, side, fill, op, CUBLAS_DIAG_NON_UNIT, M, N, Z(&zalpha), Z(A), LD, ZC(B), LD),
				     cublasXtZtrsm(xt, side, fill, op, CUBLAS_DIAG_NON_UNIT, M, N, Z(&zalpha), Z(A), LD, ZC(B), LD));
			}
}

/* A packed matrix is the symmetric one without its other half. */
static void packed()
{
	const double alpha = 1.25, beta = -0.5;

	for (cublasSideMode_t side : sides)
		for (cublasFillMode_t fill : fills) {
			int order = side == CUBLAS_SIDE_LEFT ? M : N;
			operands<double> whole;
			std::vector<double> ap, c = whole.c;

			for (int column = 0; column < order; column++)
				for (int row = 0; row < order; row++)
					if (fill == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column)
						ap.push_back(whole.a[column * LD + row]);
			BLAS(cublasDsymm(handle, side, fill, M, N, &alpha, whole.on_device[0], LD, whole.on_device[1], LD, &beta, whole.on_device[2], LD));
			BLAS(cublasXtDspmm(xt, side, fill, M, N, &alpha, ap.data(), whole.b.data(), LD, &beta, c.data(), LD));
			compare("cublasXtDspmm", whole.result(2), c);
		}
}

static void expect(const char *what, int status, int expected)
{
	compared++;
	if (status != expected) {
		printf("%s answers %d, not %d\n", what, status, expected);
		failures++;
	}
}

static void without_handles()
{
	const complex alpha(1.25, -0.75), beta(-0.5, 0.25);
	complex expected_dot;
	double dot;
	const double real = 0.5;
	operands<complex> one, two;
	operands<double> x, y;
	void *memory;

	CHECK(cudaMemcpy(two.on_device[0], one.on_device[0], LD * LD * sizeof(complex), cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(two.on_device[1], one.on_device[1], LD * LD * sizeof(complex), cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(two.on_device[2], one.on_device[2], LD * LD * sizeof(complex), cudaMemcpyDeviceToDevice));
	BLAS(cublasZgemm_v2(handle, CUBLAS_OP_C, CUBLAS_OP_T, M, N, K, Z(&alpha), Z(one.on_device[0]), LD, Z(one.on_device[1]), LD, Z(&beta),
			    ZC(one.on_device[2]), LD));
	legacyZgemm('c', 'T', M, N, K, make_cuDoubleComplex(alpha.real(), alpha.imag()), Z(two.on_device[0]), LD, Z(two.on_device[1]), LD,
		    make_cuDoubleComplex(beta.real(), beta.imag()), ZC(two.on_device[2]), LD);
	expect("cublasZgemm", cublasGetError(), CUBLAS_STATUS_SUCCESS);
	compare("cublasZgemm", one.result(2), two.result(2));
	BLAS(cublasZdotc_v2(handle, M, Z(one.on_device[0]), 1, Z(one.on_device[1]), 2, ZC(&expected_dot)));
	cuDoubleComplex got = legacyZdotc(M, Z(one.on_device[0]), 1, Z(one.on_device[1]), 2);
	compare("cublasZdotc", std::vector<complex>(1, expected_dot), std::vector<complex>(1, complex(got.x, got.y)));
	BLAS(cublasDdot_v2(handle, M, x.on_device[0], 1, x.on_device[1], 1, &dot));
	compare("cublasDdot", std::vector<double>(1, dot), std::vector<double>(1, legacyDdot(M, x.on_device[0], 1, x.on_device[1], 1)));
	CHECK(cudaMemcpy(y.on_device[1], x.on_device[1], LD * LD * sizeof(double), cudaMemcpyDeviceToDevice));
	BLAS(cublasDtrmm_v2(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, M, N, &real, x.on_device[0], LD, x.on_device[1], LD,
			    x.on_device[1], LD));
	legacyDtrmm('R', 'u', 'n', 'U', M, N, real, x.on_device[0], LD, y.on_device[1], LD);
	compare("cublasDtrmm", x.result(1), y.result(1));
	legacyDtrmm('R', '?', 'n', 'U', M, N, real, x.on_device[0], LD, y.on_device[1], LD);
	expect("cublasDtrmm of no triangle", cublasGetError(), CUBLAS_STATUS_INVALID_VALUE);
	expect("cublasGetError again", cublasGetError(), CUBLAS_STATUS_SUCCESS);
	expect("cublasAlloc", cublasAlloc(100, 8, &memory), CUBLAS_STATUS_SUCCESS);
	CHECK(cudaMemset(memory, 0, 800));
	expect("cublasFree", cublasFree(memory), CUBLAS_STATUS_SUCCESS);
}

static void refusals()
{
	const double one = 1;
	double some[4] = {0};
	int device = 0, dim = 0;
	cublasXtHandle_t fresh;

	BLAS(cublasXtCreate(&fresh));
	BLAS(cublasXtGetBlockDim(fresh, &dim));
	expect("block of a new handle", dim, 1024);
	expect("no device selected", cublasXtDgemm(fresh, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, some, 2, some, 2, &one, some, 2), CUBLAS_STATUS_NOT_INITIALIZED);
	expect("no devices", cublasXtDeviceSelect(fresh, 0, &device), CUBLAS_STATUS_INVALID_VALUE);
	expect("block 0", cublasXtSetBlockDim(fresh, 0), CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasXtDestroy(fresh));
	expect("lda", cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, some, 1, some, 2, &one, some, 2), CUBLAS_STATUS_INVALID_VALUE);
	expect("operation", cublasXtDgemm(xt, (cublasOperation_t)7, CUBLAS_OP_N, 2, 2, 2, &one, some, 2, some, 2, &one, some, 2), CUBLAS_STATUS_INVALID_VALUE);
}

int main()
{
	int devices[2] = {0, 0}, count = 0;

	CHECK(cudaGetDeviceCount(&count));
	/* Two of them, where there are two. */
	devices[1] = count > 1;
	BLAS(cublasCreate(&handle));
	BLAS(cublasXtCreate(&xt));
	BLAS(cublasXtDeviceSelect(xt, count > 1 ? 2 : 1, devices));
	BLAS(cublasXtSetBlockDim(xt, BLOCK));
	products();
	ranks();
	phase();
	triangles();
	packed();
	without_handles();
	refusals();
	BLAS(cublasXtDestroy(xt));
	cublasShutdown();
	BLAS(cublasDestroy(handle));
	printf("%d results, %d wrong\n", compared, failures);
	return failures != 0;
}
