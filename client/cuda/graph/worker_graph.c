/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs.  The worker makes them from descriptions, changes and launches them. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cuda/graph/worker_graph.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/graph/graph_host.h"
#include "client/cuda/graph/graph_wire.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/two_servers.h"
#include "client/cuda/stream/hostfunc.h"

static struct ckt_client_exec *own(struct ckt_exec *exec)
{
	return (struct ckt_client_exec *)exec;
}

struct ckt_exec *ckt_exec_new(void)
{
	struct ckt_client_exec *exec = calloc(1, sizeof *exec);
	return exec ? &exec->exec : NULL;
}

CUresult ckt_exec_make(
	struct ckt_exec *exec, const struct ckt_graph *graph, uint64_t flags, uint64_t stream)
{
	struct ckt_reply reply;
	struct ckt_graph_instantiate_res res;
	CUresult result = ckt_client_graph_place(exec->graph, &exec->object.context);
	CKT_ROUTE_CONTEXT(exec->object.context);
	if (!result)
		result = ckt_client_graph_send(exec->graph, graph->object.id);
	if (!result)
		result = CKT_WAITED(graph_instantiate, GRAPH_INSTANTIATE, CKT_CALL_F_NUMBERED,
			&reply, .exec = exec->object.id, .graph = graph->object.id, .flags = flags,
			.upload_stream = stream);
	if (result)
		return result;
	result = ckt_graph_instantiate_res_get(&reply.results, &res) ? (CUresult)res.status
								     : CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

CUresult ckt_exec_unmake(struct ckt_exec *exec)
{
	CKT_ROUTE_CONTEXT(exec->object.context);
	return CKT_BATCHED(graph_exec_destroy, GRAPH_EXEC_DESTROY, .exec = exec->object.id);
}

void ckt_exec_look(struct ckt_exec *exec)
{
	own(exec)->has_host_memory = ckt_client_graph_has_host_memory(exec->graph);
	own(exec)->host_nodes = ckt_client_graph_host_nodes(exec->graph);
}

void ckt_exec_settle_users(const struct ckt_exec *exec)
{
	if (!exec || !exec->graph || !exec->graph->user_count)
		return;
	CKT_ROUTE_CONTEXT(exec->object.context);
	CKT_WAITED(
		ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = ckt_call_id(exec->object.context));
}

/* Waits for host functions: a host node of an unfinished launch still needs its record here. */
void ckt_exec_settle(const struct ckt_exec *exec)
{
	(void)exec;
	ckt_host_settle();
}

/* ---- Changes */

/*
 * Whether a change concerns parameters only, which the driver cannot refuse.  Such changes need no
 * reply.  They are frequent: before each launch of a graph, XLA sets the buffer addresses of its
 * kernels.
 */
static bool changes_arguments_only(const struct ckt_node *node, const struct ckt_node *to)
{
	const struct ckt_kernel_node *a = &node->kernel, *b = &to->kernel;
	return node->type == CU_GRAPH_NODE_TYPE_KERNEL && to->context == node->context &&
		a->function == b->function && !memcmp(a->grid, b->grid, sizeof a->grid) &&
		!memcmp(a->block, b->block, sizeof a->block) &&
		a->shared_bytes == b->shared_bytes && a->param_bytes == b->param_bytes &&
		a->attribute_count == b->attribute_count &&
		(!a->attribute_count ||
			!memcmp(a->attributes, b->attributes,
				a->attribute_count * sizeof *a->attributes));
}

CUresult ckt_exec_change_node(
	struct ckt_exec *exec, const struct ckt_node *node, const struct ckt_node *to)
{
	/* Only the client knows the function of a host node. */
	if (node->type == CU_GRAPH_NODE_TYPE_HOST)
		return CUDA_SUCCESS;
	size_t size = ckt_client_node_wire_size(to);
	uint8_t *data = size > CKT_DATA_MAX ? NULL : malloc(size);
	if (!data)
		return size > CKT_DATA_MAX
			? CKT_CUDACOMMON_UNSUPPORTED(
				  "a change of more than 1 MiB to a node of an executable graph")
			: CUDA_ERROR_OUT_OF_MEMORY;
	ckt_client_node_wire_put(data, to);
	CKT_ROUTE_CONTEXT(exec->object.context);
	CUresult result;
	if (changes_arguments_only(node, to))
		result = CKT_BATCHED(graph_exec_set_node, GRAPH_EXEC_SET_NODE,
			.exec = exec->object.id, .node = data, .node_len = (uint32_t)size);
	else
		result = CKT_WAITED(graph_exec_set_node, GRAPH_EXEC_SET_NODE, CKT_CALL_F_NUMBERED,
			NULL, .exec = exec->object.id, .node = data, .node_len = (uint32_t)size);
	free(data);
	return result;
}

CUresult ckt_exec_enable_node(struct ckt_exec *exec, const struct ckt_node *node, bool enabled)
{
	CKT_ROUTE_CONTEXT(exec->object.context);
	return CKT_WAITED(graph_exec_set_enabled, GRAPH_EXEC_SET_ENABLED, CKT_CALL_F_NUMBERED, NULL,
		.exec = exec->object.id, .node = node->origin, .enabled = enabled);
}

/* The worker updates its nodes in its own order, so that client and worker pair the same nodes. */
CUresult ckt_exec_update(
	struct ckt_exec *exec, const struct ckt_graph *graph, CUgraphExecUpdateResultInfo *ret_info)
{
	struct ckt_reply reply;
	struct ckt_graph_exec_update_res res;
	CKT_ROUTE_CONTEXT(exec->object.context);
	CUresult result = ckt_client_graph_send(graph, graph->object.id);
	if (!result)
		result = CKT_WAITED(graph_exec_update, GRAPH_EXEC_UPDATE, CKT_CALL_F_NUMBERED,
			&reply, .exec = exec->object.id, .graph = graph->object.id);
	if (result)
		return result;
	if (ckt_graph_exec_update_res_get(&reply.results, &res)) {
		result = (CUresult)res.result;
		ret_info->result = (CUgraphExecUpdateResult)res.status;
		ret_info->errorNode = (CUgraphNode)(uintptr_t)res.error_node;
		ret_info->errorFromNode = (CUgraphNode)(uintptr_t)res.error_from;
	} else {
		result = CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	return result;
}

/* ---- Launch */

CUresult ckt_exec_upload(struct ckt_exec *exec, uint64_t stream)
{
	if (ckt_conn_count > 1 &&
		ckt_client_context_conn(exec->object.context) !=
			ckt_client_object_conn(stream, CKT_KIND_STREAM))
		return ckt_client_graph_between();
	CKT_ROUTE_CONTEXT(exec->object.context);
	return CKT_BATCHED(graph_upload, GRAPH_UPLOAD, .exec = exec->object.id, .stream = stream);
}

CUresult ckt_exec_launch(struct ckt_exec *exec, uint64_t stream)
{
	const struct ckt_client_exec *e = own(exec);
	CUresult result = CUDA_SUCCESS;
	if (__builtin_expect(ckt_conn_count > 1, 0) &&
		ckt_client_context_conn(exec->object.context) !=
			ckt_client_object_conn(stream, CKT_KIND_STREAM))
		return ckt_client_graph_between();
	CKT_ROUTE_CONTEXT(exec->object.context);
	if (__builtin_expect(!e->has_host_memory && !e->host_nodes, 1)) {
		result = ckt_managed_before_launch();
		return result ? result
			      : CKT_BATCHED(graph_launch, GRAPH_LAUNCH, .exec = exec->object.id,
					.stream = stream);
	}
	if (e->has_host_memory) {
		ckt_host_settle();
		result = ckt_client_exec_send_memory(exec, stream);
	}
	/* After the transfer above, because this call closes the memory that the transfer reads. */
	if (!result)
		result = ckt_managed_before_launch();
	if (!result)
		result = ckt_client_host_expect(e->host_nodes);
	if (!result)
		result = CKT_BATCHED(
			graph_launch, GRAPH_LAUNCH, .exec = exec->object.id, .stream = stream);
	return result || !e->has_host_memory ? result : ckt_client_exec_fetch_memory(exec, stream);
}

/* ---- Memory of graphs: the worker frees it after the work that is queued now */

CUresult ckt_cudacommon_graph_memory(
	CUdevice device, size_t size, uint64_t *ret_address, uint64_t *ret_granted)
{
	struct ckt_reply reply;
	struct ckt_graph_mem_alloc_res res;
	CUresult result = ckt_range_room();
	if (!result)
		result = CKT_WAITED(graph_mem_alloc, GRAPH_MEM_ALLOC, CKT_CALL_F_NUMBERED, &reply,
			.device = ckt_call_device((unsigned)device), .size = size);
	if (result)
		return result;
	result = ckt_graph_mem_alloc_res_get(&reply.results, &res) ? CUDA_SUCCESS
								   : CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	if (result)
		return result;
	ckt_range_add(&(struct ckt_client_range){.base = res.address,
		.size = size,
		.kind = CKT_RANGE_DEVICE,
		.context = ckt_call_context,
		.device = device});
	*ret_address = res.address;
	*ret_granted = res.granted;
	return CUDA_SUCCESS;
}

void ckt_cudacommon_graph_memory_free(uint64_t address, uint64_t context)
{
	uint64_t saved = ckt_call_context;
	ckt_range_remove(address, CKT_RANGE_DEVICE, NULL);
	ckt_client_context_use(context);
	CKT_BATCHED(graph_mem_free, GRAPH_MEM_FREE, .address = address);
	ckt_client_context_use(saved);
}

/* The worker's driver prints the graph.  The client sends a description and receives the text. */
CKT_EXPORT CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags)
{
	ckt_graph_enter();
	const struct ckt_graph *graph = ckt_graph_find(handle);
	CUresult result = graph && path ? ckt_client_graph_send(graph, graph->object.id)
					: CUDA_ERROR_INVALID_VALUE;
	ckt_graph_leave(CUDA_SUCCESS);
	if (result)
		return result;
	struct ckt_reply reply;
	struct ckt_graph_dot_res res;
	result = CKT_WAITED(graph_dot, GRAPH_DOT, CKT_CALL_F_NUMBERED, &reply,
		.graph = graph->object.id, .flags = flags);
	if (result)
		return result;
	FILE *file = ckt_graph_dot_res_get(&reply.results, &res) ? fopen(path, "we") : NULL;
	if (!file || fwrite(res.text, 1, res.text_len, file) != res.text_len)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (file && fclose(file))
		result = CUDA_ERROR_OPERATING_SYSTEM;
	ckt_call_reply_release(&reply);
	return result;
}
