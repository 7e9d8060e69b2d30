/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/blas/factor.c: factors multiply to what was factored, and solutions solve. */
#include "softlibs.h"

enum { N = 6, M = 8, LD = 9, BATCH = 3, RHS = 2 };

/* A batch of matrices with the list of their addresses on the device. */
struct batch {
	struct lib_array all;
	CUdeviceptr list;
};

static struct batch batch(cudaDataType type)
{
	struct batch b = {.all = lib_array(type, LD * LD * BATCH)};
	OK(cuMemAlloc(&b.list, BATCH * sizeof(void *)));
	for (int i = 0; i < BATCH; i++)
		((char **)(uintptr_t)b.list)[i] =
			b.all.p + (size_t)(i * LD * LD) * ckt_blas_type_size(type);
	return b;
}

static void batch_free(struct batch *b)
{
	OK(cuStreamSynchronize(lib_stream));
	lib_free(&b->all);
	OK(cuMemFree(b->list));
}

static void *list_of(const struct batch *b)
{
	return (void *)(uintptr_t)b->list;
}

/* An element now, and as it was made. */
static double complex now(const struct batch *b, int e, int i, int j)
{
	return lib_get(b->all.p, b->all.type, e * LD * LD + i + j * LD);
}

static double complex was(const struct batch *b, int e, int i, int j)
{
	return lib_get(b->all.expected, b->all.type, e * LD * LD + i + j * LD);
}

static double tolerance(cudaDataType type)
{
	return type == CUDA_R_32F || type == CUDA_C_32F ? 2e-4 : 1e-10;
}

static int *ints(CUdeviceptr *p)
{
	OK(cuMemAlloc(p, 4 * N * BATCH));
	OK(cuMemsetD8(*p, 0x77, 4 * N * BATCH));
	return (int *)(uintptr_t)*p;
}

static void check_factors(const struct batch *a, const int *pivot)
{
	for (int e = 0; e < BATCH; e++) {
		int row[N];
		for (int i = 0; i < N; i++)
			row[i] = i;
		for (int k = 0; pivot && k < N; k++) {
			int other = pivot[e * N + k] - 1, t = row[k];
			YES(other >= k && other < N);
			row[k] = row[other];
			row[other] = t;
		}
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				double complex sum = 0;
				for (int k = 0; k <= (i < j ? i : j); k++)
					sum += (k == i ? 1 : now(a, e, i, k)) * now(a, e, k, j);
				YES(cabs(sum - was(a, e, row[i], j)) < tolerance(a->all.type) * 10);
			}
	}
}

static void check_inverse(const struct batch *a, const struct batch *c)
{
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				double complex sum = 0;
				for (int k = 0; k < N; k++)
					sum += was(a, e, i, k) * now(c, e, k, j);
				YES(cabs(sum - (i == j)) < tolerance(a->all.type) * 10);
			}
}

/* The diagonal is not small, so that without pivots it goes, too. */
static void strengthen(struct batch *a)
{
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < N; i++) {
			lib_set(a->all.p, a->all.type, e * LD * LD + i + i * LD, 20 + i);
			lib_set(a->all.expected, a->all.type, e * LD * LD + i + i * LD, 20 + i);
		}
}

static void one_lu(cudaDataType type, bool with_pivot)
{
	CUdeviceptr pivots, infos;
	int *pivot = ints(&pivots), *info = ints(&infos), host_info = 7,
	    *used = with_pivot ? pivot : NULL;
	struct batch a = batch(type), c = batch(type);
	if (!with_pivot)
		strengthen(&a);
	OK(LIB_CALL(type, cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched,
		cublasZgetrfBatched, lib_handle, N, list_of(&a), LD, used, info, BATCH));
	OK(cuStreamSynchronize(lib_stream));
	IS(info[0] | info[1] | info[2], 0);
	check_factors(&a, used);
	OK(LIB_CALL(type, cublasSgetriBatched, cublasDgetriBatched, cublasCgetriBatched,
		cublasZgetriBatched, lib_handle, N, list_of(&a), LD, used, list_of(&c), LD, info,
		BATCH));
	OK(cuStreamSynchronize(lib_stream));
	check_inverse(&a, &c);
	for (int op = 0; op < 3; op++) {
		struct batch b = batch(type);
		OK(LIB_CALL(type, cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched,
			cublasZgetrsBatched, lib_handle, op, N, RHS, list_of(&a), LD, used,
			list_of(&b), LD, &host_info, BATCH));
		OK(cuStreamSynchronize(lib_stream));
		IS(host_info, 0);
		for (int e = 0; e < BATCH; e++)
			for (int j = 0; j < RHS; j++)
				for (int i = 0; i < N; i++) {
					double complex sum = 0;
					for (int k = 0; k < N; k++)
						sum += (op ? lib_op(was(&a, e, k, i), op)
							   : was(&a, e, i, k)) *
							now(&b, e, k, j);
					YES(cabs(sum - was(&b, e, i, j)) < tolerance(type) * 10);
				}
		batch_free(&b);
	}
	batch_free(&a);
	batch_free(&c);
	OK(cuMemFree(pivots));
	OK(cuMemFree(infos));
}

static void test_lu(void)
{
	lib_begin();
	for (int i = 0; i < 8; i++)
		one_lu(lib_types4[i % 4], i / 4);
	lib_end();
}

static void test_inverse(void)
{
	CUdeviceptr infos;
	lib_begin();
	int *info = ints(&infos);
	for (size_t t = 0; t < COUNT(lib_types4); t++) {
		struct batch a = batch(lib_types4[t]), c = batch(lib_types4[t]);
		OK(LIB_CALL(lib_types4[t], cublasSmatinvBatched, cublasDmatinvBatched,
			cublasCmatinvBatched, cublasZmatinvBatched, lib_handle, N, list_of(&a), LD,
			list_of(&c), LD, info, BATCH));
		OK(cuStreamSynchronize(lib_stream));
		check_inverse(&a, &c);
		YES(lib_same(&a.all, 0));
		batch_free(&a);
		batch_free(&c);
	}
	OK(cuMemFree(infos));
	lib_end();
}

/* A row of zeros: info says which, and no inverse is written. */
static void test_singular(void)
{
	CUdeviceptr pivots, infos;
	lib_begin();
	int *pivot = ints(&pivots), *info = ints(&infos);
	struct batch a = batch(CUDA_R_64F), c = batch(CUDA_R_64F);
	double *second = (double *)a.all.p + LD * LD;
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			second[i + j * LD] = i == j && i != 3;
	OK(cublasDgetrfBatched(lib_handle, N, list_of(&a), LD, pivot, info, BATCH));
	OK(cuStreamSynchronize(lib_stream));
	IS(info[0], 0);
	IS(info[1], 4);
	OK(cublasDgetriBatched(
		lib_handle, N, list_of(&a), LD, pivot, list_of(&c), LD, info, BATCH));
	OK(cuStreamSynchronize(lib_stream));
	IS(info[1], 4);
	for (int i = 0; i < N; i++)
		YES(now(&c, 1, i, i) == was(&c, 1, i, i));
	YES(now(&c, 0, 0, 0) != was(&c, 0, 0, 0));
	batch_free(&a);
	batch_free(&c);
	OK(cuMemFree(pivots));
	OK(cuMemFree(infos));
	lib_end();
}

/* Q^H A = R: the reflectors, applied one after the other to what was factored, give R. */
static void test_qr(void)
{
	int host_info = 9;
	lib_begin();
	for (size_t t = 0; t < COUNT(lib_types4); t++) {
		cudaDataType type = lib_types4[t];
		struct batch a = batch(type), tau = batch(type);
		OK(LIB_CALL(type, cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched,
			cublasZgeqrfBatched, lib_handle, M, N, list_of(&a), LD, list_of(&tau),
			&host_info, BATCH));
		OK(cuStreamSynchronize(lib_stream));
		IS(host_info, 0);
		for (int e = 0; e < BATCH; e++)
			for (int j = 0; j < N; j++) {
				double complex x[M];
				for (int i = 0; i < M; i++)
					x[i] = was(&a, e, i, j);
				for (int k = 0; k < N; k++) {
					double complex sum = x[k];
					for (int i = k + 1; i < M; i++)
						sum += conj(now(&a, e, i, k)) * x[i];
					sum *= conj(now(&tau, e, k, 0));
					x[k] -= sum;
					for (int i = k + 1; i < M; i++)
						x[i] -= now(&a, e, i, k) * sum;
				}
				for (int i = 0; i < M; i++)
					YES(cabs(x[i] - (i <= j ? now(&a, e, i, j) : 0)) <
						tolerance(type) * 10);
				YES(cimag(now(&a, e, j, j)) == 0);
			}
		batch_free(&a);
		batch_free(&tau);
	}
	lib_end();
}

/* What is left over is orthogonal to every column. */
static void test_least_squares(void)
{
	CUdeviceptr infos;
	int host_info = 9;
	lib_begin();
	int *info = ints(&infos);
	for (size_t t = 0; t < COUNT(lib_types4); t++) {
		cudaDataType type = lib_types4[t];
		struct batch a = batch(type), c = batch(type);
		OK(LIB_CALL(type, cublasSgelsBatched, cublasDgelsBatched, cublasCgelsBatched,
			cublasZgelsBatched, lib_handle, CUBLAS_OP_N, M, N, RHS, list_of(&a), LD,
			list_of(&c), LD, &host_info, info, BATCH));
		OK(cuStreamSynchronize(lib_stream));
		IS(host_info, 0);
		IS(info[2], 0);
		for (int e = 0; e < BATCH; e++)
			for (int j = 0; j < RHS; j++) {
				double complex left[M];
				for (int i = 0; i < M; i++) {
					left[i] = was(&c, e, i, j);
					for (int k = 0; k < N; k++)
						left[i] -= was(&a, e, i, k) * now(&c, e, k, j);
				}
				for (int k = 0; k < N; k++) {
					double complex sum = 0;
					for (int i = 0; i < M; i++)
						sum += conj(was(&a, e, i, k)) * left[i];
					YES(cabs(sum) < tolerance(type) * 50);
				}
			}
		batch_free(&a);
		batch_free(&c);
	}
	OK(cuMemFree(infos));
	lib_end();
}

UNIT_SUITE(factor, {"LU, its solutions and inverses", test_lu}, {"inverse", test_inverse},
	{"singular", test_singular}, {"QR", test_qr}, {"least squares", test_least_squares})
