/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER, dense: Cholesky, LU, QR, symmetric eigenvalues, singular values by two methods; twice with one handle, about the mid point. */
#include "common.h"

#include <cusolverDn.h>

enum { N = 96 };

static std::vector<float> symmetric(bool definite)
{
	std::vector<float> a = numbers(N * N, 5), s(N * N);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			s[i * N + j] = a[i * N + j] + a[j * N + i] + (definite && i == j ? 2 * N : 0);
	return s;
}

static void run(cusolverDnHandle_t handle)
{
	int *info = device<int>(1), *pivots = device<int>(N), size;
	float *tau = device<float>(N), *w = device<float>(N), *u = device<float>(N * N), *v = device<float>(N * N);

	float *a = device(symmetric(true));
	TRY(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, N, a, N, &size));
	float *work = device<float>(size);
	TRY(cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_LOWER, N, a, N, work, size, info));
	hash("potrf", a, N * N * 4);
	CHECK(cudaFree(work));

	a = device(numbers(N * N, 6));
	float *b = device(numbers(N, 7));
	TRY(cusolverDnSgetrf_bufferSize(handle, N, N, a, N, &size));
	work = device<float>(size);
	TRY(cusolverDnSgetrf(handle, N, N, a, N, work, pivots, info));
	TRY(cusolverDnSgetrs(handle, CUBLAS_OP_N, N, 1, a, N, pivots, b, N, info));
	hash("getrf", a, N * N * 4);
	hash("getrs", b, N * 4);
	CHECK(cudaFree(work));

	a = device(numbers(N * N, 8));
	int more;
	TRY(cusolverDnSgeqrf_bufferSize(handle, N, N, a, N, &size));
	TRY(cusolverDnSorgqr_bufferSize(handle, N, N, N, a, N, tau, &more));
	size = more > size ? more : size;
	work = device<float>(size);
	TRY(cusolverDnSgeqrf(handle, N, N, a, N, tau, work, size, info));
	hash("geqrf", a, N * N * 4);
	TRY(cusolverDnSorgqr(handle, N, N, N, a, N, tau, work, size, info));
	hash("orgqr", a, N * N * 4);
	CHECK(cudaFree(work));

	a = device(symmetric(false));
	TRY(cusolverDnSsyevd_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, a, N, w, &size));
	work = device<float>(size);
	TRY(cusolverDnSsyevd(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, a, N, w, work, size, info));
	hash("syevd values", w, N * 4);
	hash("syevd vectors", a, N * N * 4);
	CHECK(cudaFree(work));

	a = device(numbers(N * N, 9));
	TRY(cusolverDnSgesvd_bufferSize(handle, N, N, &size));
	work = device<float>(size);
	TRY(cusolverDnSgesvd(handle, 'A', 'A', N, N, a, N, w, u, N, v, N, work, size, NULL, info));
	hash("gesvd", w, N * 4);
	hash("gesvd u", u, N * N * 4);
	CHECK(cudaFree(work));

	gesvdjInfo_t parameters;
	a = device(numbers(N * N, 10));
	TRY(cusolverDnCreateGesvdjInfo(&parameters));
	TRY(cusolverDnSgesvdj_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, 0, N, N, a, N, w, u, N, v, N, &size, parameters));
	work = device<float>(size);
	TRY(cusolverDnSgesvdj(handle, CUSOLVER_EIG_MODE_VECTOR, 0, N, N, a, N, w, u, N, v, N, work, size, info, parameters));
	hash("gesvdj", w, N * 4);
	hash("gesvdj v", v, N * N * 4);
	TRY(cusolverDnDestroyGesvdjInfo(parameters));
	CHECK(cudaFree(work));
}

int main()
{
	cusolverDnHandle_t handle;
	TRY(cusolverDnCreate(&handle));
	run(handle);
	phase();
	run(handle);
	TRY(cusolverDnDestroy(handle));
	return finish();
}
