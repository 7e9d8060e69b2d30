/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/lane.c: who gets a lane, pieces that are wrong, lanes that end with pieces
 * on their way, and a session that is saved meanwhile.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/memory/staging.h"
#include "server/worker/session/lane.h"
#include "tests/unit/worker/wire_lane.h"

static CUresult use(struct wire *w, uint64_t dst, uint64_t piece, uint32_t size)
{
	return done(WIRE_CALL(w, lane_htod, true, .dst = dst, .size = size, .piece = piece));
}

static void arrived(int fd, uint64_t piece)
{
	struct ckt_lane_head head = lane_hear(fd);
	IS(head.kind, CKT_LANE_ARRIVED);
	IS(head.piece, piece);
}

/* The lane ends, and the session goes on. */
static void ended(struct wire *w, int fd)
{
	IS(lane_hear(fd).kind, 0);
	close(fd);
	IS(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

static void test_hello(void)
{
	struct wire *w = session_new();
	int fds[CKT_LANES_MAX];
	IS(lane_open(w, false), -1);
	w->generation++;
	IS(lane_open(w, true), -1);
	w->generation -= 2;
	IS(lane_open(w, true), -1);
	w->generation++;
	for (int i = 0; i < CKT_LANES_MAX; i++)
		YES((fds[i] = lane_open(w, true)) >= 0);
	IS(lane_open(w, true), -1);
	/* One that ends takes all with it; so does one of another number. */
	close(fds[0]);
	for (int i = 1; i < CKT_LANES_MAX; i++)
		ended(w, fds[i]);
	fds[0] = lane_open_anew(w);
	YES(fds[0] >= 0);
	fds[1] = lane_open_anew(w);
	YES(fds[1] >= 0);
	ended(w, fds[0]);
	fds[0] = fds[1];
	/* Lanes belong to a connection: without a client there are none, and a new one has none. */
	wire_disconnect(w);
	IS(lane_hear(fds[0]).kind, 0);
	close(fds[0]);
	IS(lane_open(w, true), -1);
	IS(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	fds[0] = lane_open(w, true);
	YES(fds[0] >= 0);
	close(fds[0]);
	session_end(w);
}

/* Nothing that a peer says on a lane ends more than the lanes. */
static void test_wrong_frames(void)
{
	static const struct {
		uint32_t kind, size;
	} wrong[] = {{0, 0}, {3, 0}, {CKT_LANE_DATA, 0}, {CKT_LANE_DATA, CKT_DATA_MAX + 1},
		{CKT_LANE_DATA, UINT32_MAX}, {CKT_LANE_ARRIVED, 1},
		/* of a piece that was never sent */
		{CKT_LANE_ARRIVED, 0}};
	struct wire *w = session_new();
	for (size_t i = 0; i < COUNT(wrong); i++) {
		int fd = lane_open_anew(w), other = lane_open(w, true);
		lane_say(fd, wrong[i].kind, wrong[i].size, 5);
		ended(w, fd);
		ended(w, other);
	}
	/* The same piece twice. */
	int fd = lane_open_anew(w);
	lane_send(fd, 6, 100, 1);
	arrived(fd, 6);
	lane_send(fd, 6, 100, 1);
	ended(w, fd);
	/* Half a head, half a piece. */
	fd = lane_open_anew(w);
	IS(write(fd, "\0\0\0\1\0\0", 6), 6);
	close(fd);
	fd = lane_open_anew(w);
	lane_say(fd, CKT_LANE_DATA, 1000, 7);
	IS(write(fd, "half", 4), 4);
	close(fd);
	session_end(w);
}

/* More than staging memory holds: the rest waits in the socket until commands take what came. */
static void test_all_staging(void)
{
	enum { PIECE = 1000, MORE = 3 };
	struct wire *w = session_new();
	uint64_t memory = alloc(w, MIB);
	int fd = lane_open(w, true);
	for (unsigned i = 0; i < CKT_STAGING_LANES + MORE; i++)
		lane_send(fd, 100 + i, PIECE, (uint8_t)i);
	for (unsigned i = 0; i < CKT_STAGING_LANES; i++)
		arrived(fd, 100 + i);
	IS(use(w, memory, 100 + CKT_STAGING_LANES, PIECE), CUDA_ERROR_NOT_READY);
	/* In any order. */
	for (unsigned i = 0; i < MORE; i++)
		IS(use(w, memory, 105 - i, PIECE), CUDA_SUCCESS);
	for (unsigned i = 0; i < MORE; i++)
		arrived(fd, 100 + CKT_STAGING_LANES + i);
	IS(use(w, memory, 100 + CKT_STAGING_LANES, PIECE), CUDA_SUCCESS);
	IS(get_u32(w, memory), 0x01010101u * CKT_STAGING_LANES);
	/* What lies there is lost with the lane, and its memory is not. */
	for (int round = 0; round < 3; round++) {
		close(fd);
		fd = lane_open_anew(w);
		IS(use(w, memory, 107, PIECE), CUDA_ERROR_NOT_READY);
		for (unsigned i = 0; i < CKT_STAGING_LANES; i++)
			lane_send(fd, 200 + i, PIECE, 9);
		for (unsigned i = 0; i < CKT_STAGING_LANES; i++)
			arrived(fd, 200 + i);
	}
	close(fd);
	session_end(w);
}

/* To the host: the reply has no bytes where the lane brought them, and all where it broke. */
static void test_to_host(void)
{
	enum { PIECE = 100000 };
	struct wire *w = session_new();
	struct ckt_lane_dtoh_res res = {0};
	uint64_t memory = alloc(w, MIB);
	fill(w, memory, 0x21212121, MIB);
	int fd = lane_open(w, true);
	uint32_t xid =
		WIRE_SEND(w, lane_dtoh, true, false, .src = memory, .size = PIECE, .piece = 1);
	struct ckt_lane_head head = lane_hear(fd);
	YES(head.kind == CKT_LANE_DATA && head.size == PIECE && head.piece == 1);
	IS(lane_wrong(fd, PIECE, 0x21), 0);
	lane_say(fd, CKT_LANE_ARRIVED, 0, 1);
	struct wire_reply reply = wire_read(w, xid);
	YES(!reply.result && ckt_lane_dtoh_res_get(&reply.results, &res) && !res.data_len);
	free(reply.data);
	/* Twice the same acknowledgement. */
	lane_say(fd, CKT_LANE_ARRIVED, 0, 1);
	ended(w, fd);
	/* Before the piece is acknowledged, and in the middle of it. */
	for (int middle = 0; middle < 2; middle++) {
		uint32_t size = middle ? MIB : PIECE;
		fd = lane_open_anew(w);
		xid = WIRE_SEND(w, lane_dtoh, true, false, .src = memory, .size = size,
			.piece = 2 + (uint64_t)middle);
		IS(lane_hear(fd).size, size);
		if (!middle)
			IS(lane_wrong(fd, size, 0x21), 0);
		close(fd);
		reply = wire_read(w, xid);
		YES(!reply.result && ckt_lane_dtoh_res_get(&reply.results, &res));
		IS(res.data_len, size);
		IS(res.data_len && (res.data[0] != 0x21 || res.data[size - 1] != 0x21), 0);
		free(reply.data);
	}
	session_end(w);
}

/* A piece of a copy in the background is announced before the reply that says that it is done. */
static void test_announce(void)
{
	struct wire *w = session_new();
	uint64_t memory = alloc(w, MIB);
	fill(w, memory, 0x21212121, MIB);
	int fd = lane_open(w, true);
	for (uint32_t background = 0; background < 2; background++) {
		uint32_t xid = WIRE_SEND(w, lane_dtoh, true, false, .src = memory, .size = 1000,
			.piece = 7 + (uint64_t)background, .background = background);
		IS(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
		IS(w->announced, background ? 8 : 0);
		IS(lane_hear(fd).piece, 7 + background);
		IS(lane_wrong(fd, 1000, 0x21), 0);
		lane_say(fd, CKT_LANE_ARRIVED, 0, 7 + (uint64_t)background);
		IS(done(wire_read(w, xid)), CUDA_SUCCESS);
	}
	close(fd);
	session_end(w);
}

/* A client that comes back gets what it had not acknowledged. */
static void test_resume(void)
{
	struct wire *w = session_new();
	struct ckt_lane_dtoh_res res = {0};
	uint64_t memory = alloc(w, MIB);
	fill(w, memory, 0x21212121, MIB);
	int fd = lane_open(w, true);
	WIRE_SEND(w, lane_dtoh, true, false, .src = memory, .size = 1000, .piece = 1);
	IS(lane_hear(fd).piece, 1);
	wire_disconnect(w);
	IS(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	close(fd);
	w->seq--;
	struct wire_reply reply =
		WIRE_CALL(w, lane_dtoh, true, .src = memory, .size = 1000, .piece = 1);
	YES(!reply.result && ckt_lane_dtoh_res_get(&reply.results, &res) && res.data_len == 1000);
	free(reply.data);
	session_end(w);
}

/* Saving waits for no client that owes an acknowledgement. */
static void test_save(void)
{
	char directory[] = "/tmp/ckt-lane-XXXXXX", message[CKT_MESSAGE_MAX];
	struct wire *w = session_new();
	struct ckt_lane_dtoh_res res = {0};
	enum { PIECE = 50000 }; /* the reply finds room in the socket */
	uint64_t memory = alloc(w, MIB);
	fill(w, memory, 0x21212121, MIB);
	make_directory(directory);
	int fd = lane_open(w, true);
	lane_send(fd, 8, 1000, 3);
	arrived(fd, 8);
	uint32_t xid =
		WIRE_SEND(w, lane_dtoh, true, false, .src = memory, .size = PIECE, .piece = 1);
	IS(lane_hear(fd).piece, 1);
	IS(wire_save(w, directory, false, 20000, message), 0);
	struct wire_reply reply = wire_read(w, xid);
	YES(!reply.result && ckt_lane_dtoh_res_get(&reply.results, &res) && res.data_len == PIECE);
	free(reply.data);
	IS(use(w, memory, 8, 1000), CUDA_ERROR_NOT_READY);
	close(fd);
	fd = lane_open_anew(w);
	YES(fd >= 0);
	close(fd);
	remove_directory(directory);
	session_end(w);
}

UNIT_SUITE(lane, {"hello", test_hello}, {"wrong frames", test_wrong_frames},
	{"all staging memory", test_all_staging}, {"to the host", test_to_host},
	{"announce", test_announce}, {"resume", test_resume}, {"save", test_save})
