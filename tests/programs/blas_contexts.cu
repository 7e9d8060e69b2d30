/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of cuBLAS whose context has gone before them, by cuCtxDestroy and by cudaDeviceReset: with a graph that was captured in it, with memory
 * that they had there, and with settings that others were given while it was current.  What lives goes on, saved in between or not.
 *
 * `defined` as the second argument leaves out what natively is not defined: the end of handles without a context, and work of a handle where
 * another context is current.
 */
#include <cuda.h>
#include <dlfcn.h>

#include "phase.h"

enum { N = 32 };

typedef struct cublasContext *handle_t;
static int (*create)(handle_t *);
static int (*destroy)(handle_t);
static int (*set_stream)(handle_t, cudaStream_t);
static int (*sgemm)(handle_t, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
static CUresult (*context_create)(CUcontext *, unsigned, CUdevice);
static CUresult (*context_destroy)(CUcontext);
static CUresult (*context_set)(CUcontext);
static CUresult (*context_get)(CUcontext *);
static CUresult (*memory_alloc)(CUdeviceptr *, size_t);

#define GOOD(call)                                                                                                               \
	do {                                                                                                                     \
		int good_status = (int)(call);                                                                                   \
		if (good_status) {                                                                                               \
			printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, good_status);                                        \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

static void find(const char *file, unsigned count, const char *const *names, void **const *entries)
{
	void *library = dlopen(file, RTLD_NOW);

	if (!library) {
		printf("%s\n", dlerror());
		exit(77);
	}
	for (unsigned i = 0; i < count; i++) {
		*entries[i] = dlsym(library, names[i]);
		if (!*entries[i]) {
			printf("%s has no %s\n", file, names[i]);
			exit(1);
		}
	}
}

static void open_libraries()
{
	static const char *const blas[] = {"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSgemm_v2"};
	static const char *const driver[] = {"cuCtxCreate_v2", "cuCtxDestroy_v2", "cuCtxSetCurrent", "cuCtxGetCurrent", "cuMemAlloc_v2"};
	void **const blas_entries[] = {(void **)&create, (void **)&destroy, (void **)&set_stream, (void **)&sgemm};
	void **const driver_entries[] = {(void **)&context_create, (void **)&context_destroy, (void **)&context_set, (void **)&context_get,
		(void **)&memory_alloc};

	CHECK(cudaFree(0));
	find("libcublas.so.13", 4, blas, blas_entries);
	find("libcuda.so.1", 5, driver, driver_entries);
}

/* In the current context: matrices, and their product into the third. */
struct work {
	handle_t handle;
	float *a, *c;
};

static void begin(struct work *w)
{
	float host[N * N];

	for (int i = 0; i < N * N; i++)
		host[i] = (float)(i % 5);
	GOOD(memory_alloc((CUdeviceptr *)&w->a, sizeof host));
	GOOD(memory_alloc((CUdeviceptr *)&w->c, sizeof host));
	CHECK(cudaMemcpy(w->a, host, sizeof host, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(w->c, 0, sizeof host));
	GOOD(create(&w->handle));
}

static void multiply(struct work *w)
{
	float one = 1, zero = 0;

	GOOD(sgemm(w->handle, 0, 0, N, N, N, &one, w->a, N, w->a, N, &zero, w->c, N));
}

static void show(const char *name, struct work *w)
{
	float host[N * N];

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(host, w->c, sizeof host, cudaMemcpyDeviceToHost));
	print_checksum(name, host, sizeof host);
}

/* A handle on a stream of its own, its products in a graph that was launched. */
static void capture(struct work *w)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	GOOD(set_stream(w->handle, stream));
	multiply(w);
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	multiply(w);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
}

/* The work of one context's handle in a graph of another. */
static cudaGraphExec_t capture_with(handle_t handle, struct work *w, CUcontext there, CUcontext here)
{
	struct work mixed = *w;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	mixed.handle = handle;
	GOOD(context_set(there));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	GOOD(set_stream(handle, stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	multiply(&mixed);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	GOOD(context_set(here));
	return exec;
}

int main(int argc, char **argv)
{
	struct work main_work, gone[3];
	CUcontext primary, other;
	cudaStream_t stream;
	cudaGraphExec_t launched = NULL;
	bool odd = argc < 3 || strcmp(argv[2], "defined");

	open_libraries();
	begin(&main_work);
	multiply(&main_work);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	/* A context of the driver's with a handle that works, a graph of it, and settings of another's handle. */
	GOOD(context_get(&primary));
	for (int i = 0; i < 2; i++) {
		GOOD(context_create(&other, 0, 0));
		begin(&gone[i]);
		capture(&gone[i]);
		show("elsewhere", &gone[i]);
		GOOD(set_stream(main_work.handle, i ? NULL : stream));
		if (odd)
			multiply(&main_work);
		if (odd && !i)
			launched = capture_with(gone[0].handle, &main_work, primary, other);
		GOOD(context_destroy(other));
		GOOD(context_set(primary));
		multiply(&main_work);
	}
	phase();
	if (odd)
		destroy(gone[0].handle);
	CHECK(cudaMemset(main_work.c, 0, N * N * sizeof(float)));
	if (launched)
		CHECK(cudaGraphLaunch(launched, 0));
	else
		multiply(&main_work);
	show("main", &main_work);
	/* The whole device; its memory, streams, graphs and handles with it. */
	begin(&gone[2]);
	capture(&gone[2]);
	CHECK(cudaDeviceReset());
	CHECK(cudaFree(0));
	struct work fresh;
	begin(&fresh);
	multiply(&fresh);
	phase();
	if (odd) {
		destroy(gone[1].handle);
		destroy(gone[2].handle);
		destroy(main_work.handle);
	}
	multiply(&fresh);
	capture(&fresh);
	show("fresh", &fresh);
	GOOD(destroy(fresh.handle));
	return finish();
}
