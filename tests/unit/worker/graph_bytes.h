/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of descriptions of graphs, for tests of the worker: nodes one behind the other, each
 * depending on the one before.
 */
#pragma once

#include <cuda.h>

#include "rpc/graph.h"
#include "rpc/handle.h"
#include "rpc/wire.h"

struct description {
	uint8_t bytes[8192], *p;
	uint32_t count;
	uint32_t first_edge; /* what the first edge carries: 0 for an ordinary one */
};

static inline void graph_begin(struct description *d)
{
	d->p = d->bytes + 4;
	d->count = d->first_edge = 0;
}

static inline void graph_node(
	struct description *d, uint64_t id, uint32_t type, const uint8_t *record, uint32_t size)
{
	d->p = ckt_put_u64(ckt_put_u32(ckt_put_u64(d->p, id), type), ckt_handle_primary(0));
	d->p = ckt_put_opaque(d->p, record, size);
	d->count++;
}

static inline uint32_t graph_end(struct description *d)
{
	ckt_put_u32(d->bytes, d->count);
	d->p = ckt_put_u32(d->p, d->count ? d->count - 1 : 0);
	for (uint32_t i = 1; i < d->count; i++)
		d->p = ckt_put_u32(
			ckt_put_u32(ckt_put_u32(d->p, i - 1), i), i == 1 ? d->first_edge : 0);
	return (uint32_t)(d->p - d->bytes);
}

struct graph_side {
	uint32_t type;
	uint64_t address, x, y, z, pitch, height;
};

static inline uint8_t *graph_put_side(uint8_t *p, struct graph_side s)
{
	p = ckt_put_u64(ckt_put_u32(p, s.type), s.address);
	p = ckt_put_u64(ckt_put_u64(ckt_put_u64(p, s.x), s.y), s.z);
	return ckt_put_u64(ckt_put_u64(p, s.pitch), s.height);
}

static inline void graph_copy(struct description *d, uint64_t id, struct graph_side src,
	struct graph_side dst, uint64_t width, uint64_t height)
{
	uint8_t record[256], *p = graph_put_side(graph_put_side(record, src), dst);
	p = ckt_put_u64(ckt_put_u64(ckt_put_u64(p, width), height), 1);
	graph_node(d, id, CU_GRAPH_NODE_TYPE_MEMCPY, record, (uint32_t)(p - record));
}

static inline void graph_fill(struct description *d, uint64_t id, uint64_t dst, uint32_t value,
	uint32_t element, uint64_t width)
{
	uint8_t record[64], *p = ckt_put_u64(ckt_put_u64(record, dst), 0);
	p = ckt_put_u64(ckt_put_u64(ckt_put_u32(ckt_put_u32(p, value), element), width), 1);
	graph_node(d, id, CU_GRAPH_NODE_TYPE_MEMSET, record, (uint32_t)(p - record));
}

static inline void graph_library(struct description *d, uint64_t id, uint64_t call)
{
	uint8_t record[8];
	ckt_put_u64(record, call);
	graph_node(d, id, CKT_GRAPH_NODE_LIBRARY, record, sizeof record);
}
