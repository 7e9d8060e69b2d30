/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/memory/lane_copy.c: copies of pieces, and arguments that no client sends. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/worker/wire_lane.h"

static void test_to_device(void)
{
	struct wire *w = session_new();
	uint64_t memory = alloc(w, 2 * MIB);
	int fd = lane_open(w, true);
	fill(w, memory, 0, 2 * MIB);
	lane_send(fd, 1, MIB, 7);
	lane_send(fd, 2, 3, 8);
	lane_send(fd, 3, 4, 9);
	for (uint64_t piece = 1; piece <= 3; piece++)
		IS(lane_hear(fd).piece, piece);
	IS(done(WIRE_CALL(w, lane_htod, true, .dst = memory + 4, .size = MIB, .piece = 1)),
		CUDA_SUCCESS);
	/* In the order of the stream, and once. */
	IS(done(WIRE_CALL(w, lane_htod, true, .dst = memory + 4, .size = 3, .piece = 2)),
		CUDA_SUCCESS);
	IS(done(WIRE_CALL(w, lane_htod, true, .dst = memory, .size = 3, .piece = 2)),
		CUDA_ERROR_NOT_READY);
	IS(get_u32(w, memory), 0);
	IS(get_u32(w, memory + 4), 0x07080808);
	IS(get_u32(w, memory + MIB), 0x07070707);
	IS(get_u32(w, memory + MIB + 4), 0);
	/* A stream that is none, and memory that is none: the piece is gone all the same. */
	IS(done(WIRE_CALL(
		   w, lane_htod, true, .dst = memory, .size = 4, .piece = 3, .stream = STREAM(9))),
		CUDA_ERROR_INVALID_HANDLE);
	IS(done(WIRE_CALL(w, lane_htod, true, .dst = memory, .size = 4, .piece = 3)),
		CUDA_ERROR_NOT_READY);
	lane_send(fd, 4, 4, 9);
	IS(lane_hear(fd).piece, 4);
	YES(done(WIRE_CALL(w, lane_htod, true, .dst = 0x1000, .size = 4, .piece = 4)) !=
		CUDA_SUCCESS);
	/* Another size than the piece has: the connection ends, and the client may come back. */
	lane_send(fd, 5, 4, 9);
	IS(lane_hear(fd).piece, 5);
	struct wire_reply reply =
		WIRE_CALL(w, lane_htod, true, .dst = memory, .size = 5, .piece = 5);
	IS(reply.accept_stat, 4);
	free(reply.data);
	IS(lane_hear(fd).kind, 0);
	close(fd);
	IS(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	session_end(w);
}

static void test_to_host(void)
{
	struct wire *w = session_new();
	uint64_t memory = alloc(w, MIB);
	struct ckt_lane_dtoh_res res = {0};
	fill(w, memory, 0x31313131, MIB);
	IS(done(WIRE_CALL(w, lane_dtoh, true, .src = memory, .size = 0, .piece = 1)),
		CUDA_ERROR_INVALID_VALUE);
	IS(done(WIRE_CALL(w, lane_dtoh, true, .src = memory, .size = CKT_DATA_MAX + 1, .piece = 1)),
		CUDA_ERROR_INVALID_VALUE);
	IS(done(WIRE_CALL(w, lane_dtoh, true, .src = memory, .size = 4, .piece = 0)),
		CUDA_ERROR_INVALID_VALUE);
	IS(done(WIRE_CALL(
		   w, lane_dtoh, true, .src = memory, .size = 4, .piece = 1, .stream = STREAM(9))),
		CUDA_ERROR_INVALID_HANDLE);
	YES(done(WIRE_CALL(w, lane_dtoh, true, .src = 0x1000, .size = 4, .piece = 1)) !=
		CUDA_SUCCESS);
	/* Without a lane the bytes come with the reply. */
	struct wire_reply reply =
		WIRE_CALL(w, lane_dtoh, true, .src = memory, .size = MIB, .piece = 1);
	YES(!reply.result && ckt_lane_dtoh_res_get(&reply.results, &res) && res.data_len == MIB);
	IS(res.data_len && (res.data[0] != 0x31 || res.data[MIB - 1] != 0x31), 0);
	free(reply.data);
	session_end(w);
}

UNIT_SUITE(lane_copy, {"to the device", test_to_device}, {"to the host", test_to_host})
