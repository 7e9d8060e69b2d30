/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublas/grouped.c: groups of products, each with its own sizes and factors. */
#include "softlibs.h"

enum { GROUPS = 3, COUNT_ALL = 5, LD = 6 };

static const cublasOperation_t ta[GROUPS] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_N},
			       tb[GROUPS] = {CUBLAS_OP_N, CUBLAS_OP_N, CUBLAS_OP_T};
static const int m[GROUPS] = {2, 4, 3}, n[GROUPS] = {3, 1, 5}, k[GROUPS] = {4, 2, 3},
		 ld[GROUPS] = {LD, LD, LD}, size[GROUPS] = {2, 1, 2};
static const int64_t m64[GROUPS] = {2, 4, 3}, n64[GROUPS] = {3, 1, 5}, k64[GROUPS] = {4, 2, 3},
		     ld64[GROUPS] = {LD, LD, LD}, size64[GROUPS] = {2, 1, 2};

struct setting {
	struct lib_array a, b, c;
	CUdeviceptr lists;
	void **list;
};

static void setting_make(
	struct setting *s, cudaDataType type, const double *alpha, const double *beta)
{
	size_t bytes = ckt_blas_type_size(type);
	s->a = lib_array(type, LD * LD * COUNT_ALL);
	s->b = lib_array(type, LD * LD * COUNT_ALL);
	s->c = lib_array(type, LD * LD * COUNT_ALL);
	OK(cuMemAlloc(&s->lists, 3 * COUNT_ALL * sizeof(void *)));
	s->list = (void **)(uintptr_t)s->lists;
	int i = 0;
	for (int g = 0; g < GROUPS; g++)
		for (int e = 0; e < size[g]; e++, i++) {
			int from = i * LD * LD;
			s->list[i] = s->a.p + (size_t)from * bytes;
			s->list[COUNT_ALL + i] = s->b.p + (size_t)from * bytes;
			s->list[2 * COUNT_ALL + i] = s->c.p + (size_t)from * bytes;
			for (int r = 0; r < m[g]; r++)
				for (int q = 0; q < n[g]; q++) {
					double complex sum = 0;
					for (int l = 0; l < k[g]; l++)
						sum += lib_get(s->a.p, type,
							       from +
								       (ta[g] ? l + r * LD
									      : r + l * LD)) *
							lib_get(s->b.p, type,
								from +
									(tb[g] ? q + l * LD
									       : l + q * LD));
					int at = from + r + q * LD;
					lib_set(s->c.expected, type, at,
						alpha[g] * sum +
							beta[g] * lib_get(s->c.p, type, at));
				}
		}
}

static void setting_end(struct setting *s)
{
	YES(lib_same(&s->c, 0));
	lib_free(&s->a);
	lib_free(&s->b);
	lib_free(&s->c);
	OK(cuMemFree(s->lists));
}

static void test_groups(void)
{
	static const double alpha[GROUPS] = {1, -2, 0.5}, beta[GROUPS] = {0, 1, -1};
	static const float falpha[GROUPS] = {1, -2, 0.5}, fbeta[GROUPS] = {0, 1, -1};
	struct setting s;
	lib_begin();
	setting_make(&s, CUDA_R_64F, alpha, beta);
	OK(cublasDgemmGroupedBatched(lib_handle, ta, tb, m, n, k, alpha, (const double **)s.list,
		ld, (const double **)s.list + COUNT_ALL, ld, beta,
		(double **)s.list + 2 * COUNT_ALL, ld, GROUPS, size));
	setting_end(&s);
	setting_make(&s, CUDA_R_32F, alpha, beta);
	OK(cublasSgemmGroupedBatched_64(lib_handle, ta, tb, m64, n64, k64, falpha,
		(const float **)s.list, ld64, (const float **)s.list + COUNT_ALL, ld64, fbeta,
		(float **)s.list + 2 * COUNT_ALL, ld64, GROUPS, size64));
	setting_end(&s);
	setting_make(&s, CUDA_R_16BF, alpha, beta);
	OK(cublasGemmGroupedBatchedEx(lib_handle, ta, tb, m, n, k, falpha, (const void **)s.list,
		CUDA_R_16BF, ld, (const void **)s.list + COUNT_ALL, CUDA_R_16BF, ld, fbeta,
		s.list + 2 * COUNT_ALL, CUDA_R_16BF, ld, GROUPS, size, CUBLAS_COMPUTE_32F));
	setting_end(&s);
	lib_end();
}

static void test_refused(void)
{
	static const float one[GROUPS] = {1, 1, 1};
	static const int bad[GROUPS] = {2, 4, -3};
	float *list[COUNT_ALL] = {NULL};
	const float *const *in = (const float *const *)list;
	lib_begin();
	IS(cublasSgemmGroupedBatched(
		   NULL, ta, tb, m, n, k, one, in, ld, in, ld, one, list, ld, GROUPS, size),
		CUBLAS_STATUS_NOT_INITIALIZED);
	/* The last is wrong: the first has not run. */
	IS(cublasSgemmGroupedBatched(
		   lib_handle, ta, tb, bad, n, k, one, in, ld, in, ld, one, list, ld, GROUPS, size),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSgemmGroupedBatched(
		   lib_handle, ta, tb, m, n, k, NULL, in, ld, in, ld, one, list, ld, GROUPS, size),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSgemmGroupedBatched(
		   lib_handle, ta, tb, m, n, k, one, in, ld, in, ld, one, list, ld, -1, size),
		CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasSgemmGroupedBatched(lib_handle, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
		NULL, NULL, NULL, NULL, NULL, 0, NULL));
	lib_end();
}

UNIT_SUITE(grouped, {"groups", test_groups}, {"refused", test_refused})
