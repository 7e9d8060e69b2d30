/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS chooses an algorithm by the workspace that a handle has, so the bits of a product tell which one it had: the library's own, one of
 * the program's, none; before a capture, in it and behind it; on two streams; and the library's own again behind cublasSetStream.
 */
#include "common.h"

#include <cublas_v2.h>

struct shape {
	int m, n, k;
	cublasOperation_t a;
};

static const shape shapes[] = {{8, 88, 96, CUBLAS_OP_T}, {16, 48, 64, CUBLAS_OP_T}, {32, 64, 64, CUBLAS_OP_T}, {64, 64, 4096, CUBLAS_OP_N},
			       {64, 64, 4096, CUBLAS_OP_T}, {128, 16, 8192, CUBLAS_OP_T}, {300, 200, 1000, CUBLAS_OP_N}, {8, 8, 65536, CUBLAS_OP_T}};
enum { COUNT = sizeof shapes / sizeof *shapes, NUMBERS = 1 << 20, RESULTS = 1 << 16 };

static float *a, *b, *c[COUNT];

static void multiply(cublasHandle_t handle)
{
	float one = 1, zero = 0;
	for (int i = 0; i < COUNT; i++) {
		const shape &s = shapes[i];
		TRY(cublasSgemm(handle, s.a, CUBLAS_OP_N, s.m, s.n, s.k, &one, a, s.a == CUBLAS_OP_T ? s.k : s.m, b, s.k, &zero, c[i], s.m));
	}
}

static void tell(const char *what)
{
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < COUNT; i++) {
		char name[80];
		snprintf(name, sizeof name, "%s, %d %d %d", what, shapes[i].m, shapes[i].n, shapes[i].k);
		hash(name, c[i], sizeof(float) * shapes[i].m * shapes[i].n);
		CHECK(cudaMemset(c[i], 0, sizeof(float) * RESULTS));
	}
	CHECK(cudaDeviceSynchronize());
}

static void run(cublasHandle_t handle, cudaStream_t stream, void *workspace)
{
	static const struct {
		const char *what;
		size_t bytes;
	} given[] = {{"none", 0}, {"4 MiB", 4 << 20}, {"32 MiB", 32 << 20}};
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	TRY(cublasSetStream(handle, NULL));
	multiply(handle);
	tell("the library's own");
	for (const auto &g : given) {
		TRY(cublasSetWorkspace(handle, g.bytes ? workspace : NULL, g.bytes));
		multiply(handle);
		tell(g.what);
	}
	TRY(cublasSetStream(handle, stream));
	multiply(handle);
	tell("on a stream");
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	multiply(handle);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	multiply(handle);
	tell("behind a capture");
	CHECK(cudaGraphLaunch(exec, stream));
	tell("captured");
	TRY(cublasSetStream(handle, NULL));
	multiply(handle);
	tell("the library's own again");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* A handle whose first word is that it has none. */
static void none_from_the_beginning()
{
	cublasHandle_t handle;
	TRY(cublasCreate(&handle));
	TRY(cublasSetWorkspace(handle, NULL, 0));
	multiply(handle);
	tell("none from the beginning");
	TRY(cublasDestroy(handle));
}

int main()
{
	cublasHandle_t handle;
	cudaStream_t stream;
	void *workspace;
	a = device(numbers(NUMBERS, 1));
	b = device(numbers(NUMBERS, 2));
	for (auto &p : c)
		p = device<float>(RESULTS);
	CHECK(cudaMalloc(&workspace, 32 << 20));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	TRY(cublasCreate(&handle));
	run(handle, stream, workspace);
	none_from_the_beginning();
	phase();
	run(handle, stream, workspace);
	none_from_the_beginning();
	TRY(cublasDestroy(handle));
	return finish();
}
