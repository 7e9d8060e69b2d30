/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of nodes, decoded; see rpc/graph.h.  Every function returns false if the bytes are not
 * such a record.
 */
#pragma once

#include "server/worker/graph/graph.h"

struct ckt_worker_graph_side {
	uint32_t type; /* CUmemorytype */
	uint64_t address, x, y, z, pitch, height;
};

struct ckt_worker_graph_copy {
	struct ckt_worker_graph_side src, dst;
	uint64_t width, height, depth;
};

struct ckt_worker_graph_kernel {
	uint64_t function;
	uint32_t grid[3], block[3], shared_bytes;
	const uint8_t *attributes, *params;
	uint32_t attributes_bytes, params_bytes;
};

struct ckt_worker_graph_fill {
	uint64_t dst, pitch;
	uint32_t value, element_size;
	uint64_t width, height;
};

/* The part of a conditional node before its bodies. */
struct ckt_worker_graph_conditional {
	uint64_t handle, context;
	uint32_t value, flags, up, type, count;
};

bool ckt_worker_graph_copy_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_copy *ret);
/* The bytes from the first to the last that the copy touches on that side. */
bool ckt_worker_graph_side_span(const struct ckt_worker_graph_copy *copy,
	const struct ckt_worker_graph_side *side, uint64_t *ret_begin, uint64_t *ret_size);
bool ckt_worker_graph_kernel_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_kernel *ret);
bool ckt_worker_graph_fill_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_fill *ret);
bool ckt_worker_graph_event_get(const struct ckt_worker_graph_node *node, uint64_t *ret_event);
bool ckt_worker_graph_conditional_get(
	const struct ckt_worker_graph_node *node, struct ckt_worker_graph_conditional *ret);
