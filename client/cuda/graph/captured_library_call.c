/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library calls on streams that capture: the worker captures the call at once, with what is set of
 * its handles now, and the graph's node names it (cudacommon/graph_call.c).  It is a batched
 * command like the call itself, so capturing waits for nothing.
 *
 * Memory that a shim has for a handle is the session's as any other.  Where captured calls use it,
 * it outlives the handle: natively the library's own memory of a capture is the graph's.
 */
#include <stdlib.h>

#include "client/cuda/graph/captured_library_call.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "cudacommon/capture.h"

struct call {
	struct ckt_cudacommon_object object;
	uint64_t workspace; /* 0: none */
};

/* Memory that only captured calls use any more.  Under the graphs' lock, as all below. */
struct orphan {
	struct orphan *next;
	uint64_t address, context;
};
static struct orphan *orphans;

/* ---- Workspaces */

struct search {
	uint64_t address;
	bool found;
};

static void look(struct ckt_cudacommon_object *object, void *data)
{
	struct search *search = data;
	search->found |= ((struct call *)object)->workspace == search->address;
}

static bool is_used(uint64_t address)
{
	struct search search = {.address = address};
	ckt_cudacommon_object_each(CKT_KIND_LIB_CALL, look, &search);
	return search.found;
}

static void free_orphan(uint64_t address)
{
	for (struct orphan **link = &orphans; *link; link = &(*link)->next) {
		struct orphan *orphan = *link;
		if (orphan->address != address)
			continue;
		*link = orphan->next;
		/* Behind all that was put on streams. */
		ckt_cudacommon_graph_memory_free(orphan->address, orphan->context);
		free(orphan);
		return;
	}
}

CUresult ckt_client_lib_workspace_alloc(size_t bytes, uint64_t *ret_address)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr address = 0;
	/* The program has not asked for it, and a capture of its is not spoilt. */
	CUresult result = cuThreadExchangeStreamCaptureMode(&mode);
	if (result)
		return result;
	result = cuMemAlloc_v2(&address, bytes);
	cuThreadExchangeStreamCaptureMode(&mode);
	if (!result)
		*ret_address = address;
	return result;
}

CUresult ckt_client_lib_workspace_free(uint64_t address)
{
	ckt_graph_enter();
	bool used = is_used(address);
	struct orphan *orphan = used ? malloc(sizeof *orphan) : NULL;
	if (orphan) {
		*orphan = (struct orphan){
			.next = orphans, .address = address, .context = ckt_call_context};
		orphans = orphan;
	}
	ckt_graph_leave(CUDA_SUCCESS);
	/* Without memory to remember it by it stays until its context goes. */
	return used ? CUDA_SUCCESS : cuMemFree_v2(address);
}

/* ---- Calls */

CUresult ckt_client_lib_capture(uint64_t stream, uint32_t proc, const void *args, size_t size,
	uint64_t workspace, bool *ret_captured)
{
	struct ckt_capture_stream *capturing;
	*ret_captured = false;
	CUresult result = ckt_capture_enter(stream, &capturing);
	if (result || !capturing)
		return result;
	*ret_captured = true;
	if (size > CKT_DATA_MAX)
		return ckt_graph_leave(CKT_CUDACOMMON_UNSUPPORTED(
			"a captured library call with more than 1 MiB of arguments"));
	struct call *call = calloc(1, sizeof *call);
	if (!call || !ckt_cudacommon_object_add(&call->object, CKT_KIND_LIB_CALL)) {
		free(call);
		return ckt_graph_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	call->object.context = ckt_call_context;
	call->workspace = workspace;
	result = CKT_BATCHED(lib_capture, LIB_CAPTURE, .id = call->object.id, .library = proc >> 16,
		.proc = proc & 0xffff, .args = args, .args_len = (uint32_t)size);
	if (result)
		ckt_cudacommon_object_remove(&call->object);
	else
		result = ckt_graph_call_append(capturing, call->object.id);
	return ckt_graph_leave(result);
}

void ckt_cudacommon_call_end(uint64_t id)
{
	struct call *call = ckt_cudacommon_object_find(id, CKT_KIND_LIB_CALL);
	if (!call)
		return;
	uint64_t workspace = call->workspace;
	CKT_ROUTE_CONTEXT(call->object.context);
	/* Where the session is lost the worker has forgotten it anyway. */
	CKT_BATCHED(lib_capture_end, LIB_CAPTURE_END, .id = id);
	ckt_cudacommon_object_remove(&call->object);
	if (workspace && !is_used(workspace))
		free_orphan(workspace);
}
