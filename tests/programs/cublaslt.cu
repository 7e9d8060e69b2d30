/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt as frameworks use it: D = GELU(A B + bias) with a heuristic before each product, its auxiliary output, batches, a transform, the
 * same product in a captured graph, and what cannot be.  All is checked on the CPU.
 */
#include <cublasLt.h>
#include <math.h>

#include "phase.h"

#define LT(call)                                                                                                                 \
	do {                                                                                                                     \
		cublasStatus_t status_ = (call);                                                                                 \
		if (status_ != CUBLAS_STATUS_SUCCESS) {                                                                          \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cublasLtGetStatusName(status_));                     \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

static const int m = 24, n = 16, k = 40, batches = 3;
static cublasLtHandle_t handle;
static float *a, *b, *bias, *aux, *d;	/* on the device */
static float host_a[batches * m * k], host_b[batches * k * n], host_bias[m], expected[batches * m * n], got[batches * m * n];

static float gelu(float x)
{
	return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static float product(int batch, int row, int col)
{
	float sum = 0;

	for (int i = 0; i < k; i++)
		sum += host_a[batch * m * k + i * m + row] * host_b[batch * k * n + col * k + i];
	return sum;
}

static bool near(float x, float y)
{
	return fabsf(x - y) <= 1e-4f * (1 + fabsf(y));
}

/* The program's own description of a product: its descriptors lie in its own memory. */
struct multiply {
	cublasLtMatmulDescOpaque_t op;
	cublasLtMatrixLayoutOpaque_t a, b, d;
	cublasLtMatmulPreferenceOpaque_t preference;
	size_t workspace_bytes;
	void *workspace;
};

static void init(multiply *x, int count)
{
	x->workspace_bytes = 1 << 20;
	LT(cublasLtMatmulDescInit(&x->op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	LT(cublasLtMatrixLayoutInit(&x->a, CUDA_R_32F, m, k, m));
	LT(cublasLtMatrixLayoutInit(&x->b, CUDA_R_32F, k, n, k));
	LT(cublasLtMatrixLayoutInit(&x->d, CUDA_R_32F, m, n, m));
	LT(cublasLtMatmulPreferenceInit(&x->preference));
	LT(cublasLtMatmulPreferenceSetAttribute(&x->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &x->workspace_bytes, sizeof x->workspace_bytes));
	if (count > 1) {
		const int64_t strides[] = {m * k, k * n, m * n};
		cublasLtMatrixLayout_t const layouts[] = {&x->a, &x->b, &x->d};
		for (int i = 0; i < 3; i++) {
			LT(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
			LT(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides[i], sizeof strides[i]));
		}
	}
	CHECK(cudaMalloc(&x->workspace, x->workspace_bytes));
}

static void epilogue(multiply *x, cublasLtEpilogue_t kind)
{
	LT(cublasLtMatmulDescSetAttribute(&x->op, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind, sizeof kind));
}

static void run(multiply *x, const float *alpha, const float *beta, cudaStream_t stream)
{
	cublasLtMatmulHeuristicResult_t found;
	int count = 0;

	LT(cublasLtMatmulAlgoGetHeuristic(handle, &x->op, &x->a, &x->b, &x->d, &x->d, &x->preference, 1, &found, &count));
	EXPECT(count == 1);
	LT(cublasLtMatmul(handle, &x->op, alpha, a, &x->a, b, &x->b, beta, d, &x->d, d, &x->d, &found.algo, x->workspace, x->workspace_bytes, stream));
}

static void take(int count)
{
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(got, d, count * m * n * sizeof *got, cudaMemcpyDeviceToHost));
}

static void compare(const char *what, int count)
{
	int wrong = 0;

	take(count);
	for (int i = 0; i < count * m * n; i++)
		wrong += !near(got[i], expected[i]);
	printf("%s: %d wrong\n", what, wrong);
	EXPECT(wrong == 0);
}

static void expect_gelu(float scale)
{
	for (int col = 0; col < n; col++)
		for (int row = 0; row < m; row++)
			expected[col * m + row] = gelu(scale * product(0, row, col) + host_bias[row]);
}

static void test_batches(cudaStream_t stream)
{
	multiply x;
	const float one = 1, zero = 0;

	init(&x, batches);
	run(&x, &one, &zero, stream);
	for (int batch = 0; batch < batches; batch++)
		for (int i = 0; i < m * n; i++)
			expected[batch * m * n + i] = product(batch, i % m, i / m);
	compare("batches", batches);
	/* D = A B + D, with the scalars on the device. */
	const float scalars[] = {2, 3};
	const int32_t mode = CUBLASLT_POINTER_MODE_DEVICE;
	float *on_device;
	CHECK(cudaMalloc(&on_device, sizeof scalars));
	CHECK(cudaMemcpy(on_device, scalars, sizeof scalars, cudaMemcpyHostToDevice));
	LT(cublasLtMatmulDescSetAttribute(&x.op, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode));
	run(&x, on_device, on_device + 1, stream);
	for (int i = 0; i < batches * m * n; i++)
		expected[i] = 2 * product(i / (m * n), i % m, i / m % n) + 3 * expected[i];
	compare("device scalars", batches);
	CHECK(cudaFree(on_device));
	CHECK(cudaFree(x.workspace));
}

static void test_transform(cudaStream_t stream)
{
	cublasLtMatrixTransformDesc_t desc;
	cublasLtMatrixLayout_t from, to;
	const int32_t transposed = CUBLAS_OP_T;
	const float two = 2, zero = 0;

	LT(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F));
	LT(cublasLtMatrixTransformDescSetAttribute(desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &transposed, sizeof transposed));
	LT(cublasLtMatrixLayoutCreate(&from, CUDA_R_32F, m, k, m));
	LT(cublasLtMatrixLayoutCreate(&to, CUDA_R_32F, k, m, k));
	LT(cublasLtMatrixTransform(handle, desc, &two, a, from, &zero, NULL, NULL, d, to, stream));
	take(1);
	int wrong = 0;
	for (int i = 0; i < m * n; i++)
		wrong += got[i] != 2 * host_a[i % k * m + i / k];
	printf("transform: %d wrong\n", wrong);
	EXPECT(wrong == 0);
	LT(cublasLtMatrixLayoutDestroy(from));
	LT(cublasLtMatrixLayoutDestroy(to));
	LT(cublasLtMatrixTransformDescDestroy(desc));
}

/* What a heuristic refuses it refuses each time, and the program goes on. */
static void test_refused(void)
{
	multiply x;
	cublasLtMatmulHeuristicResult_t found;
	int count = 1;

	init(&x, 1);
	LT(cublasLtMatrixLayoutInit(&x.b, CUDA_R_32F, k + 1, n, k + 1));
	for (int i = 0; i < 2; i++) {
		cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, &x.op, &x.a, &x.b, &x.d, &x.d, &x.preference, 1, &found, &count);
		printf("refused: status %d, count %d\n", (int)status, count);
	}
	EXPECT(cublasLtMatmulAlgoGetHeuristic(NULL, &x.op, &x.a, &x.b, &x.d, &x.d, &x.preference, 1, &found, &count) == CUBLAS_STATUS_NOT_INITIALIZED);
	CHECK(cudaFree(x.workspace));
}

int main(void)
{
	uint32_t random = 7;
	multiply x, with_aux;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	const float one = 1, half = 0.5f, zero = 0;
	int major = 0;

	for (float &value : host_a)
		value = random_float(&random) - 0.5f;
	for (float &value : host_b)
		value = random_float(&random) - 0.5f;
	for (float &value : host_bias)
		value = random_float(&random) - 0.5f;
	CHECK(cudaMalloc(&a, sizeof host_a));
	CHECK(cudaMalloc(&b, sizeof host_b));
	CHECK(cudaMalloc(&bias, sizeof host_bias));
	CHECK(cudaMalloc(&aux, m * n * sizeof *aux));
	CHECK(cudaMalloc(&d, sizeof got));
	CHECK(cudaMemcpy(a, host_a, sizeof host_a, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(b, host_b, sizeof host_b, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(bias, host_bias, sizeof host_bias, cudaMemcpyHostToDevice));
	CHECK(cudaStreamCreate(&stream));
	LT(cublasLtCreate(&handle));
	LT(cublasLtGetProperty(MAJOR_VERSION, &major));
	EXPECT(major == 13 && cublasLtGetVersion() / 10000 == 13);

	init(&x, 1);
	epilogue(&x, CUBLASLT_EPILOGUE_GELU_BIAS);
	LT(cublasLtMatmulDescSetAttribute(&x.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
	run(&x, &one, &zero, stream);
	expect_gelu(1);
	compare("gelu and bias", 1);

	/* With the input of GELU beside its output: a description of its own, since the genuine library refuses one that names such a buffer and does not use it. */
	const int64_t aux_ld = m;
	init(&with_aux, 1);
	epilogue(&with_aux, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
	LT(cublasLtMatmulDescSetAttribute(&with_aux.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
	LT(cublasLtMatmulDescSetAttribute(&with_aux.op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux));
	LT(cublasLtMatmulDescSetAttribute(&with_aux.op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, sizeof aux_ld));
	run(&with_aux, &half, &zero, stream);
	expect_gelu(half);
	compare("gelu with its input", 1);
	CHECK(cudaMemcpy(got, aux, m * n * sizeof *got, cudaMemcpyDeviceToHost));
	int wrong = 0;
	for (int i = 0; i < m * n; i++)
		wrong += !near(got[i], half * product(0, i % m, i / m) + host_bias[i % m]);
	printf("its input: %d wrong\n", wrong);
	EXPECT(wrong == 0);

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	run(&x, &one, &zero, stream);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));

	phase();

	/* The handle, the descriptors and the graph are what they were. */
	test_batches(stream);
	CHECK(cudaMemset(d, 0, sizeof got));
	CHECK(cudaGraphLaunch(exec, stream));
	expect_gelu(1);
	compare("graph", 1);
	for (float &value : host_bias)
		value += 1;
	CHECK(cudaMemcpy(bias, host_bias, sizeof host_bias, cudaMemcpyHostToDevice));
	CHECK(cudaGraphLaunch(exec, stream));
	expect_gelu(1);
	compare("graph with another bias", 1);
	run(&x, &one, &zero, stream);
	compare("again", 1);
	test_transform(stream);
	test_refused();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	LT(cublasLtDestroy(handle));
	return finish();
}
