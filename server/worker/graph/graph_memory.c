/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers in the worker that replace the client's memory in the copies of graphs: one for each
 * range that nodes touch.  Overlapping ranges share one buffer, so that one node reads what another
 * wrote.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "server/worker/session/host_budget.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/graph/graph_record.h"

struct spans {
	struct ckt_worker_graph_segment *list;
	size_t count;
};

static CUresult collect(struct ckt_worker_graph_node *node, void *data)
{
	struct spans *spans = data;
	struct ckt_worker_graph_copy copy;
	if (node->type != CU_GRAPH_NODE_TYPE_MEMCPY)
		return CUDA_SUCCESS;
	if (!ckt_worker_graph_copy_get(node, &copy))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < 2; i++) {
		const struct ckt_worker_graph_side *side = i ? &copy.dst : &copy.src;
		uint64_t begin, size;
		if (side->type != CU_MEMORYTYPE_HOST)
			continue;
		if (!ckt_worker_graph_side_span(&copy, side, &begin, &size))
			return CUDA_ERROR_INVALID_VALUE;
		if (!size)
			continue;
		struct ckt_worker_graph_segment *list =
			realloc(spans->list, (spans->count + 1) * sizeof *list);
		if (!list)
			return CUDA_ERROR_OUT_OF_MEMORY;
		spans->list = list;
		list[spans->count++] =
			(struct ckt_worker_graph_segment){.address = begin, .size = size};
	}
	return CUDA_SUCCESS;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct ckt_worker_graph_segment *)a)->address,
		 y = ((const struct ckt_worker_graph_segment *)b)->address;
	return x < y ? -1 : x > y;
}

static CUresult add(struct ckt_worker_graph_segments *segments, uint64_t address, uint64_t size)
{
	/*
	 * Keep the client's offset within the page, so that the driver's copies keep their
	 * alignment.
	 */
	uint64_t offset = address & 4095, room = (offset + size + 4095) & ~4095ull;
	struct ckt_worker_graph_segment *list =
		realloc(segments->list, (segments->count + 1) * sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	segments->list = list;
	bool charged = room >= size && ckt_budget_charge(room, "buffers of graphs");
	uint8_t *data = !charged
		? MAP_FAILED
		: mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED) {
		if (charged)
			ckt_budget_uncharge(room);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct ckt_worker_graph_segment *segment = &list[segments->count++];
	*segment = (struct ckt_worker_graph_segment){
		.address = address, .size = size, .data = data + offset};
	/* Without registration the copies are slower but still correct. */
	segment->registered = ckt_driver.cuMemHostRegister_v2 &&
		ckt_driver.cuMemHostRegister_v2(data, room, CU_MEMHOSTREGISTER_PORTABLE) ==
			CUDA_SUCCESS;
	return CUDA_SUCCESS;
}

CUresult ckt_worker_graph_segments_cover(
	struct ckt_worker_graph_segments *segments, struct ckt_worker_graph *graph)
{
	struct spans spans = {0};
	CUresult result = ckt_worker_graph_each(graph, collect, &spans);
	if (spans.count)
		qsort(spans.list, spans.count, sizeof *spans.list, by_address);
	for (size_t i = 0; i < spans.count && !result;) {
		uint64_t begin = spans.list[i].address, end = begin + spans.list[i].size;
		for (i++; i < spans.count && spans.list[i].address < end; i++)
			if (spans.list[i].address + spans.list[i].size > end)
				end = spans.list[i].address + spans.list[i].size;
		if (!ckt_worker_graph_segments_find(segments, begin, end - begin))
			result = add(segments, begin, end - begin);
	}
	free(spans.list);
	return result;
}

uint8_t *ckt_worker_graph_segments_find(
	const struct ckt_worker_graph_segments *segments, uint64_t address, uint64_t size)
{
	/* Search the latest segment first: after a change of parameters it covers all of them. */
	for (size_t i = segments->count; i-- > 0;) {
		const struct ckt_worker_graph_segment *s = &segments->list[i];
		if (address >= s->address && address - s->address <= s->size &&
			s->size - (address - s->address) >= size)
			return s->data + (address - s->address);
	}
	return NULL;
}

void ckt_worker_graph_segments_fini(struct ckt_worker_graph_segments *segments)
{
	for (size_t i = 0; i < segments->count; i++) {
		struct ckt_worker_graph_segment *s = &segments->list[i];
		uint64_t offset = s->address & 4095;
		if (s->registered)
			ckt_driver.cuMemHostUnregister(s->data - offset);
		munmap(s->data - offset, (offset + s->size + 4095) & ~4095ull);
		ckt_budget_uncharge((offset + s->size + 4095) & ~4095ull);
	}
	free(segments->list);
	*segments = (struct ckt_worker_graph_segments){0};
}
