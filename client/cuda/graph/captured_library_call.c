/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library calls on streams that capture.  The worker captures the call at once, with the current
 * settings of the call's handles.  The graph's node names the captured call
 * (cudacommon/graph_call.c).  It is a batched command, as the call itself is, so a capture waits
 * for no reply.
 *
 * A shim's memory for a handle is ordinary device memory of the session.  Captured calls that use
 * this memory keep it after the handle is destroyed: natively, the library's memory of a capture
 * belongs to the graph.
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

/* Memory that only captured calls still use.  The graphs' lock guards the list. */
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
		/* Freed after the work that is on streams now. */
		ckt_cudacommon_graph_memory_free(orphan->address, orphan->context);
		free(orphan);
		return;
	}
}

CUresult ckt_client_lib_workspace_alloc(size_t bytes, uint64_t *ret_address)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr address = 0;
	/*
	 * The program did not ask for this memory, so the allocation must not invalidate its
	 * capture.
	 */
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
	/* If malloc failed, the memory stays allocated until its context is destroyed. */
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
	/* If the session is lost, the worker has no call to end. */
	CKT_BATCHED(lib_capture_end, LIB_CAPTURE_END, .id = id);
	ckt_cudacommon_object_remove(&call->object);
	if (workspace && !is_used(workspace))
		free_orphan(workspace);
}
