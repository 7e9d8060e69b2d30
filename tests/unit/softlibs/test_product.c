/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cublasLt/product.c: cublasLtMatmul with every layout, type and epilogue, and what it
 * refuses.
 */
#include "lt.h"
#include "rpc/cublaslt.h"

enum { M = 5, N = 4, K = 3, BATCH = 2 };

struct types {
	cudaDataType ab, d, scale;
	cublasComputeType_t compute;
};

static const struct types all_types[] = {
	{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
	{CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F},
	{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
	{CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F},
	{CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F},
	{CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
	{CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32I},
};

/*
 * Four matrices with their layouts: which lie by rows (a bit each), and the product's descriptor.
 */
struct setting {
	struct types types;
	int opa, opb;
	bool row[4];
	int64_t ld[4], stride[4];
	struct lib_array arrays[4];
	cublasLtMatrixLayoutOpaque_t layouts[4];
	cublasLtMatmulDescOpaque_t product;
};

static void setting_make(struct setting *s, struct types types, int opa, int opb, int layout)
{
	int rows[] = {opa ? K : M, opb ? N : K, M, M}, columns[] = {opa ? M : K, opb ? K : N, N, N};
	*s = (struct setting){.types = types, .opa = opa, .opb = opb};
	for (int i = 0; i < 4; i++) {
		s->row[i] = layout >> i & 1;
		s->ld[i] = (s->row[i] ? columns[i] : rows[i]) + 1;
		s->stride[i] = 40;
		cudaDataType type = i < 2 ? types.ab : types.d;
		s->arrays[i] = lib_array(type, 40 * BATCH);
		s->layouts[i] = lt_layout(type, (uint64_t)rows[i], (uint64_t)columns[i], s->ld[i],
			s->row[i], BATCH, s->stride[i]);
	}
	OK(cublasLtMatmulDescInit(&s->product, types.compute, types.scale));
	lt_set32(&s->product, CUBLASLT_MATMUL_DESC_TRANSA, (uint32_t)opa);
	lt_set32(&s->product, CUBLASLT_MATMUL_DESC_TRANSB, (uint32_t)opb);
}

static void setting_end(struct setting *s)
{
	for (int i = 0; i < 4; i++)
		lib_free(&s->arrays[i]);
}

static int64_t at(const struct setting *s, int which, int e, int i, int j)
{
	return e * s->stride[which] + (s->row[which] ? i * s->ld[which] + j : i + j * s->ld[which]);
}

static double complex sum(const struct setting *s, int e, int i, int j)
{
	double complex total = 0;
	for (int l = 0; l < K; l++) {
		double complex a = lib_get(s->arrays[0].p, s->types.ab,
			s->opa ? at(s, 0, e, l, i) : at(s, 0, e, i, l));
		double complex b = lib_get(s->arrays[1].p, s->types.ab,
			s->opb ? at(s, 1, e, j, l) : at(s, 1, e, l, j));
		total += lib_op(a, s->opa) * lib_op(b, s->opb);
	}
	return total;
}

static cublasStatus_t call(struct setting *s, const void *alpha, const void *beta)
{
	return cublasLtMatmul((cublasLtHandle_t)lib_handle, &s->product, alpha, s->arrays[0].p,
		&s->layouts[0], s->arrays[1].p, &s->layouts[1], beta, s->arrays[2].p,
		&s->layouts[2], s->arrays[3].p, &s->layouts[3], NULL, NULL, 0,
		(cudaStream_t)lib_stream);
}

/* D = alpha A B + beta C, of batches, beside C. */
static void test_layouts(void)
{
	lib_begin();
	for (size_t t = 0; t < COUNT(all_types); t++)
		for (int o = 0; o < 9 * 16; o++) {
			struct setting s;
			setting_make(&s, all_types[t], o % 3, o / 3 % 3, o / 9);
			double complex alpha = 2, beta = o % 2 ? -1 : 0;
			for (int e = 0; e < BATCH; e++)
				for (int i = 0; i < M; i++)
					for (int j = 0; j < N; j++) {
						double complex old = lib_get(s.arrays[2].p,
							s.types.d, at(&s, 2, e, i, j));
						lib_set(s.arrays[3].expected, s.types.d,
							at(&s, 3, e, i, j),
							alpha * sum(&s, e, i, j) + beta * old);
					}
			OK(call(&s, lib_scalar(s.types.scale, alpha),
				lib_scalar(s.types.scale, beta)));
			YES(lib_same(&s.arrays[3], 0));
			YES(lib_same(&s.arrays[2], 0));
			setting_end(&s);
		}
	lib_end();
}

/* Factors on the device are read when it runs; in place, C and D are one. */
static void test_device_factors(void)
{
	struct setting s;
	lib_begin();
	setting_make(&s, all_types[0], 0, 1, 0);
	OK(cublasSetPointerMode_v2(lib_handle, CUBLAS_POINTER_MODE_DEVICE));
	lt_set32(&s.product, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < M; i++)
			for (int j = 0; j < N; j++)
				lib_set(s.arrays[3].expected, CUDA_R_32F, at(&s, 3, e, i, j),
					-1.5 * sum(&s, e, i, j) +
						2 *
							lib_get(s.arrays[3].p, CUDA_R_32F,
								at(&s, 3, e, i, j)));
	OK(cublasLtMatmul((cublasLtHandle_t)lib_handle, &s.product, lib_scalar(CUDA_R_32F, -1.5),
		s.arrays[0].p, &s.layouts[0], s.arrays[1].p, &s.layouts[1],
		lib_scalar(CUDA_R_32F, 2), s.arrays[3].p, &s.layouts[3], s.arrays[3].p,
		&s.layouts[3], NULL, NULL, 0, (cudaStream_t)lib_stream));
	YES(lib_same(&s.arrays[3], 0));
	setting_end(&s);
	/* One for each of the batch. */
	static const float alphas[] = {2, 0, -3}, betas[] = {1, -1};
	setting_make(&s, all_types[0], 0, 0, 0);
	lt_set32(&s.product, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
	lt_set64(&s.product, CKT_LT_MATMUL_ALPHA_BATCH_STRIDE, 2);
	lt_set64(&s.product, CKT_LT_MATMUL_BETA_BATCH_STRIDE, 1);
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < M; i++)
			for (int j = 0; j < N; j++)
				lib_set(s.arrays[3].expected, CUDA_R_32F, at(&s, 3, e, i, j),
					alphas[2 * e] * sum(&s, e, i, j) +
						betas[e] *
							lib_get(s.arrays[2].p, CUDA_R_32F,
								at(&s, 2, e, i, j)));
	OK(call(&s, alphas, betas));
	YES(lib_same(&s.arrays[3], 0));
	setting_end(&s);
	lib_end();
}

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
	return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
}

static const int epilogues[] = {
	CUBLASLT_EPILOGUE_BIAS,
	CUBLASLT_EPILOGUE_RELU,
	CUBLASLT_EPILOGUE_RELU_BIAS,
	CUBLASLT_EPILOGUE_RELU_AUX,
	CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
	CUBLASLT_EPILOGUE_GELU,
	CUBLASLT_EPILOGUE_GELU_BIAS,
	CUBLASLT_EPILOGUE_GELU_AUX,
	CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
	CUBLASLT_EPILOGUE_DRELU,
	CUBLASLT_EPILOGUE_DRELU_BGRAD,
	CUBLASLT_EPILOGUE_DGELU,
	CUBLASLT_EPILOGUE_DGELU_BGRAD,
	CUBLASLT_EPILOGUE_BGRADA,
	CUBLASLT_EPILOGUE_BGRADB,
};

enum { AUX_LD = 128, AUX_STRIDE = AUX_LD * N, BIAS_STRIDE = 8 };

/* What one epilogue makes of D, the bias and what is kept, all in `expected`. */
static void expect(struct setting *s, int epilogue, struct lib_array *bias, struct lib_array *aux)
{
	bool mask = epilogue & (CUBLASLT_EPILOGUE_RELU | 8), kept = epilogue & 128;
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < M; i++) {
			double total = 0, of_a = 0;
			for (int l = 0; l < K; l++)
				of_a += creal(lib_get(s->arrays[0].p, s->types.ab,
					s->opa ? at(s, 0, e, l, i) : at(s, 0, e, i, l)));
			for (int j = 0; j < N; j++) {
				double x = creal(sum(s, e, i, j));
				int64_t place = e * AUX_STRIDE + j * AUX_LD + i;
				uint8_t *byte = (uint8_t *)aux->expected +
					(e * AUX_STRIDE + j * AUX_LD) / 8 + i / 8;
				if (epilogue & CUBLASLT_EPILOGUE_BIAS)
					x += creal(
						lib_get(bias->p, bias->type, e * BIAS_STRIDE + i));
				if (epilogue & CUBLASLT_EPILOGUE_RELU && kept)
					*byte = (uint8_t)((*byte & ~(1 << i % 8)) |
						(x > 0) << i % 8);
				else if (epilogue & CUBLASLT_EPILOGUE_GELU && kept)
					lib_set(aux->expected, aux->type, place, x);
				if (epilogue & CUBLASLT_EPILOGUE_RELU)
					x = x > 0 ? x : 0;
				else if (epilogue & CUBLASLT_EPILOGUE_GELU)
					x = gelu(x);
				else if (kept && mask)
					x = *byte >> i % 8 & 1 ? x : 0;
				else if (kept)
					x *= gelu_slope(creal(lib_get(aux->p, aux->type, place)));
				total += x;
				lib_set(s->arrays[3].expected, s->types.d, at(s, 3, e, i, j), x);
			}
			if (epilogue & 16)
				lib_set(bias->expected, bias->type, e * BIAS_STRIDE + i, total);
			if (epilogue == CUBLASLT_EPILOGUE_BGRADA)
				lib_set(bias->expected, bias->type, e * BIAS_STRIDE + i, of_a);
		}
	for (int e = 0; e < BATCH && epilogue == CUBLASLT_EPILOGUE_BGRADB; e++)
		for (int j = 0; j < N; j++) {
			double of_b = 0;
			for (int l = 0; l < K; l++)
				of_b += creal(lib_get(s->arrays[1].p, s->types.ab,
					s->opb ? at(s, 1, e, j, l) : at(s, 1, e, l, j)));
			lib_set(bias->expected, bias->type, e * BIAS_STRIDE + j, of_b);
		}
}

static void one_epilogue(struct types types, int epilogue, int opa, int opb, int layout)
{
	struct setting s;
	setting_make(&s, types, opa, opb, layout);
	struct lib_array bias = lib_array(types.d, BIAS_STRIDE * BATCH),
			 aux = lib_array(types.d, AUX_STRIDE * BATCH);
	lt_set32(&s.product, CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)epilogue);
	lt_set64(&s.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (uint64_t)(uintptr_t)bias.p);
	lt_set64(&s.product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, BIAS_STRIDE);
	lt_set64(&s.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (uint64_t)(uintptr_t)aux.p);
	lt_set64(&s.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, AUX_LD);
	lt_set64(&s.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, AUX_STRIDE);
	expect(&s, epilogue, &bias, &aux);
	OK(call(&s, lib_scalar(types.scale, 1), lib_scalar(types.scale, 0)));
	/* Numbers that are not exact: by a step of the type. */
	bool smooth = epilogue & (CUBLASLT_EPILOGUE_GELU | 64);
	double step = types.d == CUDA_R_16BF ? 1e-2 : types.d == CUDA_R_16F ? 2e-3 : 1e-5;
	YES(lib_same(&s.arrays[3], smooth ? step : 0));
	YES(lib_same(&bias, smooth ? step * 20 : 0));
	YES(lib_same(&aux, 0));
	lib_free(&bias);
	lib_free(&aux);
	setting_end(&s);
}

static void test_epilogues(void)
{
	static const int types[] = {0, 1, 2, 5};
	lib_begin();
	for (size_t t = 0; t < COUNT(types); t++)
		for (size_t e = 0; e < COUNT(epilogues); e++)
			for (int o = 0; o < 8; o++)
				one_epilogue(all_types[types[t]], epilogues[e], o & 1, o >> 1 & 1,
					o & 4 ? 15 : 0);
	lib_end();
}

/* What is captured runs with the graph, twice, and its descriptors may be gone. */
static void test_capture(void)
{
	struct setting s;
	CUgraph graph;
	CUgraphExec exec;
	float one = 1;
	lib_begin();
	setting_make(&s, all_types[0], 0, 0, 0);
	for (int e = 0; e < BATCH; e++)
		for (int i = 0; i < M; i++)
			for (int j = 0; j < N; j++) {
				int64_t to = at(&s, 3, e, i, j);
				lib_set(s.arrays[3].expected, CUDA_R_32F, to,
					lib_get(s.arrays[3].p, CUDA_R_32F, to) +
						2 * sum(&s, e, i, j));
			}
	OK(cuStreamBeginCapture(lib_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cublasLtMatmul((cublasLtHandle_t)lib_handle, &s.product, &one, s.arrays[0].p,
		&s.layouts[0], s.arrays[1].p, &s.layouts[1], &one, s.arrays[3].p, &s.layouts[3],
		s.arrays[3].p, &s.layouts[3], NULL, NULL, 0, (cudaStream_t)lib_stream));
	OK(cuStreamEndCapture(lib_stream, &graph));
	memset(&s.product, 0x55, sizeof s.product);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, lib_stream));
	OK(cuGraphLaunch(exec, lib_stream));
	YES(lib_same(&s.arrays[3], 0));
	OK(cuGraphExecDestroy(exec));
	setting_end(&s);
	lib_end();
}

static void refused(int attribute, uint64_t value, bool wide, cublasStatus_t status)
{
	struct setting s;
	float one = 1;
	setting_make(&s, all_types[0], 0, 0, 0);
	if (wide)
		lt_set64(&s.product, attribute, value);
	else
		lt_set32(&s.product, attribute, (uint32_t)value);
	IS(call(&s, &one, &one), status);
	YES(lib_same(&s.arrays[3], 0));
	setting_end(&s);
}

static void test_refused(void)
{
	struct setting s;
	float one = 1, zero = 0;
	lib_begin();
	refused(CUBLASLT_MATMUL_DESC_TRANSA, 3, false, CUBLAS_STATUS_INVALID_VALUE);
	refused(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T, false, CUBLAS_STATUS_INVALID_VALUE);
	refused(CUBLASLT_MATMUL_DESC_TRANSC, CUBLAS_OP_T, false, CUBLAS_STATUS_NOT_SUPPORTED);
	refused(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_64F, false,
		CUBLAS_STATUS_NOT_SUPPORTED);
	refused(CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_64F, false, CUBLAS_STATUS_NOT_SUPPORTED);
	refused(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE_VECTOR, false,
		CUBLAS_STATUS_NOT_SUPPORTED);
	refused(CUBLASLT_MATMUL_DESC_FILL_MODE, CUBLAS_FILL_MODE_LOWER, false,
		CUBLAS_STATUS_NOT_SUPPORTED);
	refused(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 4096, true, CUBLAS_STATUS_NOT_SUPPORTED);
	refused(CUBLASLT_MATMUL_DESC_EPILOGUE, 3, false, CUBLAS_STATUS_INVALID_VALUE);
	refused(CUBLASLT_MATMUL_DESC_EPILOGUE, 1 << 12, false, CUBLAS_STATUS_INVALID_VALUE);
	refused(CUBLASLT_MATMUL_DESC_EPILOGUE, 8, false, CUBLAS_STATUS_INVALID_VALUE);
	refused(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS, false,
		CUBLAS_STATUS_INVALID_VALUE);
	refused(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX, false,
		CUBLAS_STATUS_INVALID_VALUE);
	setting_make(&s, all_types[0], 0, 0, 0);
	IS(call(&s, NULL, &one), CUBLAS_STATUS_INVALID_VALUE);
	IS(call(&s, &one, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmul(NULL, &s.product, &one, s.arrays[0].p, &s.layouts[0], s.arrays[1].p,
		   &s.layouts[1], &one, s.arrays[2].p, &s.layouts[2], s.arrays[3].p, &s.layouts[3],
		   NULL, NULL, 0, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasLtMatmul((cublasLtHandle_t)lib_handle, NULL, &one, s.arrays[0].p, &s.layouts[0],
		   s.arrays[1].p, &s.layouts[1], &one, s.arrays[2].p, &s.layouts[2], s.arrays[3].p,
		   &s.layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmul((cublasLtHandle_t)lib_handle, &s.product, &one, s.arrays[0].p,
		   &s.layouts[0], s.arrays[1].p, NULL, &one, s.arrays[2].p, &s.layouts[2],
		   s.arrays[3].p, &s.layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmul((cublasLtHandle_t)lib_handle, &s.product, &one, s.arrays[0].p,
		   &s.layouts[0], s.arrays[1].p, &s.layouts[1], &one, NULL, &s.layouts[2],
		   s.arrays[3].p, &s.layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	/* Nothing of C is read where beta is 0, so there need be none. */
	OK(cublasLtMatmul((cublasLtHandle_t)lib_handle, &s.product, &one, s.arrays[0].p,
		&s.layouts[0], s.arrays[1].p, &s.layouts[1], &zero, NULL, &s.layouts[2],
		s.arrays[3].p, &s.layouts[3], NULL, NULL, 0, (cudaStream_t)lib_stream));
	OK(cuStreamSynchronize(lib_stream));
	s.layouts[1] = lt_layout(CUDA_R_32F, K, N, K, false, BATCH + 1, 40);
	IS(call(&s, &one, &one), CUBLAS_STATUS_INVALID_VALUE);
	s.layouts[1] = lt_layout(CUDA_R_32F, K, N, K - 1, false, BATCH, 40);
	IS(call(&s, &one, &one), CUBLAS_STATUS_INVALID_VALUE);
	s.layouts[1] = lt_layout(CUDA_R_16F, K, N, K, false, BATCH, 40);
	IS(call(&s, &one, &one), CUBLAS_STATUS_NOT_SUPPORTED);
	s.layouts[1] = lt_layout(CUDA_R_8F_E4M3, K, N, K, false, BATCH, 40);
	IS(call(&s, &one, &one), CUBLAS_STATUS_NOT_SUPPORTED);
	/* Sizes that lie on the device. */
	s.layouts[1] = lt_layout(CUDA_R_32F, K, N, K, false, BATCH, 40);
	OK(cublasLtMatrixLayoutSetAttribute(&s.layouts[1], CUBLASLT_MATRIX_LAYOUT_BATCH_MODE,
		&(int32_t){CKT_LT_BATCH_GROUPED}, 4));
	IS(call(&s, &one, &one), CUBLAS_STATUS_NOT_SUPPORTED);
	setting_end(&s);
	lib_end();
}

UNIT_SUITE(product, {"layouts, types, batches", test_layouts},
	{"factors on the device, in place", test_device_factors}, {"epilogues", test_epilogues},
	{"captured", test_capture}, {"refused", test_refused})
