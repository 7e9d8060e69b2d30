/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs in a checkpoint image: their descriptions, from which a restore makes them again; see
 * graph_image.h.
 */
#include "server/worker/graph/graph_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

static CUresult save_disabled(struct ckt_worker_graph_node *node, void *data)
{
	ckt_image_graph *saved = data;
	if (!node->disabled)
		return CUDA_SUCCESS;
	u_quad_t *larger = reallocarray(
		saved->disabled.disabled_val, saved->disabled.disabled_len + 1, sizeof *larger);
	if (!larger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	saved->disabled.disabled_val = larger;
	saved->disabled.disabled_val[saved->disabled.disabled_len++] = node->id;
	return CUDA_SUCCESS;
}

int ckt_worker_graph_save(const struct ckt_object *object, ckt_image_graph *saved)
{
	*saved = (ckt_image_graph){.id = object->id, .context = object->context};
	size_t size;
	const struct ckt_worker_graph_data *data = object->real;
	const struct ckt_worker_graph_exec *exec = object->real;
	bool is_exec = ckt_handle_kind(object->id) == CKT_KIND_GRAPH_EXEC;
	if (is_exec) {
		saved->flags = exec->flags;
		saved->total = size = ckt_worker_graph_encoded_size(exec->graph);
		if (ckt_worker_graph_each(exec->graph, save_disabled, saved))
			return -ENOMEM;
	} else {
		saved->total = data->total;
		size = data->received;
	}
	saved->data.data_val = malloc(size + 1);
	if (!saved->data.data_val)
		return -ENOMEM;
	saved->data.data_len = (u_int)size;
	if (is_exec)
		ckt_worker_graph_encode((uint8_t *)saved->data.data_val, exec->graph);
	else
		memcpy(saved->data.data_val, data->data, size);
	return 0;
}

CUresult ckt_worker_graph_load(struct ckt_worker *worker, const ckt_image_graph *saved)
{
	struct ckt_object *object;
	if (ckt_handle_kind(saved->id) == CKT_KIND_GRAPH) {
		CUresult result = saved->data.data_len <= saved->total
			? ckt_worker_graph_data_make(worker, saved->id, saved->total, &object)
			: CUDA_ERROR_INVALID_VALUE;
		if (result)
			return result;
		struct ckt_worker_graph_data *data = object->real;
		memcpy(data->data, saved->data.data_val, saved->data.data_len);
		data->received = saved->data.data_len;
		return CUDA_SUCCESS;
	}
	CUresult result = ckt_worker_graph_exec_make(worker, saved->id, saved->context,
		saved->flags, (const uint8_t *)saved->data.data_val, saved->data.data_len, &object);
	for (u_int i = 0; i < saved->disabled.disabled_len && !result; i++) {
		struct ckt_worker_graph_exec *exec = object->real;
		struct ckt_worker_graph_node *node =
			ckt_worker_graph_find(exec->graph, saved->disabled.disabled_val[i]);
		if (!node)
			return CUDA_ERROR_INVALID_VALUE;
		node->disabled = true;
		result = ckt_driver.cuGraphNodeSetEnabled(exec->real, node->real, 0);
	}
	return result;
}

/* ---- The program's memory that a graph touches */

enum { PIECE_BYTES = 64 << 10 };

static bool is_zero(const uint8_t *data, size_t size)
{
	return !data[0] && !memcmp(data, data + 1, size - 1);
}

static int save_piece(
	ckt_image *image, uint64_t exec, uint64_t address, const uint8_t *data, size_t size)
{
	ckt_image_graph_bytes *larger = reallocarray(image->graph_bytes.graph_bytes_val,
		image->graph_bytes.graph_bytes_len + 1, sizeof *larger);
	if (!larger)
		return -ENOMEM;
	image->graph_bytes.graph_bytes_val = larger;
	ckt_image_graph_bytes *saved = &larger[image->graph_bytes.graph_bytes_len];
	*saved = (ckt_image_graph_bytes){.exec = exec, .address = address};
	saved->data.data_val = malloc(size);
	if (!saved->data.data_val)
		return -ENOMEM;
	saved->data.data_len = (u_int)size;
	memcpy(saved->data.data_val, data, size);
	image->graph_bytes.graph_bytes_len++;
	return 0;
}

int ckt_worker_graph_save_bytes(const struct ckt_object *object, ckt_image *image)
{
	if (ckt_handle_kind(object->id) != CKT_KIND_GRAPH_EXEC)
		return 0;
	const struct ckt_worker_graph_exec *exec = object->real;
	for (size_t i = 0; i < exec->segments.count; i++) {
		const struct ckt_worker_graph_segment *s = &exec->segments.list[i];
		for (uint64_t at = 0; at < s->size; at += PIECE_BYTES) {
			size_t size = s->size - at < PIECE_BYTES ? s->size - at : PIECE_BYTES;
			if (!is_zero(s->data + at, size) &&
				save_piece(image, object->id, s->address + at, s->data + at, size))
				return -ENOMEM;
		}
	}
	return 0;
}

CUresult ckt_worker_graph_load_bytes(struct ckt_worker *worker, const ckt_image_graph_bytes *saved)
{
	const struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, saved->exec, CKT_KIND_GRAPH_EXEC);
	const struct ckt_worker_graph_exec *exec = object ? object->real : NULL;
	uint64_t end;
	if (!exec || __builtin_add_overflow(saved->address, saved->data.data_len, &end))
		return CUDA_ERROR_INVALID_VALUE;
	/* Earlier parameters may have had more of it, in other segments. */
	for (size_t i = 0; i < exec->segments.count; i++) {
		const struct ckt_worker_graph_segment *s = &exec->segments.list[i];
		uint64_t from = saved->address > s->address ? saved->address : s->address;
		uint64_t to = end < s->address + s->size ? end : s->address + s->size;
		if (from < to)
			memcpy(s->data + (from - s->address),
				saved->data.data_val + (from - saved->address), to - from);
	}
	return CUDA_SUCCESS;
}

/* ---- The table of operations */

static int prepare(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	(void)objects;
	s->image.graphs.graphs_val = ckt_save_list(s, count, sizeof(ckt_image_graph));
	return 0;
}

static int save(struct ckt_saving *s, struct ckt_object *object)
{
	ckt_image_graph *saved = &s->image.graphs.graphs_val[s->image.graphs.graphs_len++];
	s->no_memory |= ckt_worker_graph_save(object, saved) != 0 ||
		ckt_worker_graph_save_bytes(object, &s->image) != 0;
	return ckt_save_has_memory(s);
}

static int load_bytes(struct ckt_loading *l)
{
	for (u_int i = 0; i < l->image.graph_bytes.graph_bytes_len; i++) {
		const ckt_image_graph_bytes *saved = &l->image.graph_bytes.graph_bytes_val[i];
		CUresult result = ckt_worker_graph_load_bytes(l->worker, saved);
		if (result)
			return ckt_load_fail(l, result, "host memory of graph", saved->exec);
	}
	return 0;
}

static int load(struct ckt_loading *l, unsigned i)
{
	const ckt_image_graph *saved = &l->image.graphs.graphs_val[i];
	CUresult result =
		saved->context ? ckt_worker_use_context(l->worker, saved->context) : CUDA_SUCCESS;
	if (!result)
		result = ckt_worker_graph_load(l->worker, saved);
	/* All graphs are there. */
	if (!result && i + 1 == l->image.graphs.graphs_len)
		return load_bytes(l);
	return result ? ckt_load_fail(l, result, "graph", saved->id) : 0;
}

const struct ckt_object_kind ckt_graph_kind = {
	.name = "graphs",
	.handles = CKT_HANDLES(GRAPH) | CKT_HANDLES(GRAPH_EXEC),
	.prepare = prepare,
	.save = save,
	.stage = CKT_LOAD_REST,
	.list = CKT_IMAGE_LIST(graphs),
	.load = load,
};
