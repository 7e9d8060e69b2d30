/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/context/client_table.c: what libcuda.so.1 gives the shims of forwarded libraries. */
#include <dlfcn.h>

#include "client/libs/libs.h"
#include "relay.h"
#include "rpc/handle.h"

static const struct ckt_client_table *table(void)
{
	return dlsym(RTLD_DEFAULT, CKT_CLIENT_TABLE_SYMBOL);
}

static void test_objects(void)
{
	const struct ckt_client_table *t = table();
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	IS(t->version, CKT_CLIENT_TABLE_VERSION);
	IS(t->size, sizeof *t);
	uint64_t id = t->object_make(), other = t->object_make();
	IS(id >> 56, CKT_KIND_LIB_OBJECT);
	YES(other && other != id);
	t->object_drop(id);
	t->object_drop(id);
	t->object_drop(other);
}

static void test_contexts_and_streams(void)
{
	const struct ckt_client_table *t = table();
	CUcontext before;
	CUstream stream;
	uint64_t id = 0;
	MUST(cuCtxGetCurrent(&before), CUDA_SUCCESS);
	IS(t->context(), (uintptr_t)before);
	/* Without one it is the first device's. */
	cuCtxSetCurrent(NULL);
	IS(t->enter(), CUDA_SUCCESS);
	IS(t->context(), ckt_handle_primary(0));
	cuDevicePrimaryCtxRelease_v2(0);
	cuCtxSetCurrent(before);
	IS(t->enter(), CUDA_SUCCESS);
	IS(t->context(), (uintptr_t)before);
	MUST(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	IS(t->stream(stream, &id), CUDA_SUCCESS);
	IS(id, (uintptr_t)stream);
	LOCAL(t->before_work(id, NULL, 0), CUDA_SUCCESS);
	/* A stream that captures takes none of it, and the capture is not spoilt. */
	CUgraph graph;
	uint32_t *host;
	MUST(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	IS(t->before_work(id, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	/*
	 * But the device gets what it names of the host's memory: the captured call will name it,
	 * too.
	 */
	uint64_t address = (uintptr_t)host;
	IS(t->before_work(id, &address, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	IS(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	/* It was mapped there: what is left is to bring its bytes. */
	COST(t->before_work(id, &address, 1), CUDA_SUCCESS, 1, 1);
	cuGraphDestroy(graph);
	IS(cuMemFreeHost(host), CUDA_SUCCESS);
	cuStreamDestroy_v2(stream);
	IS(t->stream(stream, &id), CUDA_ERROR_INVALID_HANDLE);
}

/* A program that the server does not have is refused, and the session goes on. */
static void test_unknown_library(void)
{
	const struct ckt_client_table *t = table();
	struct ckt_call call;
	MUST(t->begin(&call, CKT_LIB_PROC(CKT_LIB_CUDNN, 1), 4, 0), CUDA_SUCCESS);
	ckt_put_u32(call.p, 120000);
	IS(t->wait(&call, NULL), CUDA_ERROR_NOT_SUPPORTED);
	COST(cuCtxSynchronize(), CUDA_SUCCESS, 1, 0);
}

UNIT_SUITE(client_table, {"objects", test_objects},
	{"contexts and streams", test_contexts_and_streams},
	{"unknown library", test_unknown_library})
