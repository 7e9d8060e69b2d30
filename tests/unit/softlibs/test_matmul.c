/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/blas/matmul.c: products of every type, shape and layout, one by one, batched, and
 * their factors.
 */
#include "softlibs.h"

struct shape {
	int m, n, k;
};

static const struct shape shapes[] = {
	{1, 1, 1}, {3, 2, 5}, {5, 4, 3}, {4, 1, 6}, {1, 7, 2}, {3, 3, 0}, {0, 3, 2}};
static const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};

static double complex product(const char *a, cudaDataType ta, int lda, int opa, const char *b,
	cudaDataType tb, int ldb, int opb, int i, int j, int k)
{
	double complex sum = 0;
	for (int l = 0; l < k; l++) {
		double complex x = lib_get(a, ta, opa == CUBLAS_OP_N ? i + l * lda : l + i * lda);
		double complex y = lib_get(b, tb, opb == CUBLAS_OP_N ? l + j * ldb : j + l * ldb);
		sum += lib_op(x, opa) * lib_op(y, opb);
	}
	return sum;
}

struct factors {
	double complex alpha, beta;
};

/* C as it should be; where beta is 0 what lies there is made NaN first. */
static void expect(struct lib_array *c, size_t offset, const struct lib_array *a, size_t a0,
	int lda, int opa, const struct lib_array *b, size_t b0, int ldb, int opb, struct shape s,
	int ldc, struct factors f)
{
	size_t as = ckt_blas_type_size(a->type), bs = ckt_blas_type_size(b->type);
	for (int j = 0; j < s.n; j++)
		for (int i = 0; i < s.m; i++) {
			int64_t at = (int64_t)offset + i + j * ldc;
			double complex old =
				f.beta == 0 ? 0 : f.beta * lib_get(c->expected, c->type, at);
			double complex sum = product(a->p + a0 * as, a->type, lda, opa,
				b->p + b0 * bs, b->type, ldb, opb, i, j, s.k);
			if (f.beta == 0)
				lib_set_nan(c->p, c->type, at);
			lib_set(c->expected, c->type, at, f.alpha * sum + old);
		}
}

static const struct factors factors[] = {
	{1, 0}, {1, 1}, {-1.5, 0.5}, {0, 2}, {0, 0}, {1 + 0.5 * I, -I}};

static void one_shape(cudaDataType type, struct shape s, cublasOperation_t opa,
	cublasOperation_t opb, struct factors f)
{
	int lda = (opa == CUBLAS_OP_N ? s.m : s.k) + 2, ldb = (opb == CUBLAS_OP_N ? s.k : s.n) + 1,
	    ldc = s.m + 3;
	struct lib_array a = lib_array(type, (size_t)(lda * (opa == CUBLAS_OP_N ? s.k : s.m))),
			 b = lib_array(type, (size_t)(ldb * (opb == CUBLAS_OP_N ? s.n : s.k))),
			 c = lib_array(type, (size_t)(ldc * s.n));
	expect(&c, 0, &a, 0, lda, opa, &b, 0, ldb, opb, s, ldc, f);
	const void *alpha = lib_scalar(type, f.alpha), *beta = lib_scalar(type, f.beta);
	OK(LIB_CALL(type, cublasSgemm_v2, cublasDgemm_v2, cublasCgemm_v2, cublasZgemm_v2,
		lib_handle, opa, opb, s.m, s.n, s.k, alpha, a.p, lda, b.p, ldb, beta, c.p, ldc));
	YES(lib_same(&c, 0));
	lib_free(&a);
	lib_free(&b);
	lib_free(&c);
}

static void all_shapes(void)
{
	for (size_t t = 0; t < COUNT(lib_types4); t++)
		for (size_t s = 0; s < COUNT(shapes); s++)
			for (int o = 0; o < 9; o++)
				for (size_t f = 0; f < COUNT(factors); f++) {
					/* A real matrix has real factors. */
					struct factors real = factors[f];
					if (!ckt_blas_type_complex(lib_types4[t]))
						real = (struct factors){
							creal(real.alpha), creal(real.beta)};
					one_shape(lib_types4[t], shapes[s], ops[o % 3], ops[o / 3],
						real);
				}
}

static void test_gemm(void)
{
	lib_begin();
	all_shapes();
	OK(cublasSetPointerMode_v2(lib_handle, CUBLAS_POINTER_MODE_DEVICE));
	all_shapes();
	lib_end();
}

static const struct {
	cudaDataType ab, c;
	cublasComputeType_t compute;
	cudaDataType scale;
} mixed[] = {
	{CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
	{CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, CUDA_R_16F},
	{CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F},
	{CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F},
	{CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F},
	{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F},
	{CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F},
	{CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F},
	{CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F},
	{CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I},
	{CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
};

/* One by one, with strides, and by lists of addresses: of each type, all transposes. */
static void one_mixed(size_t t, struct shape s, cublasOperation_t opa, cublasOperation_t opb,
	struct factors f, bool wide)
{
	enum { BATCH = 3 };
	int lda = (opa == CUBLAS_OP_N ? s.m : s.k) + 1, ldb = (opb == CUBLAS_OP_N ? s.k : s.n) + 2,
	    ldc = s.m + 1;
	int ca = opa == CUBLAS_OP_N ? s.k : s.m, cb = opb == CUBLAS_OP_N ? s.n : s.k;
	/* B is one for all. */
	long long stride_a = lda * ca + 1, stride_b = 0, stride_c = ldc * s.n + 2;
	struct lib_array a = lib_array(mixed[t].ab, (size_t)(BATCH * stride_a)),
			 b = lib_array(mixed[t].ab, (size_t)(ldb * cb)),
			 c = lib_array(mixed[t].c, (size_t)(BATCH * stride_c)),
			 d = lib_array(mixed[t].c, (size_t)(BATCH * stride_c));
	const void *alpha = lib_scalar(mixed[t].scale, f.alpha),
		   *beta = lib_scalar(mixed[t].scale, f.beta);
	for (int i = 0; i < BATCH; i++) {
		expect(&c, (size_t)(i * stride_c), &a, (size_t)(i * stride_a), lda, opa, &b, 0, ldb,
			opb, s, ldc, f);
		expect(&d, (size_t)(i * stride_c), &a, (size_t)(i * stride_a), lda, opa, &b, 0, ldb,
			opb, s, ldc, f);
	}
	if (wide)
		OK(cublasGemmStridedBatchedEx_64(lib_handle, opa, opb, s.m, s.n, s.k, alpha, a.p,
			mixed[t].ab, lda, stride_a, b.p, mixed[t].ab, ldb, stride_b, beta, c.p,
			mixed[t].c, ldc, stride_c, BATCH, mixed[t].compute, CUBLAS_GEMM_DEFAULT));
	else
		OK(cublasGemmStridedBatchedEx(lib_handle, opa, opb, s.m, s.n, s.k, alpha, a.p,
			mixed[t].ab, lda, stride_a, b.p, mixed[t].ab, ldb, stride_b, beta, c.p,
			mixed[t].c, ldc, stride_c, BATCH, mixed[t].compute,
			CUBLAS_GEMM_DEFAULT_TENSOR_OP));
	YES(lib_same(&c, 0));
	CUdeviceptr lists;
	OK(cuMemAlloc(&lists, 3 * BATCH * sizeof(void *)));
	void **list = (void **)(uintptr_t)lists;
	for (int i = 0; i < BATCH; i++) {
		list[i] = a.p + (size_t)(i * stride_a) * ckt_blas_type_size(a.type);
		list[BATCH + i] = b.p;
		list[2 * BATCH + i] = d.p + (size_t)(i * stride_c) * ckt_blas_type_size(d.type);
	}
	OK(cublasGemmBatchedEx(lib_handle, opa, opb, s.m, s.n, s.k, alpha, (const void **)list,
		mixed[t].ab, lda, (const void **)(list + BATCH), mixed[t].ab, ldb, beta,
		list + 2 * BATCH, mixed[t].c, ldc, BATCH, mixed[t].compute, CUBLAS_GEMM_DEFAULT));
	YES(lib_same(&d, 0));
	OK(cuMemFree(lists));
	lib_free(&a);
	lib_free(&b);
	lib_free(&c);
	lib_free(&d);
}

static void test_mixed(void)
{
	static const struct factors whole[] = {{1, 0}, {-1, 2}};
	lib_begin();
	for (int mode = 0; mode < 2; mode++) {
		OK(cublasSetPointerMode_v2(lib_handle, (cublasPointerMode_t)mode));
		for (size_t t = 0; t < COUNT(mixed); t++)
			for (size_t s = 0; s < COUNT(shapes) - 1; s++)
				for (int o = 0; o < 9; o++)
					one_mixed(t, shapes[s], ops[o % 3], ops[o / 3],
						whole[(s + o) % 2], o % 2);
	}
	lib_end();
}

/*
 * Halves are rounded to the nearest even once, at the end: sums that need more bits than they have.
 */
static void test_rounding(void)
{
	float one = 1, zero = 0;
	lib_begin();
	for (int t = 0; t < 2; t++) {
		cudaDataType type = t ? CUDA_R_16BF : CUDA_R_16F;
		int k = 40;
		struct lib_array a = lib_array(type, (size_t)k),
				 b = lib_array(type, (size_t)(k * 9)), c = lib_array(type, 9);
		for (int j = 0; j < 9; j++)
			lib_set(c.expected, type, j,
				product(a.p, type, 1, CUBLAS_OP_N, b.p, type, k, CUBLAS_OP_N, 0, j,
					k));
		OK(cublasGemmEx(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 9, k, &one, a.p, type, 1,
			b.p, type, k, &zero, c.p, type, 1, CUBLAS_COMPUTE_32F,
			CUBLAS_GEMM_DEFAULT));
		YES(lib_same(&c, 0));
		lib_free(&a);
		lib_free(&b);
		lib_free(&c);
	}
	lib_end();
}

/* Larger than any block that OpenBLAS works with, twice: the same bits. */
static void test_large(void)
{
	enum { M = 301, N = 257, K = 409 };
	float one = 1, zero = 0;
	lib_begin();
	struct lib_array a = lib_array(CUDA_R_32F, M * K), b = lib_array(CUDA_R_32F, K * N),
			 c = lib_array(CUDA_R_32F, M * N);
	for (int i = 0; i < M * K; i++)
		((float *)a.p)[i] *= 0.1f;
	for (int twice = 0; twice < 2; twice++) {
		OK(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, (float *)a.p,
			M, (float *)b.p, K, &zero, (float *)c.p, M));
		OK(cuStreamSynchronize(lib_stream));
		if (!twice)
			memcpy(c.expected, c.p, M * N * sizeof(float));
	}
	YES(lib_same(&c, 0));
	for (int i = 0; i < 50; i++) {
		int row = i * 7 % M, column = i * 11 % N;
		double complex sum = product(
			a.p, a.type, M, CUBLAS_OP_N, b.p, b.type, K, CUBLAS_OP_N, row, column, K);
		YES(fabs(creal(sum) - ((float *)c.p)[row + column * M]) < 1e-2);
	}
	lib_free(&a);
	lib_free(&b);
	lib_free(&c);
	lib_end();
}

/* Rows or columns, D beside C, and conj without transpose, as cuBLASLt asks for: the job itself. */
static void one_layout(cudaDataType type, int layout, int opa, int opb)
{
	struct shape s = {3, 4, 5};
	struct ckt_blas_job job = {.m = s.m, .n = s.n, .k = s.k, .transa = opa, .transb = opb};
	bool ta = opa == CKT_BLAS_T || opa == CKT_BLAS_C,
	     tb = opb == CKT_BLAS_T || opb == CKT_BLAS_C;
	struct lib_array arrays[4] = {
		lib_array(type, 64), lib_array(type, 64), lib_array(type, 64), lib_array(type, 64)};
	struct ckt_blas_operand *operands[] = {&job.A, &job.B, &job.C, &job.D};
	int rows[] = {ta ? s.k : s.m, tb ? s.n : s.k, s.m, s.m},
	    columns[] = {ta ? s.m : s.k, tb ? s.k : s.n, s.n, s.n};
	for (int i = 0; i < 4; i++) {
		bool row = layout >> i & 1;
		*operands[i] = (struct ckt_blas_operand){.p = arrays[i].p,
			.type = type,
			.ld = (row ? columns[i] : rows[i]) + 1,
			.row = row};
	}
	job.alpha = (struct ckt_blas_scalar){.type = CUDA_R_64F, .value.d = {2}};
	job.beta = (struct ckt_blas_scalar){.type = CUDA_R_64F, .value.d = {-0.5}};
#define AT(operand, i, j) ((operand).row ? (i) * (operand).ld + (j) : (i) + (j) * (operand).ld)
	for (int i = 0; i < s.m; i++)
		for (int j = 0; j < s.n; j++) {
			double complex sum = 0;
			for (int l = 0; l < s.k; l++) {
				double complex x = lib_get(
					arrays[0].p, type, ta ? AT(job.A, l, i) : AT(job.A, i, l));
				double complex y = lib_get(
					arrays[1].p, type, tb ? AT(job.B, j, l) : AT(job.B, l, j));
				sum += (opa >= CKT_BLAS_C ? conj(x) : x) *
					(opb >= CKT_BLAS_C ? conj(y) : y);
			}
			lib_set(arrays[3].expected, type, AT(job.D, i, j),
				2 * sum - 0.5 * lib_get(arrays[2].p, type, AT(job.C, i, j)));
		}
	OK(ckt_blas_matmul(&job));
	YES(lib_same(&arrays[3], 0));
	YES(lib_same(&arrays[2], 0));
	for (int i = 0; i < 4; i++)
		lib_free(&arrays[i]);
}

static void test_layouts(void)
{
	lib_begin();
	for (size_t t = 0; t < COUNT(lib_types4); t++)
		for (int layout = 0; layout < 16; layout++)
			for (int o = 0; o < 16; o++)
				one_layout(lib_types4[t], layout, o % 4, o / 4);
	lib_end();
}

/*
 * An address that is not there: found when it runs, told by the next call; what is not read need
 * not be there.
 */
static void test_missing(void)
{
	float one = 1, zero = 0;
	lib_begin();
	struct lib_array a = lib_array(CUDA_R_32F, 9), c = lib_array(CUDA_R_32F, 9);
	for (int i = 0; i < 9; i++)
		lib_set(c.expected, c.type, i, 0);
	OK(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_T, 3, 3, 3, &zero, NULL, 3, NULL, 3,
		&zero, (float *)c.p, 3));
	YES(lib_same(&c, 0));
	OK(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 0, &one, NULL, 3, NULL, 1,
		&one, (float *)c.p, 3));
	YES(lib_same(&c, 0));
	OK(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, (float *)a.p, 3,
		NULL, 3, &one, (float *)c.p, 3));
	YES(lib_same(&c, 0));
	IS(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, (float *)a.p, 3,
		   (float *)a.p, 3, &one, (float *)c.p, 3),
		CUBLAS_STATUS_EXECUTION_FAILED);
	for (int i = 0; i < 9; i++)
		lib_set_nan(a.p, a.type, i);
	OK(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &zero, (float *)a.p, 3,
		(float *)a.p, 3, &one, (float *)c.p, 3));
	YES(lib_same(&c, 0));
	lib_free(&a);
	lib_free(&c);
	lib_end();
}

UNIT_SUITE(matmul, {"missing", test_missing}, {"every shape, transpose and factor", test_gemm},
	{"mixed types, strides and lists", test_mixed}, {"halves are rounded once", test_rounding},
	{"large", test_large}, {"layouts", test_layouts})
