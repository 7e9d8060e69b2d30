/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/graph/graph_data.c: the client's bytes of a graph: in before a launch, out after
 * it, at once for host nodes, and nothing outside of its buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/graphs.h"

enum { SIZE = 3000 };
static const uint64_t in = 0x7000012345, out = 0x7000100007;

static uint64_t exec(void)
{
	return ID(GRAPH_EXEC, 11);
}

static void test_launch(void)
{
	struct description d;
	uint8_t data[SIZE];
	uint64_t memory = inside_memory(1 << 20, 0);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 11 >> 1);
	graph_begin(&d);
	graph_copy(&d, 1, (struct graph_side){CU_MEMORYTYPE_HOST, in},
		(struct graph_side){CU_MEMORYTYPE_DEVICE, memory}, SIZE, 1);
	graph_copy(&d, 2, (struct graph_side){CU_MEMORYTYPE_DEVICE, memory},
		(struct graph_side){CU_MEMORYTYPE_HOST, out}, SIZE, 1);
	MUST(graph_instantiate(&d, ID(GRAPH, 11), exec()), CUDA_SUCCESS);
	for (int round = 0; round < 2; round++) {
		data[0] = (uint8_t)round;
		IS(ASK(graph_host_data, .exec = exec(), .address = in, .data = data,
			   .data_len = SIZE),
			CUDA_SUCCESS);
		IS(ASK(graph_launch, .exec = exec()), CUDA_SUCCESS);
		struct inside_reply *reply = INSIDE(graph_fetch, false, .exec = exec(),
			.address = out, .pitch = SIZE, .width = SIZE, .height = 1);
		struct ckt_graph_fetch_res res = {0};
		IS(reply->result, CUDA_SUCCESS);
		YES(ckt_graph_fetch_res_get(&reply->results, &res) && res.data_len == SIZE &&
			!memcmp(res.data, data, SIZE));
	}
	/* Rows with gaps come without them. */
	struct inside_reply *reply = INSIDE(graph_fetch, false, .exec = exec(),
		.address = out + 100, .pitch = 50, .width = 3, .height = 4);
	struct ckt_graph_fetch_res rows = {0};
	YES(ckt_graph_fetch_res_get(&reply->results, &rows) && rows.data_len == 12);
	for (int row = 0; row < 4; row++)
		IS(memcmp(rows.data + row * 3, data + 100 + row * 50, 3), 0);
	/* A host node looks and writes at once. */
	reply = INSIDE(graph_peek, false, .exec = exec(), .address = out + 7, .size = 20);
	struct ckt_graph_peek_res peek = {0};
	YES(ckt_graph_peek_res_get(&reply->results, &peek) && peek.data_len == 20 &&
		!memcmp(peek.data, data + 7, 20));
	IS(ASK(graph_poke, .exec = exec(), .address = in + SIZE - 4,
		   .data = (const uint8_t *)"poke", .data_len = 4),
		CUDA_SUCCESS);
	reply = INSIDE(graph_peek, false, .exec = exec(), .address = in + SIZE - 4, .size = 4);
	YES(ckt_graph_peek_res_get(&reply->results, &peek) && !memcmp(peek.data, "poke", 4));
	inside_free(memory);
}

static void test_bounds(void)
{
	static const struct {
		int64_t offset;
		uint32_t size;
		bool good;
	} cases[] = {{0, 1, true}, {SIZE - 1, 1, true}, {0, SIZE, true}, {-1, 1, false},
		{SIZE, 1, false}, {1, SIZE, false}, {0, SIZE + 1, false}};
	uint8_t data[SIZE + 1] = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t at = in + (uint64_t)cases[i].offset;
		int wanted = cases[i].good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		IS(ASK(graph_host_data, .exec = exec(), .address = at, .data = data,
			   .data_len = cases[i].size),
			wanted);
		IS(ASK(graph_poke, .exec = exec(), .address = at, .data = data,
			   .data_len = cases[i].size),
			wanted);
		IS(ASK(graph_peek, .exec = exec(), .address = at, .size = cases[i].size), wanted);
		IS(ASK(graph_fetch, .exec = exec(), .address = at, .pitch = cases[i].size,
			   .width = cases[i].size, .height = 1),
			wanted);
	}
	static const struct {
		uint64_t pitch;
		uint32_t width, height;
	} fetches[] = {{0, 0, 1}, {0, 1, 0}, {UINT64_MAX, 1, 2}, {UINT64_MAX, 1, 3},
		{1 << 20, 1 << 16, 1 << 16}, {SIZE, 1, 2}, {0, CKT_DATA_MAX, 2}};
	for (size_t i = 0; i < COUNT(fetches); i++)
		IS(ASK(graph_fetch, .exec = exec(), .address = in, .pitch = fetches[i].pitch,
			   .width = fetches[i].width, .height = fetches[i].height),
			CUDA_ERROR_INVALID_VALUE);
	IS(ASK(graph_peek, .exec = exec(), .address = in, .size = UINT32_MAX),
		CUDA_ERROR_INVALID_VALUE);
	/* Of nobody, and on no stream. */
	IS(ASK(graph_host_data, .exec = ID(GRAPH_EXEC, 12), .address = in, .data = data,
		   .data_len = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(graph_fetch, .exec = ID(GRAPH, 11), .address = in, .width = 1, .height = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(graph_peek, .exec = ID(GRAPH_EXEC, 12), .address = in, .size = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(graph_poke, .exec = ID(GRAPH_EXEC, 12), .address = in, .data = data, .data_len = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(graph_host_data, .exec = exec(), .stream = ID(STREAM, 99), .address = in,
		   .data = data, .data_len = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(CUT(graph_host_data, .exec = exec(), .address = in, .data = data, .data_len = 5), 0);
	IS(CUT(graph_fetch, .exec = exec(), .address = in), 0);
	IS(CUT(graph_peek, .exec = exec(), .address = in), 0);
	IS(CUT(graph_poke, .exec = exec(), .address = in, .data = data, .data_len = 5), 0);
	IS(ASK(graph_exec_destroy, .exec = exec()), CUDA_SUCCESS);
}

UNIT_SUITE(graph_data, {"launch", test_launch}, {"bounds", test_bounds})
