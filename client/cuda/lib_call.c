/*
 * Library calls on streams that capture: the worker captures the call at once, with what is set of its handles now, and the graph's node
 * names it (driver/graph_call.c).  It is a batched command like the call itself, so capturing waits for nothing.
 */
#include "client/cuda/lib_call.h"

#include <stdlib.h>

#include "client/cuda/graph_side.h"
#include "client/cuda/route.h"
#include "driver/capture.h"

CUresult ckt_lib_capture(uint64_t stream, uint32_t proc, const void *args, size_t size, bool *ret_captured)
{
	struct ckt_capture_stream *capturing;
	*ret_captured = false;
	CUresult result = ckt_capture_enter(stream, &capturing);
	if (result || !capturing)
		return result;
	*ret_captured = true;
	if (size > CKT_DATA_MAX)
		return ckt_graph_leave(CKT_DRIVER_UNSUPPORTED("a captured library call with more than 1 MiB of arguments"));
	struct ckt_object *call = calloc(1, sizeof *call);
	if (!call || !ckt_object_add(call, CKT_KIND_LIB_CALL)) {
		free(call);
		return ckt_graph_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	call->context = ckt_call_context;
	result = CKT_BATCHED(lib_capture, LIB_CAPTURE, .id = call->id, .library = proc >> 16, .proc = proc & 0xffff, .args = args,
			     .args_len = (uint32_t)size);
	if (result)
		ckt_object_remove(call);
	else
		result = ckt_graph_call_append(capturing, call->id);
	return ckt_graph_leave(result);
}

void ckt_driver_call_end(uint64_t id)
{
	struct ckt_object *call = ckt_object_find(id, CKT_KIND_LIB_CALL);
	if (!call)
		return;
	CKT_ROUTE_CONTEXT(call->context);
	/* Where the session is lost the worker has forgotten it anyway. */
	CKT_BATCHED(lib_capture_end, LIB_CAPTURE_END, .id = id);
	ckt_object_remove(call);
}
