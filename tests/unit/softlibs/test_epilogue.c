/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/blas/epilogue.c: what is done with a product besides, against its definition. */
#include "softlibs.h"

enum { M = 5, N = 4, K = 3, BATCH = 2 };

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * pow(x, 3))));
}

struct setting {
	struct ckt_blas_job job;
	struct ckt_blas_epilogue epilogue;
	struct lib_array a, b, d, bias, aux;
};

static void setting_make(struct setting *s, cudaDataType type)
{
	lib_begin();
	s->a = lib_array(type, M * K * BATCH);
	s->b = lib_array(type, K * N * BATCH);
	s->d = lib_array(type, M * N * BATCH);
	s->bias = lib_array(type, M * BATCH);
	s->aux = lib_array(type, 64 * N * BATCH);
	s->job = (struct ckt_blas_job){
		.m = M,
		.n = N,
		.k = K,
		.batch = BATCH,
		.A = {.p = s->a.p, .type = type, .ld = M, .stride = M * K},
		.B = {.p = s->b.p, .type = type, .ld = K, .stride = K * N},
		.C = {.p = s->d.p, .type = type, .ld = M, .stride = M * N},
		.alpha = {.type = CUDA_R_64F, .value.d = {1}},
		.beta = {.type = CUDA_R_64F},
		.epilogue = &s->epilogue,
	};
	s->epilogue =
		(struct ckt_blas_epilogue){.bias = {.p = s->bias.p, .type = type, .stride = M}};
}

static void setting_end(struct setting *s)
{
	lib_free(&s->a);
	lib_free(&s->b);
	lib_free(&s->d);
	lib_free(&s->bias);
	lib_free(&s->aux);
	lib_end();
}

static double sum(const struct setting *s, int e, int i, int j)
{
	double total = 0;
	for (int l = 0; l < K; l++)
		total += creal(lib_get(s->a.p, s->a.type, e * M * K + i + l * M) *
			lib_get(s->b.p, s->b.type, e * K * N + l + j * K));
	return total;
}

/* Forward: bias, then the function; what is kept is the argument, or whether it was positive. */
static void forward(cudaDataType type, int function, bool bias, bool keep)
{
	struct setting s;
	setting_make(&s, type);
	s.epilogue.function = function;
	s.epilogue.bias_use = bias ? CKT_BLAS_BIAS : CKT_BLAS_NO_BIAS;
	bool mask = function == CKT_BLAS_RELU;
	if (keep)
		s.epilogue.aux = (struct ckt_blas_operand){.p = s.aux.p,
			.type = type,
			.ld = mask ? 128 : M + 1,
			.stride = mask ? 128 * N : 32};
	for (int e = 0; e < BATCH; e++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++) {
				double x = sum(&s, e, i, j) +
					(bias ? creal(lib_get(s.bias.p, type, e * M + i)) : 0);
				double y = function == CKT_BLAS_RELU ? (x > 0 ? x : 0)
					: function == CKT_BLAS_GELU  ? gelu(x)
								     : x;
				lib_set(s.d.expected, type, e * M * N + i + j * M, y);
				if (keep && mask) {
					uint8_t *byte = (uint8_t *)s.aux.expected +
						(e * 128 * N + j * 128) / 8;
					byte[i / 8] = (uint8_t)((byte[i / 8] & ~(1 << i % 8)) |
						(x > 0) << i % 8);
				} else if (keep) {
					lib_set(s.aux.expected, type, e * 32 + i + j * (M + 1), x);
				}
			}
	OK(ckt_blas_matmul(&s.job));
	YES(lib_same(&s.d, function == CKT_BLAS_GELU ? 1e-2 : 0));
	YES(lib_same(&s.aux, 0));
	setting_end(&s);
}

static void test_forward(void)
{
	static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_64F};
	static const int functions[] = {CKT_BLAS_KEEP, CKT_BLAS_RELU, CKT_BLAS_GELU};
	for (size_t t = 0; t < COUNT(types); t++)
		for (size_t f = 0; f < COUNT(functions); f++)
			for (int options = 0; options < 4; options++)
				if (f || !(options & 2))
					forward(types[t], functions[f], options & 1, options & 2);
}

/* GELU to single precision, and its slope by differences. */
static void test_gelu(void)
{
	struct setting s;
	setting_make(&s, CUDA_R_64F);
	s.epilogue.function = CKT_BLAS_GELU;
	for (int e = 0; e < BATCH; e++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++)
				lib_set(s.d.expected, CUDA_R_64F, e * M * N + i + j * M,
					gelu(sum(&s, e, i, j)));
	OK(ckt_blas_matmul(&s.job));
	YES(lib_same(&s.d, 1e-12));
	s.epilogue.function = CKT_BLAS_DGELU;
	s.epilogue.aux = (struct ckt_blas_operand){
		.p = s.aux.p, .type = CUDA_R_64F, .ld = M, .stride = M * N};
	for (int e = 0; e < BATCH; e++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++) {
				double x = creal(
					       lib_get(s.aux.p, CUDA_R_64F, e * M * N + i + j * M)),
				       h = 1e-5;
				lib_set(s.d.expected, CUDA_R_64F, e * M * N + i + j * M,
					sum(&s, e, i, j) * (gelu(x + h) - gelu(x - h)) / (2 * h));
			}
	OK(ckt_blas_matmul(&s.job));
	YES(lib_same(&s.d, 1e-7));
	setting_end(&s);
}

/* Backward of ReLU by its bits, with the gradient of the bias: sums of D's rows. */
static void test_drelu(void)
{
	struct setting s;
	setting_make(&s, CUDA_R_32F);
	s.epilogue.function = CKT_BLAS_DRELU;
	s.epilogue.bias_use = CKT_BLAS_GRADIENT_D;
	s.epilogue.aux = (struct ckt_blas_operand){
		.p = s.aux.p, .type = CUDA_R_32F, .ld = 128, .stride = 128 * N};
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < M; i++) {
			double total = 0;
			for (int j = 0; j < N; j++) {
				bool bit = ((uint8_t *)s.aux.p)[(e * 128 * N + j * 128 + i) / 8] >>
						i % 8 &
					1;
				double y = bit ? sum(&s, e, i, j) : 0;
				lib_set(s.d.expected, CUDA_R_32F, e * M * N + i + j * M, y);
				total += y;
			}
			lib_set(s.bias.expected, CUDA_R_32F, e * M + i, total);
		}
	OK(ckt_blas_matmul(&s.job));
	YES(lib_same(&s.d, 0));
	YES(lib_same(&s.bias, 0));
	setting_end(&s);
}

/* Sums over k of A's rows or B's columns, as stored and transposed, by columns and by rows. */
static void test_gradients(void)
{
	for (int o = 0; o < 8; o++) {
		bool of_b = o & 1, transposed = o & 2, row = o & 4;
		struct setting s;
		setting_make(&s, CUDA_R_32F);
		struct ckt_blas_operand *from = of_b ? &s.job.B : &s.job.A;
		const struct lib_array *array = of_b ? &s.b : &s.a;
		int rows = of_b ? K : M, columns = of_b ? N : K, count = of_b ? N : M;
		/*
		 * The same numbers lie otherwise: the product is another, the sums follow the
		 * layout.
		 */
		from->row = row;
		from->ld = row != transposed ? columns : rows;
		*(of_b ? &s.job.transb : &s.job.transa) = transposed ? CKT_BLAS_T : CKT_BLAS_N;
		s.epilogue.bias_use = of_b ? CKT_BLAS_GRADIENT_B : CKT_BLAS_GRADIENT_A;
		for (int e = 0; e < BATCH; e++)
			for (int c = 0; c < count; c++) {
				double total = 0;
				for (int l = 0; l < K; l++) {
					int i = of_b ? l : c, j = of_b ? c : l;
					int64_t at = row != transposed ? i * from->ld + j
								       : i + j * from->ld;
					total += creal(lib_get(
						array->p, CUDA_R_32F, e * from->stride + at));
				}
				lib_set(s.bias.expected, CUDA_R_32F, e * M + c, total);
			}
		OK(ckt_blas_matmul(&s.job));
		YES(lib_same(&s.bias, 0));
		setting_end(&s);
	}
}

UNIT_SUITE(epilogue, {"bias, ReLU and GELU, and what is kept", test_forward},
	{"GELU and its slope", test_gelu}, {"backward of ReLU", test_drelu},
	{"gradients of a bias", test_gradients})
