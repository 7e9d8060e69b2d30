/* SPDX-License-Identifier: Apache-2.0 */
/* Records of nodes; see graph_record.h. */
#include "server/worker/graph/graph_record.h"

#include "rpc/graph.h"

static struct ckt_cursor cursor(const struct ckt_worker_graph_node *node)
{
	return (struct ckt_cursor){.p = node->record, .end = node->record + node->record_bytes};
}

static struct ckt_worker_graph_side get_side(struct ckt_cursor *c)
{
	struct ckt_worker_graph_side side = {.type = ckt_get_u32(c)};
	side.address = ckt_get_u64(c);
	side.x = ckt_get_u64(c);
	side.y = ckt_get_u64(c);
	side.z = ckt_get_u64(c);
	side.pitch = ckt_get_u64(c);
	side.height = ckt_get_u64(c);
	return side;
}

bool ckt_worker_graph_copy_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_copy *ret)
{
	struct ckt_cursor c = cursor(node);
	ret->src = get_side(&c);
	ret->dst = get_side(&c);
	ret->width = ckt_get_u64(&c);
	ret->height = ckt_get_u64(&c);
	ret->depth = ckt_get_u64(&c);
	return ckt_cursor_done(&c);
}

bool ckt_worker_graph_side_span(const struct ckt_worker_graph_copy *copy,
	const struct ckt_worker_graph_side *side, uint64_t *ret_begin, uint64_t *ret_size)
{
	uint64_t first, last, slice, rows;
	*ret_begin = side->address;
	*ret_size = 0;
	if (!copy->width || !copy->height || !copy->depth)
		return true;
	uint64_t pitch = side->pitch ? side->pitch : side->x + copy->width,
		 height = side->height ? side->height : side->y + copy->height;
	if (__builtin_mul_overflow(pitch, height, &slice) ||
		__builtin_mul_overflow(slice, side->z, &first) ||
		__builtin_mul_overflow(pitch, side->y, &rows) ||
		__builtin_add_overflow(first, rows, &first) ||
		__builtin_add_overflow(first, side->x, &first) ||
		__builtin_mul_overflow(slice, copy->depth - 1, &last) ||
		__builtin_mul_overflow(pitch, copy->height - 1, &rows) ||
		__builtin_add_overflow(last, rows, &last) ||
		__builtin_add_overflow(last, copy->width, &last) ||
		__builtin_add_overflow(side->address, first, ret_begin) || *ret_begin + last < last)
		return false;
	*ret_size = last;
	return true;
}

bool ckt_worker_graph_kernel_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_kernel *ret)
{
	struct ckt_cursor c = cursor(node);
	ret->function = ckt_get_u64(&c);
	for (int i = 0; i < 3; i++)
		ret->grid[i] = ckt_get_u32(&c);
	for (int i = 0; i < 3; i++)
		ret->block[i] = ckt_get_u32(&c);
	ret->shared_bytes = ckt_get_u32(&c);
	ret->attributes =
		ckt_get_opaque(&c, 64 * (4 + CKT_GRAPH_ATTRIBUTE_BYTES), &ret->attributes_bytes);
	ret->params = ckt_get_opaque(&c, 32768, &ret->params_bytes);
	return ckt_cursor_done(&c) && ret->attributes_bytes % (4 + CKT_GRAPH_ATTRIBUTE_BYTES) == 0;
}

bool ckt_worker_graph_fill_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_fill *ret)
{
	struct ckt_cursor c = cursor(node);
	ret->dst = ckt_get_u64(&c);
	ret->pitch = ckt_get_u64(&c);
	ret->value = ckt_get_u32(&c);
	ret->element_size = ckt_get_u32(&c);
	ret->width = ckt_get_u64(&c);
	ret->height = ckt_get_u64(&c);
	return ckt_cursor_done(&c);
}

bool ckt_worker_graph_event_get(const struct ckt_worker_graph_node *node, uint64_t *ret_event)
{
	struct ckt_cursor c = cursor(node);
	*ret_event = ckt_get_u64(&c);
	return ckt_cursor_done(&c);
}

bool ckt_worker_graph_conditional_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_conditional *ret)
{
	struct ckt_cursor c = cursor(node);
	ret->handle = ckt_get_u64(&c);
	ret->context = ckt_get_u64(&c);
	ret->value = ckt_get_u32(&c);
	ret->flags = ckt_get_u32(&c);
	ret->up = ckt_get_u32(&c);
	ret->type = ckt_get_u32(&c);
	ret->count = ckt_get_u32(&c);
	return ckt_cursor_done(&c) && ret->count == node->graph_count;
}
