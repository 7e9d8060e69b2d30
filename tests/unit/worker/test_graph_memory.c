/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/graph/graph_memory.c: buffers for the client's memory that graphs touch: one for
 * what overlaps, at the client's offset in a page.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/graphs.h"

enum { H = CU_MEMORYTYPE_HOST, D = CU_MEMORYTYPE_DEVICE };

static struct ckt_worker_graph *decode(struct description *d)
{
	uint32_t size = graph_end(d);
	struct ckt_worker_graph *graph = ckt_worker_graph_decode(d->bytes, size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
	return graph;
}

static void test_cover(void)
{
	struct ckt_worker_graph_segments segments = {0};
	struct description d;
	graph_begin(&d);
	graph_copy(&d, 1, (struct graph_side){H, 0x5000}, (struct graph_side){D, 0x100000}, 100, 1);
	/* overlaps */
	graph_copy(&d, 2, (struct graph_side){D, 0x100000}, (struct graph_side){H, 0x5040}, 100, 1);
	graph_copy(
		&d, 3, (struct graph_side){H, 0x90011}, (struct graph_side){H, 0x123456789}, 10, 1);
	/* only touches */
	graph_copy(&d, 4, (struct graph_side){H, 0x50a4}, (struct graph_side){D, 0x100000}, 4, 1);
	/* the device's */
	graph_copy(
		&d, 5, (struct graph_side){D, 0x777000}, (struct graph_side){D, 0x888000}, 10, 1);
	/* nothing */
	graph_copy(&d, 6, (struct graph_side){H, 0x777000}, (struct graph_side){D, 0x888000}, 0, 1);
	struct ckt_worker_graph *graph = decode(&d);
	IS(ckt_worker_graph_segments_cover(&segments, graph), CUDA_SUCCESS);
	static const struct {
		uint64_t address, size;
		bool found;
	} cases[] = {
		{0x5000, 0xa4, true},
		{0x5000, 0xa5, false},
		{0x4fff, 1, false},
		{0x50a3, 1, true},
		{0x50a4, 4, true},
		{0x50a7, 2, false},
		{0x90011, 10, true},
		{0x90010, 2, false},
		{0x123456789, 10, true},
		{0x777000, 1, false},
		{0, 0, false},
		{UINT64_MAX, 1, false},
		{0x5000, UINT64_MAX, false},
		{0x5001, UINT64_MAX, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t *place =
			ckt_worker_graph_segments_find(&segments, cases[i].address, cases[i].size);
		IS(place != NULL, cases[i].found);
		if (place)
			IS((uintptr_t)place & 4095, cases[i].address & 4095);
	}
	IS(segments.count, 4);
	YES(ckt_worker_graph_segments_find(&segments, 0x5040, 1) ==
		ckt_worker_graph_segments_find(&segments, 0x5000, 1) + 0x40);
	/*
	 * The same again needs nothing new; a wider range gets a buffer of its own, and is found
	 * there.
	 */
	IS(ckt_worker_graph_segments_cover(&segments, graph), CUDA_SUCCESS);
	IS(segments.count, 4);
	ckt_worker_graph_free(graph);
	uint8_t *before = ckt_worker_graph_segments_find(&segments, 0x5000, 4);
	graph_begin(&d);
	graph_copy(
		&d, 1, (struct graph_side){H, 0x5000}, (struct graph_side){D, 0x100000}, 0x2000, 1);
	graph = decode(&d);
	IS(ckt_worker_graph_segments_cover(&segments, graph), CUDA_SUCCESS);
	IS(segments.count, 5);
	YES(ckt_worker_graph_segments_find(&segments, 0x5000, 4) != before);
	memset(ckt_worker_graph_segments_find(&segments, 0x5000, 0x2000), 1, 0x2000);
	ckt_worker_graph_free(graph);
	ckt_worker_graph_segments_fini(&segments);
	IS(segments.count, 0);
	ckt_worker_graph_segments_fini(&segments);
}

static void test_hostile(void)
{
	static const struct {
		struct graph_side side;
		uint64_t width, height;
		CUresult result;
	} cases[] = {
		{{H, UINT64_MAX - 2}, 10, 1, CUDA_ERROR_INVALID_VALUE},
		{{H, 0x5000, .pitch = UINT64_MAX / 2}, 10, 4, CUDA_ERROR_INVALID_VALUE},
		{{H, 0x5000}, (uint64_t)1 << 60, 1, CUDA_ERROR_OUT_OF_MEMORY},
		{{H, 0x5001}, UINT64_MAX - 0x6000, 1, CUDA_ERROR_OUT_OF_MEMORY},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_worker_graph_segments segments = {0};
		struct description d;
		graph_begin(&d);
		graph_copy(&d, 1, cases[i].side, (struct graph_side){D, 0x100000}, cases[i].width,
			cases[i].height);
		struct ckt_worker_graph *graph = decode(&d);
		IS(ckt_worker_graph_segments_cover(&segments, graph), cases[i].result);
		IS(segments.count, 0);
		ckt_worker_graph_free(graph);
		ckt_worker_graph_segments_fini(&segments);
	}
	struct ckt_worker_graph_segments segments = {0};
	struct description d;
	graph_begin(&d);
	graph_node(&d, 1, CU_GRAPH_NODE_TYPE_MEMCPY, (const uint8_t *)"short", 5);
	struct ckt_worker_graph *graph = decode(&d);
	IS(ckt_worker_graph_segments_cover(&segments, graph), CUDA_ERROR_INVALID_VALUE);
	ckt_worker_graph_free(graph);
	ckt_worker_graph_segments_fini(&segments);
}

UNIT_SUITE(graph_memory, {"cover", test_cover}, {"hostile", test_hostile})
