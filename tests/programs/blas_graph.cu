/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices by cuBLAS: in loops, and captured into a graph with kernels before and behind them, with settings that change
 * between the captures.  The library is opened by name, so that a build needs none; the numbers are whole, so that any order of adding gives them.
 */
#include <dlfcn.h>

#include "phase.h"

enum { N = 48, STEPS = 6 };

typedef struct cublasContext *handle_t;
static int (*create)(handle_t *);
static int (*destroy)(handle_t);
static int (*set_stream)(handle_t, cudaStream_t);
static int (*set_pointer_mode)(handle_t, int);
static int (*sgemm)(handle_t, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);

static int (*gemm_ex)(handle_t, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, void *, int, int, int, int);

#define BLAS(call)                                                                                                               \
	do {                                                                                                                     \
		int blas_status = (call);                                                                                        \
		if (blas_status) {                                                                                               \
			printf("%s:%d: %s: status %d\n", __FILE__, __LINE__, #call, blas_status);                                 \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

static void open_library()
{
	static const char *const names[] = {"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetPointerMode_v2", "cublasSgemm_v2",
					     "cublasGemmEx"};
	void **const entries[] = {(void **)&create, (void **)&destroy, (void **)&set_stream, (void **)&set_pointer_mode, (void **)&sgemm,
				  (void **)&gemm_ex};
	void *library = dlopen("libcublas.so.13", RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		exit(77);
	}
	for (unsigned i = 0; i < 6; i++) {
		*entries[i] = dlsym(library, names[i]);
		if (!*entries[i]) {
			printf("libcublas.so.13 has no %s\n", names[i]);
			exit(1);
		}
	}
}

/* cudaDataType, cublasComputeType_t and cublasGemmAlgo_t, by number. */
enum { R_32F = 0, R_64F = 1, COMPUTE_32F = 68, ALGO_DEFAULT = -1, NOT_SUPPORTED = 15 };

static int multiply_types(handle_t handle, const float *a, int a_type, const float *b, float *c, const float *one, const float *zero)
{
	return gemm_ex(handle, 0, 0, N, N, N, one, a, a_type, N, b, R_32F, N, zero, c, R_32F, N, COMPUTE_32F, ALGO_DEFAULT);
}

/* Keeps the numbers small and whole. */
__global__ void reduce(float *p, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = (float)(((unsigned)p[i] + i * 7 + salt) % 11);
}

int main()
{
	const size_t bytes = N * N * sizeof(float);
	float *a, *b, *c, *d, host[N * N], one = 1, zero = 0, two = 2;
	cudaStream_t s, gone;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	handle_t handle, other, idle;

	open_library();
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&a, bytes));
	CHECK(cudaMalloc(&b, bytes));
	CHECK(cudaMalloc(&c, bytes));
	CHECK(cudaMalloc(&d, 2 * sizeof(float)));
	for (int i = 0; i < N * N; i++)
		host[i] = (float)(i % 7);
	CHECK(cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(b, host, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(c, 0, bytes));
	CHECK(cudaMemcpy(d, &one, sizeof one, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(d + 1, &zero, sizeof zero, cudaMemcpyHostToDevice));
	BLAS(create(&handle));
	BLAS(create(&other));
	BLAS(set_stream(handle, s));
	BLAS(set_stream(other, s));
	/* Its stream has ended before the program is saved. */
	CHECK(cudaStreamCreate(&gone));
	BLAS(create(&idle));
	BLAS(set_stream(idle, gone));
	CHECK(cudaStreamDestroy(gone));
	for (int i = 0; i < STEPS; i++) {
		BLAS(sgemm(handle, 0, i & 1, N, N, N, &two, a, N, b, N, &zero, c, N));
		reduce<<<(N * N + 127) / 128, 128, 0, s>>>(c, N * N, i);
		BLAS(sgemm(handle, i & 1, 0, N, N, N, &one, c, N, b, N, &zero, a, N));
		reduce<<<(N * N + 127) / 128, 128, 0, s>>>(a, N * N, i);
	}
	CHECK(cudaStreamSynchronize(s));
	/* Types that do not go together are refused at once, by each call: a program may try others then. */
	for (int i = 0; i < 2; i++) {
		BLAS(multiply_types(handle, a, R_32F, b, c, &one, &zero));
		int refused = multiply_types(handle, a, R_64F, b, c, &one, &zero);
		if (refused != NOT_SUPPORTED) {
			printf("double times float: status %d\n", refused);
			return 1;
		}
	}
	CHECK(cudaStreamSynchronize(s));
	/* A handle whose factors lie on the device, and one that is gone when the graph is launched. */
	BLAS(set_pointer_mode(handle, 1));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	reduce<<<(N * N + 127) / 128, 128, 0, s>>>(b, N * N, 3);
	BLAS(sgemm(handle, 0, 1, N, N, N, d, a, N, b, N, d + 1, c, N));
	reduce<<<(N * N + 127) / 128, 128, 0, s>>>(c, N * N, 4);
	BLAS(sgemm(other, 1, 0, N, N, N, &two, c, N, b, N, &one, a, N));
	reduce<<<(N * N + 127) / 128, 128, 0, s>>>(a, N * N, 5);
	CHECK(cudaStreamEndCapture(s, &graph));
	BLAS(set_pointer_mode(handle, 0));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	BLAS(destroy(other));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	phase();
	for (int i = 0; i < STEPS; i++)
		CHECK(cudaGraphLaunch(exec, s));
	for (int i = 0; i < STEPS; i++) {
		BLAS(sgemm(handle, 0, i & 1, N, N, N, &two, a, N, b, N, &zero, c, N));
		reduce<<<(N * N + 127) / 128, 128, 0, s>>>(c, N * N, i);
		BLAS(multiply_types(handle, c, R_32F, b, a, &one, &zero));
		reduce<<<(N * N + 127) / 128, 128, 0, s>>>(a, N * N, i);
	}
	CHECK(cudaStreamSynchronize(s));
	phase();
	BLAS(set_stream(idle, s));
	BLAS(sgemm(idle, 0, 0, N, N, N, &one, a, N, b, N, &zero, c, N));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaMemcpy(host, a, bytes, cudaMemcpyDeviceToHost));
	print_checksum("a", host, bytes);
	CHECK(cudaMemcpy(host, c, bytes, cudaMemcpyDeviceToHost));
	print_checksum("c", host, bytes);
	CHECK(cudaGraphExecDestroy(exec));
	BLAS(destroy(handle));
	BLAS(destroy(idle));
	return finish();
}
