/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries' calls that wait for the GPU by themselves while the GPU waits for a host function: first uses, which load a library's code, results in
 * the program's memory, handles made and ended.  Natively all of them end as soon as the host function has returned.
 */
#include <cublasLt.h>
#include <dlfcn.h>

#include "held.h"

enum { N = 32 };

typedef struct cublasContext *blas_t;
static int (*create)(blas_t *);
static int (*destroy)(blas_t);
static int (*set_stream)(blas_t, cudaStream_t);
static int (*sgemm)(blas_t, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
static int (*sdot)(blas_t, int, const float *, int, const float *, int, float *);
static int (*sscal)(blas_t, int, const float *, float *, int);

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
	static const char *const names[] = {"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSgemm_v2", "cublasSdot_v2", "cublasSscal_v2"};
	void **const entries[] = {(void **)&create, (void **)&destroy, (void **)&set_stream, (void **)&sgemm, (void **)&sdot, (void **)&sscal};
	void *library = dlopen("libcublas.so.13", RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		exit(77);
	}
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		*entries[i] = dlsym(library, names[i]);
		if (!*entries[i]) {
			printf("libcublas.so.13 has no %s\n", names[i]);
			exit(1);
		}
	}
}

__global__ void fill(float *p, float value)
{
	p[threadIdx.x] = value;
}

static float *a, *b, *d;

static float first_of(const float *p)
{
	float v;
	CHECK(cudaMemcpy(&v, p, sizeof v, cudaMemcpyDeviceToHost));
	return v;
}

/* d = a b of N x N numbers, with what cuBLASLt proposes. */
static void lt_product(cublasLtHandle_t lt, int rows, cudaStream_t stream)
{
	const float one = 1, zero = 0;
	cublasLtMatmulDescOpaque_t op;
	cublasLtMatrixLayoutOpaque_t la, lb, ld;
	cublasLtMatmulPreferenceOpaque_t preference;
	cublasLtMatmulHeuristicResult_t found;
	int count = 0;
	BLAS(cublasLtMatmulDescInit(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatrixLayoutInit(&la, CUDA_R_32F, rows, N, rows));
	BLAS(cublasLtMatrixLayoutInit(&lb, CUDA_R_32F, N, N, N));
	BLAS(cublasLtMatrixLayoutInit(&ld, CUDA_R_32F, rows, N, rows));
	BLAS(cublasLtMatmulPreferenceInit(&preference));
	BLAS(cublasLtMatmulAlgoGetHeuristic(lt, &op, &la, &lb, &ld, &ld, &preference, 1, &found, &count));
	EXPECT(count == 1);
	BLAS(cublasLtMatmul(lt, &op, &one, a, &la, b, &lb, &zero, d, &ld, d, &ld, &found.algo, NULL, 0, stream));
}

static void lt_calls(cudaStream_t held, cudaStream_t free)
{
	unsigned counter = 0;
	cublasLtHandle_t lt;
	hold(held, &counter);
	BLAS(cublasLtCreate(&lt));
	hold(held, &counter);
	lt_product(lt, N, free);
	CHECK(cudaDeviceSynchronize());
	printf("cublasLtMatmul beside: %g, host functions %u\n", first_of(d), counter);
	/* Behind it, with shapes that are new to both sides. */
	for (int rows = 8; rows < 32; rows += 8) {
		hold(held, &counter);
		lt_product(lt, rows, held);
	}
	CHECK(cudaDeviceSynchronize());
	printf("cublasLtMatmul behind: %g, host functions %u\n", first_of(d), counter);
	hold(held, &counter);
	BLAS(cublasLtDestroy(lt));
	CHECK(cudaDeviceSynchronize());
	printf("cublasLtDestroy: host functions %u\n", counter);
}

static void blas_calls(blas_t handle, cudaStream_t held, cudaStream_t free)
{
	unsigned counter = 0;
	const float one = 1, zero = 0, two = 2;
	float dot = 0;
	BLAS(set_stream(handle, free));
	hold(held, &counter);
	BLAS(sgemm(handle, 0, 0, N, N, N, &one, a, N, b, N, &zero, d, N));
	CHECK(cudaStreamSynchronize(free));
	printf("cublasSgemm: %g\n", first_of(d));
	CHECK(cudaDeviceSynchronize());
	/* The result in the program's memory is there when the call returns. */
	BLAS(set_stream(handle, held));
	hold(held, &counter);
	BLAS(sdot(handle, N, a, 1, b, 1, &dot));
	printf("cublasSdot: %g, host functions %u\n", dot, counter);
	hold(held, &counter);
	BLAS(sscal(handle, N, &two, d, 1));
	CHECK(cudaDeviceSynchronize());
	printf("cublasSscal: %g, host functions %u\n", first_of(d), counter);
}

int main()
{
	unsigned counter = 0;
	cudaStream_t held, free;
	blas_t handle, other;
	open_library();
	CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
	for (float **p : {&a, &b, &d}) {
		CHECK(cudaMalloc(p, N * N * sizeof **p));
		for (int i = 0; i < N; i++)
			fill<<<1, N>>>(*p + i * N, p == &a ? 2 : 3);
	}
	CHECK(cudaDeviceSynchronize());
	lt_calls(held, free);
	hold(held, &counter);
	BLAS(create(&handle));
	phase();
	blas_calls(handle, held, free);
	hold(held, &counter);
	BLAS(create(&other));
	BLAS(destroy(handle));
	hold(held, &counter);
	BLAS(destroy(other));
	CHECK(cudaDeviceSynchronize());
	printf("host functions %u of %d\n", counter, held_calls.load());
	return finish();
}
