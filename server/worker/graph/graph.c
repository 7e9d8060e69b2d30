/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: descriptions arrive in pieces under the id of the client's graph, and the worker makes an
 * executable graph from one.  The worker has buffers for the client's memory that nodes touch
 * (graph_memory.c): their bytes are copied before and after a launch, in stream order.
 */
#include "server/worker/graph/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/graph.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph_record.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/long_call.h"
#include "server/worker/worker.h"

/* ---- Objects */

CUresult ckt_worker_graph_data_make(
	struct ckt_worker *worker, uint64_t id, uint64_t total, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	if (total > CKT_GRAPH_BYTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_objects_add(&worker->objects, id, CKT_KIND_GRAPH, false, &object);
	if (result)
		return result;
	bool charged = ckt_budget_charge(total, "graphs");
	struct ckt_worker_graph_data *data = charged ? calloc(1, sizeof *data) : NULL;
	if (data)
		data->data = malloc(total + 1);
	if (!data || !data->data) {
		if (charged)
			ckt_budget_uncharge(total);
		free(data);
		ckt_objects_remove(&worker->objects, object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	data->total = total;
	object->real = data;
	object->context = 0;
	*ret_object = object;
	return CUDA_SUCCESS;
}

void ckt_worker_graph_object_fini(struct ckt_worker *worker, struct ckt_object *object)
{
	if (ckt_handle_kind(object->id) == CKT_KIND_GRAPH) {
		struct ckt_worker_graph_data *data = object->real;
		if (data) {
			ckt_budget_uncharge(data->total);
			free(data->data);
		}
		free(data);
		object->real = NULL;
		return;
	}
	struct ckt_worker_graph_exec *exec = object->real;
	object->real = NULL;
	if (exec)
		ckt_worker_graph_exec_drop(worker, exec);
}

static CUresult decode(const uint8_t *data, size_t size, struct ckt_worker_graph **ret_graph)
{
	*ret_graph = ckt_worker_graph_decode(data, size);
	return *ret_graph         ? CUDA_SUCCESS
		: errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
				  : CUDA_ERROR_INVALID_VALUE;
}

/* Takes the complete description out of its object and destroys the object. */
static CUresult take_data(
	struct ckt_worker *worker, uint64_t id, struct ckt_worker_graph **ret_graph)
{
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_GRAPH);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_worker_graph_data *data = object->real;
	CUresult result = data->received == data->total ? decode(data->data, data->total, ret_graph)
							: CUDA_ERROR_INVALID_VALUE;
	ckt_worker_graph_object_fini(worker, object);
	ckt_objects_remove(&worker->objects, object);
	return result;
}

/* The instantiation of one graph. */
struct making {
	struct ckt_long_call_job job;
	struct ckt_wcall *call; /* NULL in a restore */
	uint64_t id, context;
	struct ckt_worker_graph_exec *exec; /* not entered yet */
	CUDA_GRAPH_INSTANTIATE_PARAMS params;
	CUresult result;
};

static CUresult count_node(struct ckt_worker_graph_node *node, void *data)
{
	struct ckt_worker_graph_exec *exec = data;
	/* On an H200, 20000 kernel nodes take 44 MiB. */
	enum { NODE_DEVICE_BYTES = 2304 };
	uint64_t call, nodes = node->graph_count ? 0 : 1;
	CUgraph graph;
	if (node->type == CKT_GRAPH_NODE_LIBRARY && ckt_worker_graph_event_get(node, &call)) {
		const struct ckt_lib_call *captured =
			ckt_worker_lib_call_find(&ckt_worker, call, &graph);
		nodes = captured ? captured->node_count : 0;
	}
	exec->device_bytes += nodes * NODE_DEVICE_BYTES;
	return CUDA_SUCCESS;
}

static CUresult charge_device(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec)
{
	exec->device = worker->current ? worker->current->ctx.device : 0;
	ckt_worker_graph_each(exec->graph, count_node, exec);
	CUresult result =
		ckt_memory_charge(&worker->devices[exec->device].memory, exec->device_bytes);
	if (result)
		exec->device_bytes = 0;
	return result;
}

static CUresult note_host_node(struct ckt_worker_graph_node *node, void *data)
{
	struct ckt_worker_graph_exec *exec = data;
	exec->has_host_nodes |= node->type == CU_GRAPH_NODE_TYPE_HOST;
	return CUDA_SUCCESS;
}

/* Precondition: the context is current.  Takes over the graph; making_end comes next. */
static CUresult making_begin(
	struct ckt_worker *worker, struct making *m, struct ckt_worker_graph *graph)
{
	m->exec = calloc(1, sizeof *m->exec);
	if (!m->exec) {
		ckt_worker_graph_free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->exec->graph = graph;
	if (!ckt_worker_graph_charge(graph) || charge_device(worker, m->exec))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->exec->flags = m->params.flags;
	ckt_worker_graph_each(graph, note_host_node, m->exec);
	struct ckt_worker_graph_build build = {.worker = worker,
		.segments = &m->exec->segments,
		.conditions = &m->exec->conditions,
		.exec = m->id};
	CUresult result = ckt_worker_graph_segments_cover(&m->exec->segments, graph);
	return result ? result : ckt_worker_graph_make(&build, graph);
}

static void making_run(struct ckt_long_call_job *job)
{
	struct making *m = (struct making *)job;
	m->result = ckt_driver.cuGraphInstantiateWithParams(
		&m->exec->real, m->exec->graph->real, &m->params);
}

/* Makes the object if everything succeeded; otherwise nothing remains. */
static CUresult making_end(
	struct ckt_worker *worker, const struct making *m, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	CUresult result = m->result
		? m->result
		: ckt_objects_add(&worker->objects, m->id, CKT_KIND_GRAPH_EXEC, false, &object);
	if (!result) {
		object->context = m->context;
		object->real = m->exec;
		*ret_object = object;
	} else if (m->exec) {
		ckt_worker_graph_exec_drop(worker, m->exec);
	}
	return result;
}

CUresult ckt_worker_graph_exec_make(struct ckt_worker *worker, uint64_t id, uint64_t context,
	uint64_t flags, const uint8_t *data, size_t size, struct ckt_object **ret_object)
{
	struct ckt_worker_graph *graph;
	CUresult result = decode(data, size, &graph);
	/* Only the first instantiation uploads at once. */
	struct making m = {.id = id,
		.context = context,
		.params = {.flags = flags & ~(uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD}};
	if (result)
		return result;
	m.result = making_begin(worker, &m, graph);
	if (!m.result)
		making_run(&m.job);
	return making_end(worker, &m, ret_object);
}

static struct ckt_worker_graph_exec *find_exec(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, id, CKT_KIND_GRAPH_EXEC);
	return object ? object->real : NULL;
}

/* ---- Instantiation and changes */

int ckt_worker_graph_data(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_data_args args;
	if (!ckt_graph_data_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, args.graph, CKT_KIND_GRAPH);
	if (object && args.offset == 0) {
		/* An earlier description was never used. */
		ckt_worker_graph_object_fini(worker, object);
		ckt_objects_remove(&worker->objects, object);
		object = NULL;
	}
	CUresult result = object
		? CUDA_SUCCESS
		: ckt_worker_graph_data_make(worker, args.graph, args.total, &object);
	if (result)
		return result;
	struct ckt_worker_graph_data *data = object->real;
	if (data->total != args.total || data->received != args.offset ||
		args.data_len > data->total - data->received)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data->data + data->received, args.data, args.data_len);
	data->received += args.data_len;
	return CUDA_SUCCESS;
}

/* The client's id of the driver's node; 0 if there is none. */
static uint64_t id_of(const struct ckt_worker_graph *graph, CUgraphNode real)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		if (real && graph->nodes[i].real == real)
			return graph->nodes[i].id;
		for (uint32_t k = 0; k < graph->nodes[i].graph_count; k++) {
			uint64_t inner = id_of(graph->nodes[i].graphs[k], real);
			if (inner)
				return inner;
		}
	}
	return 0;
}

static void making_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct making *m = (struct making *)job;
	struct ckt_object *object;
	/* If the driver rejects the graph, the reply carries the reason. */
	struct ckt_graph_instantiate_res res = {.status = making_end(worker, m, &object)};
	ckt_graph_instantiate_res_put(
		ckt_wcall_results(m->call, ckt_graph_instantiate_res_size(&res)), &res);
	ckt_wcall_finish(m->call, CUDA_SUCCESS);
	free(m);
}

int ckt_worker_graph_instantiate(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_instantiate_args args;
	if (!ckt_graph_instantiate_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	ckt_worker_graph_life_poll(worker);
	struct ckt_worker_graph *graph;
	CUresult result = take_data(worker, args.graph, &graph);
	if (result)
		return result;
	struct making *m = calloc(1, sizeof *m);
	result = !m               ? CUDA_ERROR_OUT_OF_MEMORY
		: worker->current ? CUDA_SUCCESS
				  : CUDA_ERROR_INVALID_CONTEXT;
	if (!result)
		*m = (struct making){.job = {.run = making_run, .finish = making_finish},
			.call = call,
			.id = args.exec,
			.context = worker->current->id,
			.params = {.flags = args.flags}};
	if (!result && args.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		result = ckt_object_stream(worker, args.upload_stream, &m->params.hUploadStream);
	if (result) {
		ckt_worker_graph_free(graph);
		free(m);
		return result;
	}
	m->result = making_begin(worker, m, graph);
	if (m->result)
		making_finish(worker, &m->job);
	else
		ckt_long_call_submit(worker, &m->job);
	return CKT_WCALL_LATER;
}

/* Pairs the nodes of an update with the nodes that they replace. */
static void pair(struct ckt_worker_graph *update, struct ckt_worker_graph *graph)
{
	for (uint32_t i = 0; i < update->node_count && i < graph->node_count; i++) {
		update->nodes[i].updates = &graph->nodes[i];
		for (uint32_t k = 0;
			k < update->nodes[i].graph_count && k < graph->nodes[i].graph_count; k++)
			pair(update->nodes[i].graphs[k], graph->nodes[i].graphs[k]);
	}
}

/* Takes over the records of an update that the driver accepted; the nodes keep their ids. */
static void adopt(struct ckt_worker_graph *update, struct ckt_worker_graph *graph)
{
	for (uint32_t i = 0; i < update->node_count && i < graph->node_count; i++) {
		struct ckt_worker_graph_node *from = &update->nodes[i], *to = &graph->nodes[i];
		for (uint32_t k = 0; k < from->graph_count && k < to->graph_count; k++)
			adopt(from->graphs[k], to->graphs[k]);
		free(to->record);
		to->record = from->record;
		to->record_bytes = from->record_bytes;
		to->context = from->context;
		from->record = NULL;
		from->record_bytes = 0;
	}
}

int ckt_worker_graph_exec_update(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_exec_update_args args;
	if (!ckt_graph_exec_update_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph *update = NULL;
	struct ckt_worker_graph_exec *exec = find_exec(worker, args.exec);
	CUresult taken = take_data(worker, args.graph, &update);
	if (taken || !exec) {
		ckt_worker_graph_free(update);
		return taken ? taken : CUDA_ERROR_INVALID_VALUE;
	}
	struct ckt_worker_graph_conditions conditions = {0};
	struct ckt_worker_graph_build build = {.worker = worker,
		.segments = &exec->segments,
		.conditions = &conditions,
		.exec = args.exec};
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	pair(update, exec->graph);
	CUresult result = ckt_worker_graph_segments_cover(&exec->segments, update);
	if (!result)
		result = ckt_worker_graph_make(&build, update);
	if (!result)
		result = ckt_driver.cuGraphExecUpdate_v2(exec->real, update->real, &info);
	struct ckt_graph_exec_update_res res = {.result = result,
		.status = info.result,
		.error_node = id_of(update, info.errorNode),
		.error_from = id_of(update, info.errorFromNode)};
	if (result)
		ckt_printed_send(worker);
	else
		adopt(update, exec->graph);
	if (!result)
		result = ckt_worker_graph_conditions_take(&exec->conditions, &conditions);
	ckt_worker_graph_conditions_fini(&conditions);
	ckt_worker_graph_free(update);
	ckt_graph_exec_update_res_put(
		ckt_wcall_results(call, ckt_graph_exec_update_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_graph_exec_set_node(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_exec_set_node_args args;
	struct ckt_worker_graph_node update;
	if (!ckt_graph_exec_set_node_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_cursor c = {.p = args.node, .end = args.node + args.node_len};
	if (!ckt_worker_graph_node_decode(&c, 0, &update))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_worker_graph_exec *exec = find_exec(worker, args.exec);
	struct ckt_worker_graph_node *node =
		exec ? ckt_worker_graph_find(exec->graph, update.id) : NULL;
	if (!node || node->type != update.type) {
		ckt_worker_graph_node_fini(&update);
		return CUDA_ERROR_INVALID_VALUE;
	}
	struct ckt_worker_graph_build build = {.worker = worker,
		.segments = &exec->segments,
		.conditions = &exec->conditions,
		.exec = args.exec};
	struct ckt_worker_graph single = {.nodes = &update, .node_count = 1};
	struct ckt_worker_graph target = {.nodes = node, .node_count = 1};
	pair(&single, &target);
	update.real = node->real;
	CUresult result = ckt_worker_graph_segments_cover(&exec->segments, &single);
	if (!result)
		result = ckt_worker_graph_node_apply(&build, exec->real, &update);
	if (!result) {
		adopt(&single, &target);
		ckt_worker_graph_charge(exec->graph);
	}
	ckt_worker_graph_node_fini(&update);
	return result;
}

int ckt_worker_graph_exec_set_enabled(struct ckt_wcall *call)
{
	struct ckt_graph_exec_set_enabled_args args;
	if (!ckt_graph_exec_set_enabled_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(call->worker, args.exec);
	struct ckt_worker_graph_node *node =
		exec ? ckt_worker_graph_find(exec->graph, args.node) : NULL;
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_driver.cuGraphNodeSetEnabled(exec->real, node->real, args.enabled);
	if (!result)
		node->disabled = !args.enabled;
	return result;
}

int ckt_worker_graph_exec_destroy(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_exec_destroy_args args;
	if (!ckt_graph_exec_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, args.exec, CKT_KIND_GRAPH_EXEC);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	ckt_object_destroy(worker, object);
	return CUDA_SUCCESS;
}

int ckt_worker_graph_dot(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_dot_args args;
	if (!ckt_graph_dot_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph *graph;
	CUresult result = take_data(worker, args.graph, &graph);
	if (result)
		return result;
	struct ckt_worker_graph_exec *drawn = calloc(1, sizeof *drawn);
	if (!drawn) {
		ckt_worker_graph_free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	drawn->graph = graph;
	struct ckt_worker_graph_build build = {
		.worker = worker, .segments = &drawn->segments, .conditions = &drawn->conditions};
	char path[32], *text = NULL;
	int fd = memfd_create("graph", MFD_CLOEXEC);
	result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM
			: ckt_worker_graph_segments_cover(&drawn->segments, graph);
	if (!result)
		result = ckt_worker_graph_make(&build, graph);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (!result)
		result = ckt_driver.cuGraphDebugDotPrint
			? ckt_driver.cuGraphDebugDotPrint(graph->real, path, args.flags)
			: CKT_WORKER_UNSUPPORTED("cuGraphDebugDotPrint with the server's driver");
	off_t size = result ? 0 : lseek(fd, 0, SEEK_END);
	if (!result &&
		(size < 0 || size > CKT_GRAPH_DOT_RES_TEXT_MAX ||
			!(text = malloc((size_t)size + 1)) ||
			pread(fd, text, (size_t)size, 0) != size))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		struct ckt_graph_dot_res res = {.text = text, .text_len = (uint32_t)size};
		ckt_graph_dot_res_put(ckt_wcall_results(call, ckt_graph_dot_res_size(&res)), &res);
	}
	free(text);
	if (fd >= 0)
		close(fd);
	ckt_worker_graph_exec_drop(worker, drawn);
	return result;
}

/* ---- Launch */

static CUresult note_event(struct ckt_worker_graph_node *node, void *data)
{
	struct ckt_worker *worker = data;
	uint64_t id;
	struct ckt_object *event;
	if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
		ckt_worker_graph_event_get(node, &id) &&
		(event = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_EVENT))) {
		event->event.recorded = true;
		event->event.from_image = false;
	}
	return CUDA_SUCCESS;
}

int ckt_worker_graph_launch(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_launch_args args;
	CUstream stream;
	if (!ckt_graph_launch_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(worker, args.exec);
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	CUevent event;
	CUresult result = ckt_object_stream(worker, args.stream, &stream);
	if (!result)
		result = ckt_worker_graph_use_begin(worker, exec, args.stream, &event);
	if (!result)
		result = ckt_driver.cuGraphLaunch(exec->real, stream);
	if (result)
		return result;
	ckt_worker_graph_each(exec->graph, note_event, worker);
	ckt_worker_graph_life_poll(worker);
	return ckt_worker_graph_use_end(exec, event, stream);
}

int ckt_worker_graph_upload(struct ckt_wcall *call)
{
	struct ckt_graph_upload_args args;
	CUstream stream;
	if (!ckt_graph_upload_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(call->worker, args.exec);
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	return result ? result : ckt_driver.cuGraphUpload(exec->real, stream);
}
