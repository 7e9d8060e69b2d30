/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/replay_stamps.c: which command gets which stamp, and its place in a replay. */
#include "client/conn/replay_stamps.h"

#include <string.h>

#include "tests/unit/suite.h"

static struct ckt_replay_log log_;
static struct ckt_replay_stamps stamps;

static void begin(void)
{
	ckt_replay_log_init(&log_, 1 << 20, "/tmp");
	stamps = (struct ckt_replay_stamps){.on = true};
}

static void end(void)
{
	ckt_replay_stamps_fini(&stamps);
	ckt_replay_log_fini(&log_);
}

static bool take(uint64_t kept, uint64_t first, unsigned count, uint64_t stamp)
{
	quad_t values[8];
	for (unsigned i = 0; i < count; i++)
		values[i] = (quad_t)(stamp + i);
	ckt_stamps_args args = {
		.first = first, .begins = {.begins_len = count, .begins_val = (void *)values}};
	return ckt_replay_stamps_take(&stamps, &log_, kept, &args);
}

static void add(uint64_t seq)
{
	uint8_t record[8] = {0};
	MUST(ckt_replay_log_command(&log_, record,
		     &(struct ckt_log_command){.seq = seq,
			     .size = sizeof record,
			     .stamp = ckt_replay_stamps_of(&stamps, seq)}),
		0);
}

static void test_commands(void)
{
	begin();
	/* Before the command comes to the log, and behind it. */
	YES(take(0, 1, 3, 100));
	add(1);
	add(2);
	YES(take(2, 1, 5, 200));
	IS(log_.commands[0].stamp, 200);
	IS(log_.commands[1].stamp, 201);
	for (uint64_t seq = 3; seq <= 6; seq++)
		add(seq);
	IS(log_.commands[2].stamp, 202);
	IS(log_.commands[4].stamp, 204);
	/* Nobody told that one. */
	IS(log_.commands[5].stamp, 0);
	YES(take(6, 6, 1, 300));
	IS(log_.commands[5].stamp, 300);
	/* Another worker ran these again: what the first one said of them is void. */
	YES(take(6, 7, 4, 400));
	YES(take(6, 7, 2, 500));
	for (uint64_t seq = 7; seq <= 9; seq++)
		add(seq);
	IS(log_.commands[7].stamp, 501);
	IS(log_.commands[8].stamp, 0);
	/* Of no command that can come next: what was told before does not follow. */
	YES(take(9, 20, 1, 600));
	add(10);
	IS(log_.commands[9].stamp, 0);
	/* Numbers that no worker gives. */
	NO(take(9, 0, 1, 600));
	NO(take(9, UINT64_MAX, 2, 600));
	end();
}

static void test_bound(void)
{
	begin();
	bool good = true;
	uint64_t seq = 1;
	for (; good && seq < 1 << 20; seq += 8)
		good = take(0, seq, 8, seq);
	/* A worker that tells of more than it can have executed is not listened to. */
	NO(good);
	YES(seq > 1 << 16);
	end();
}

static void test_replies(void)
{
	begin();
	ckt_stamps_args args = {.first = 1, .xid = 7, .end = 90};
	YES(ckt_replay_stamps_take(&stamps, &log_, 0, &args));
	IS(ckt_replay_stamps_end(&stamps, 7), 90);
	IS(ckt_replay_stamps_end(&stamps, 8), 0);
	args = (ckt_stamps_args){.late = 5};
	YES(ckt_replay_stamps_take(&stamps, &log_, 0, &args));
	IS(stamps.late, 5);
	end();
}

static void test_place(void)
{
	const uint64_t ms = 1000000;
	ckt_stamp_args place;
	begin();
	struct ckt_log_command c = {.seq = 1, .xid = 9, .stamp = 100 * ms};
	struct ckt_log_reply reply = {.end = 150 * ms};
	YES(ckt_replay_stamps_place(&stamps, &c, &reply, 1000, &place));
	IS(place.begin, 100 * ms);
	IS(place.end, 150 * ms);
	IS(place.xid, 9);
	IS(place.patience_ms, 1000);
	/* The others have four times what they took. */
	c = (struct ckt_log_command){.seq = 2, .stamp = 350 * ms};
	YES(ckt_replay_stamps_place(&stamps, &c, NULL, 1000, &place));
	IS(place.patience_ms, 2000);
	IS(place.end, 0);
	/* Stamps that go back, none at all, an end before its begin: no place. */
	NO(ckt_replay_stamps_place(&stamps, &c, NULL, 1000, &place));
	c.stamp = 0;
	NO(ckt_replay_stamps_place(&stamps, &c, NULL, 1000, &place));
	c.stamp = 400 * ms;
	reply.end = 400 * ms;
	NO(ckt_replay_stamps_place(&stamps, &c, &reply, 1000, &place));
	/* A lie about the time does not overflow. */
	c.stamp = UINT64_MAX - 1;
	YES(ckt_replay_stamps_place(&stamps, &c, NULL, 1000, &place));
	IS(place.patience_ms, 86400 * 1000);
	/* A wait has an end alone. */
	c = (struct ckt_log_command){.xid = 5};
	NO(ckt_replay_stamps_place(&stamps, &c, NULL, 1000, &place));
	YES(ckt_replay_stamps_place(&stamps, &c, &reply, 1000, &place));
	IS(place.begin, 0);
	IS(ckt_replay_stamps_patience(&stamps, 1000, 77), 1000);
	stamps.told_ms = 77;
	IS(ckt_replay_stamps_patience(&stamps, 1000, 177), 1400);
	end();
}

static void test_clocks(void)
{
	begin();
	stamps.clock = 55;
	IS(ckt_replay_stamps_told(&stamps, 0), 55);
	/* At another host, from the command behind 10 on. */
	ckt_replay_stamps_attach(&stamps, 66, 10);
	IS(ckt_replay_stamps_told(&stamps, 9), CKT_STAMPS_NONE);
	IS(ckt_replay_stamps_told(&stamps, 10), 66);
	ckt_replay_stamps_attach(&stamps, 66, 20);
	IS(ckt_replay_stamps_told(&stamps, 10), 66);
	/* One that has no clock. */
	ckt_replay_stamps_attach(&stamps, 0, 30);
	IS(ckt_replay_stamps_told(&stamps, 30), CKT_STAMPS_NONE);
	/* What a cut forgets is where the first command's time counts from. */
	YES(take(0, 1, 3, 100));
	add(1);
	add(2);
	add(3);
	ckt_replay_stamps_cut(&stamps, &log_, 2);
	IS(stamps.cut, 101);
	end();
}

UNIT_SUITE(replay_stamps, {"commands", test_commands}, {"bound", test_bound},
	{"replies", test_replies}, {"place", test_place}, {"clocks", test_clocks})
