/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/lane.c: pieces both ways over lanes whose other end is the test's: in any order, lost,
 * and of a worker that does not keep to the protocol.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/conn/lane_set.h"
#include "conn_parts.h"
#include "tests/unit/suite.h"

enum { LANES = 2, SIZE = 1000 };

static int peers[LANES];
static uint8_t memory[4 * SIZE];

static struct ckt_lane_set *begin(void)
{
	struct ckt_lane_set *set = ckt_lane_set_new(&ckt_conn);
	for (int i = 0; i < LANES; i++) {
		int fds[2];
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		ckt_transport_init_socket(&set->lanes[set->count++].transport, fds[0]);
		peers[i] = fds[1];
	}
	MUST(ckt_lane_set_start(set), 0);
	return set;
}

static void end(struct ckt_lane_set *set)
{
	ckt_lane_set_end(set);
	ckt_lane_set_join(set);
	ckt_lane_set_free(set);
	for (int i = 0; i < LANES; i++)
		close(peers[i]);
}

static void say(int peer, uint32_t kind, uint32_t size, uint64_t piece, const void *data)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE + SIZE];
	ckt_lane_head_put(
		bytes, &(struct ckt_lane_head){.kind = kind, .size = size, .piece = piece});
	if (data)
		memcpy(bytes + CKT_LANE_HEAD_SIZE, data, size);
	size_t all = CKT_LANE_HEAD_SIZE + (data ? size : 0);
	IS(send(peer, bytes, all, MSG_NOSIGNAL), all);
}

static struct ckt_lane_head hear(int peer)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	struct ckt_lane_head head = {0};
	if (parts_read(peer, bytes, sizeof bytes))
		IS(ckt_lane_head_get(bytes, &head), 0);
	return head;
}

static bool leave(struct ckt_lane_piece *piece)
{
	bool there = ckt_lane_leave(piece);
	ckt_lane_end(piece);
	return there;
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof memory; i++)
		memory[i] = (uint8_t)(i * 7 + i / 256);
}

static void send_pieces(struct ckt_lane_set *set, struct ckt_lane_copy *copy,
	struct ckt_lane_piece pieces[], unsigned count)
{
	*copy = (struct ckt_lane_copy){.last = &copy->first};
	memset(pieces, 0, count * sizeof *pieces);
	for (unsigned i = 0; i < count; i++) {
		pieces[i].data = memory + i * SIZE;
		pieces[i].size = SIZE;
		pieces[i].copy = copy;
		ckt_lane_send(set, &pieces[i]);
	}
}

static void test_to_worker(void)
{
	struct ckt_lane_set *set = begin();
	struct ckt_lane_copy copy;
	struct ckt_lane_piece pieces[4], *first;
	uint8_t got[SIZE];
	unsigned seen = 0;
	fill();
	/* One lane has stopped: the other carries what comes. */
	send_pieces(set, &copy, pieces, 4);
	for (int i = 0; i < 4; i++) {
		int peer = -1;
		for (int tries = 0; peer < 0 && tries < 300000; tries++)
			for (int p = 0; p < LANES && peer < 0; p++)
				if (recv(peers[p], got, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
					peer = peers[p];
				else
					usleep(100);
		struct ckt_lane_head head = hear(peer);
		unsigned index = (unsigned)(head.piece - pieces[0].number);
		YES(head.kind == CKT_LANE_DATA && head.size == SIZE && index < 4);
		YES(parts_read(peer, got, SIZE));
		IS(memcmp(got, memory + index * SIZE, SIZE), 0);
		seen |= 1u << index;
		/* Any lane says that it came. */
		say(peers[i % LANES], CKT_LANE_ARRIVED, 0, head.piece, NULL);
		first = ckt_lane_next(set, &copy);
		IS(first->number, head.piece);
		IS(first->state, CKT_LANE_THERE);
	}
	IS(seen, 15);
	/* No number comes twice, whatever the copy. */
	uint64_t last = pieces[3].number;
	send_pieces(set, &copy, pieces, 1);
	YES(pieces[0].number > last);
	/* A lane that ends loses what was on its way, and what comes later. */
	close(peers[0]);
	IS(ckt_lane_next(set, &copy)->state, CKT_LANE_LOST);
	send_pieces(set, &copy, pieces, 2);
	IS(ckt_lane_next(set, &copy)->state, CKT_LANE_LOST);
	IS(ckt_lane_next(set, &copy)->state, CKT_LANE_LOST);
	peers[0] = -1;
	end(set);
}

static void test_to_host(void)
{
	struct ckt_lane_set *set = begin();
	struct ckt_lane_piece pieces[3] = {0};
	uint8_t bytes[SIZE];
	memset(bytes, 0x66, sizeof bytes);
	memset(memory, 0, sizeof memory);
	for (int i = 0; i < 3; i++) {
		pieces[i].data = memory + i * SIZE;
		pieces[i].size = SIZE;
		ckt_lane_expect(set, &pieces[i]);
	}
	say(peers[1], CKT_LANE_DATA, SIZE, pieces[2].number, bytes);
	struct ckt_lane_head head = {0};
	/* One of the lanes says that it is there. */
	for (int tries = 0; !head.kind && tries < 300000; tries++, usleep(100))
		for (int p = 0; p < LANES && !head.kind; p++)
			if (recv(peers[p], bytes + 1, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
				head = hear(peers[p]);
	YES(head.kind == CKT_LANE_ARRIVED && head.piece == pieces[2].number);
	YES(leave(&pieces[2]));
	IS(memory[2 * SIZE] == 0x66 && memory[3 * SIZE - 1] == 0x66, 1);
	IS(memory[2 * SIZE - 1] | memory[3 * SIZE], 0);
	/* One that is left is not to be written any more: such bytes end the lanes. */
	NO(leave(&pieces[1]));
	memset(bytes, 0x77, sizeof bytes);
	say(peers[0], CKT_LANE_DATA, SIZE, pieces[1].number, bytes);
	IS(hear(peers[0]).kind, 0);
	IS(memory[SIZE], 0);
	NO(leave(&pieces[0]));
	IS(set->on_way, 0);
	ckt_lane_expect(set, &pieces[0]);
	NO(leave(&pieces[0]));
	end(set);
}

/* Half a piece has come when its reply does: the thread in the program's memory leaves first. */
static void test_leave_inside(void)
{
	struct ckt_lane_set *set = begin();
	struct ckt_lane_piece piece = {.data = memory, .size = SIZE};
	uint8_t bytes[SIZE / 2] = {1};
	memset(memory, 0, sizeof memory);
	ckt_lane_expect(set, &piece);
	say(peers[0], CKT_LANE_DATA, SIZE, piece.number, NULL);
	IS(send(peers[0], bytes, sizeof bytes, 0), sizeof bytes);
	bool inside = false;
	for (int i = 0; i < 300000 && !inside; i++) {
		usleep(100);
		pthread_mutex_lock(&set->lock);
		inside = piece.inside;
		pthread_mutex_unlock(&set->lock);
	}
	YES(inside);
	NO(leave(&piece));
	memory[0] = 2;
	YES(set->gone);
	IS(memory[0], 2);
	end(set);
}

static void test_wrong_workers(void)
{
	static const struct {
		uint32_t kind, size;
		int piece; /* beyond the number of the one that is expected */
	} wrong[] = {{0, 0, 0}, {3, 0, 0}, {CKT_LANE_DATA, 0, 0}, {CKT_LANE_DATA, SIZE - 1, 0},
		{CKT_LANE_DATA, SIZE + 1, 0}, {CKT_LANE_DATA, SIZE, 1},
		{CKT_LANE_DATA, CKT_DATA_MAX + 1, 0}, {CKT_LANE_ARRIVED, 1, 0},
		{CKT_LANE_ARRIVED, 0, 0}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct ckt_lane_set *set = begin();
		struct ckt_lane_piece piece = {.data = memory, .size = SIZE};
		memset(memory, 0, sizeof memory);
		ckt_lane_expect(set, &piece);
		say(peers[0], wrong[i].kind, wrong[i].size, piece.number + (uint64_t)wrong[i].piece,
			NULL);
		if (!IS(hear(peers[1]).kind, 0))
			CU_FAIL("of a row of the table");
		NO(leave(&piece));
		IS(memory[0], 0);
		end(set);
	}
}

/* Whoever is told that work is done waits for what the worker announced before. */
static void test_background(void)
{
	int peer = parts_open();
	struct ckt_lane_set *set = begin();
	struct ckt_lane_piece pieces[3] = {0};
	uint8_t bytes[SIZE] = {1};
	for (int i = 0; i < 3; i++) {
		pieces[i] = (struct ckt_lane_piece){
			.data = memory + i * SIZE, .size = SIZE, .background = i < 2};
		ckt_lane_expect(set, &pieces[i]);
	}
	ckt_lanes_settle(&ckt_conn);
	/* One that is not in the background, one of no number that is known; twice the same. */
	ckt_lanes_announce(&ckt_conn, pieces[2].number);
	ckt_lanes_announce(&ckt_conn, pieces[2].number + 1);
	IS(ckt_conn.lanes.announced, 0);
	ckt_lanes_announce(&ckt_conn, pieces[0].number);
	ckt_lanes_announce(&ckt_conn, pieces[0].number);
	IS(ckt_conn.lanes.announced, 1);
	say(peers[0], CKT_LANE_DATA, SIZE, pieces[0].number, bytes);
	for (int i = 0; i < 300000 && ckt_conn.lanes.announced; i++)
		usleep(100);
	IS(ckt_conn.lanes.announced, 0);
	ckt_lanes_settle(&ckt_conn);
	/* It came before it was announced. */
	say(peers[0], CKT_LANE_DATA, SIZE, pieces[1].number, bytes);
	for (int there = 0; !there; usleep(100)) {
		pthread_mutex_lock(&set->lock);
		there = pieces[1].state == CKT_LANE_THERE;
		pthread_mutex_unlock(&set->lock);
	}
	ckt_lanes_announce(&ckt_conn, pieces[1].number);
	YES(leave(&pieces[1]));
	IS(ckt_conn.lanes.announced, 0);
	/* The bytes of one that is lost come with its reply, and then it is left. */
	pieces[1] = (struct ckt_lane_piece){.data = memory, .size = SIZE, .background = true};
	ckt_lane_expect(set, &pieces[1]);
	ckt_lane_set_end(set);
	ckt_lanes_announce(&ckt_conn, pieces[1].number);
	IS(ckt_conn.lanes.announced, 1);
	NO(ckt_lane_leave(&pieces[1]));
	IS(ckt_conn.lanes.announced, 1);
	ckt_lane_end(&pieces[1]);
	IS(ckt_conn.lanes.announced, 0);
	YES(leave(&pieces[0]));
	NO(leave(&pieces[2]));
	YES(ckt_conn.lanes.background == NULL);
	end(set);
	parts_close(peer);
}

/* No more than the worker's memory holds. */
static void test_room(void)
{
	enum { ROOM = 5 };
	ckt_conn.lanes.pieces = ROOM;
	struct ckt_lane_set *set = begin();
	struct ckt_lane_piece pieces[ROOM] = {0};
	for (int i = 0; i < ROOM; i++) {
		YES(ckt_lanes_have_room(set));
		pieces[i].data = memory;
		pieces[i].size = SIZE;
		ckt_lane_expect(set, &pieces[i]);
	}
	NO(ckt_lanes_have_room(set));
	leave(&pieces[3]);
	YES(ckt_lanes_have_room(set));
	for (int i = 0; i < ROOM; i++)
		if (i != 3)
			leave(&pieces[i]);
	IS(ckt_lanes_count(set), LANES);
	end(set);
}

UNIT_SUITE(lane, {"to the worker", test_to_worker}, {"to the host", test_to_host},
	{"leave inside", test_leave_inside}, {"wrong workers", test_wrong_workers},
	{"background", test_background}, {"room", test_room})
