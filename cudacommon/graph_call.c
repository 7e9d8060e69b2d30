/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library calls in graphs.  Only the genuine library, in the worker, knows which work a call
 * submits to its stream.  The worker captures that work into a graph of its own.  Here, the call is
 * a node of type CU_GRAPH_NODE_TYPE_GRAPH.  Its child graph is empty, accepts no nodes, and has the
 * call's id.
 *
 * captured -> the child of one node -> of every copy of it -> the last copy goes: the worker forgets the call
 */
#include <stdlib.h>

#include "cudacommon/capture.h"

struct ckt_graph_call {
	uint64_t id;  /* the worker's id of the call */
	size_t count; /* the number of graphs that represent it */
};

static void leave(struct ckt_graph_call *call)
{
	if (!call || --call->count)
		return;
	ckt_cudacommon_call_end(call->id);
	free(call);
}

uint64_t ckt_graph_call_id(const struct ckt_graph *graph)
{
	return graph->call ? graph->call->id : 0;
}

void ckt_graph_call_share(struct ckt_graph *to, const struct ckt_graph *from)
{
	if (from->call)
		from->call->count++;
	leave(to->call);
	to->call = from->call;
}

void ckt_graph_call_drop(struct ckt_graph *graph)
{
	leave(graph->call);
	graph->call = NULL;
}

CUresult ckt_graph_call_append(struct ckt_capture_stream *stream, uint64_t id)
{
	struct ckt_graph_call *call = malloc(sizeof *call);
	struct ckt_graph *child = NULL;
	struct ckt_node *node;
	CUresult result = call ? ckt_graph_new(true, &child) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		free(call);
		ckt_cudacommon_call_end(id);
		return result;
	}
	*call = (struct ckt_graph_call){.id = id, .count = 1};
	child->call = call;
	result = ckt_capture_append(stream, CU_GRAPH_NODE_TYPE_GRAPH, &node);
	if (result) {
		ckt_graph_free(child);
		return result;
	}
	node->child = child;
	child->owner = node;
	return CUDA_SUCCESS;
}
