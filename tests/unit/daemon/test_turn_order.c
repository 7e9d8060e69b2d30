/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/turn_order.c: whose turn it is on a GPU, with a clock of the test's own. */
#include "server/daemon/policy/turn_order.h"

#include <string.h>

#include "tests/unit/suite.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

enum { MEMBERS = 4 };

static struct ckt_turn_ring ring;
static struct ckt_turn_member members[MEMBERS];
static struct ckt_turn_decision decision;
static int64_t now;

static void begin(unsigned count)
{
	ring = (struct ckt_turn_ring){0};
	memset(members, 0, sizeof members);
	now = 5 * SECOND;
	for (unsigned i = 0; i < count; i++) {
		members[i].class = CKT_TURN_PLAIN;
		members[i].weight = 100;
		ckt_turn_add(&ring, &members[i], now);
	}
}

static enum ckt_turn_step decide(void)
{
	ckt_turn_decide(&ring, now, &decision);
	return decision.step;
}

static unsigned member_of(void)
{
	return (unsigned)(decision.member - members);
}

/* The first `count` want the GPU all the time, and end their turns `late` after they should. */
static void run(unsigned count, int64_t duration, int64_t late)
{
	int64_t end = now + duration;
	for (unsigned i = 0; i < count; i++)
		ckt_turn_want(&ring, &members[i]);
	while (now < end) {
		if (decide() == CKT_TURN_NOTHING) {
			now = decision.again_ns ? decision.again_ns : end;
			continue;
		}
		IS(decision.step, CKT_TURN_GIVES);
		struct ckt_turn_member *member = decision.member;
		uint32_t number = decision.number;
		now += (decision.length_ns ? decision.length_ns : 50 * MS) + late;
		YES(ckt_turn_yield(&ring, member, number, true, now));
	}
}

static unsigned percent(unsigned i, int64_t of)
{
	return (unsigned)((members[i].used_ns * 1000 / (uint64_t)of + 5) / 10);
}

static void test_alone(void)
{
	begin(2);
	IS(decide(), CKT_TURN_NOTHING);
	ckt_turn_want(&ring, &members[0]);
	IS(decide(), CKT_TURN_GIVES);
	IS(decision.member == &members[0], 1);
	IS(decision.length_ns, 0);
	IS(decision.pace_ns, 0);
	IS(decide(), CKT_TURN_NOTHING);
	/* Another comes after 5 ms: what is left of a quantum; it is told once. */
	now += 5 * MS;
	ckt_turn_want(&ring, &members[1]);
	IS(decide(), CKT_TURN_LIMITS);
	IS(decision.member == &members[0], 1);
	IS(decision.number, ring.number);
	IS(decision.length_ns, CKT_TURN_QUANTUM_NS - 5 * MS);
	IS(decision.pace_ns, CKT_TURN_PACE_NS);
	IS(decide(), CKT_TURN_NOTHING);
	/* It ends early, wants nothing, and the other has it alone. */
	IS(ckt_turn_yield(&ring, &members[0], ring.number, false, now), true);
	IS(decide(), CKT_TURN_GIVES);
	IS(decision.member == &members[1], 1);
	IS(decision.length_ns, 0);
	/* Held for long: at once. */
	now += SECOND;
	ckt_turn_want(&ring, &members[0]);
	IS(decide(), CKT_TURN_LIMITS);
	IS(decision.length_ns, 0);
}

/* A decision from outside goes before class, priority and weight, once, and passes no cap. */
static void test_outside(void)
{
	begin(3);
	members[0].priority = 10;
	for (unsigned i = 0; i < 2; i++)
		ckt_turn_want(&ring, &members[i]);
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 0);
	/* Its turn ends at once for the one that was chosen, which has it once. */
	ckt_turn_next(&ring, &members[1]);
	IS(decide(), CKT_TURN_LIMITS);
	IS(decision.length_ns, 0);
	IS(decide(), CKT_TURN_NOTHING);
	YES(ckt_turn_yield(&ring, &members[0], ring.number, true, now));
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 1);
	now += CKT_TURN_QUANTUM_NS;
	YES(ckt_turn_yield(&ring, &members[1], ring.number, true, now));
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 0);
	/* One that wants nothing keeps nobody waiting, and is next when it does. */
	ckt_turn_next(&ring, &members[2]);
	YES(ckt_turn_yield(&ring, &members[0], ring.number, true, now));
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 0);
	ckt_turn_want(&ring, &members[2]);
	IS(decide(), CKT_TURN_LIMITS);
	IS(decision.length_ns, 0);
	/* It ends before that. */
	ckt_turn_remove(&ring, &members[2]);
	YES(ckt_turn_yield(&ring, &members[0], ring.number, true, now));
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 0);
	/* Its cap is used up. */
	members[1].cap = 10;
	members[1].credit_at_ns = now;
	members[1].credit_ns = -CKT_TURN_QUANTUM_NS;
	ckt_turn_next(&ring, &members[1]);
	IS(decide(), CKT_TURN_NOTHING);
	YES(decision.again_ns > now);
}

static void test_ended(void)
{
	begin(2);
	ckt_turn_want(&ring, &members[0]);
	IS(decide(), CKT_TURN_GIVES);
	/* Nobody waits: it keeps the GPU until somebody does. */
	ckt_turn_end(&ring);
	IS(decide(), CKT_TURN_NOTHING);
	ckt_turn_want(&ring, &members[1]);
	IS(decide(), CKT_TURN_LIMITS);
	IS(decision.length_ns, 0);
	YES(ckt_turn_yield(&ring, &members[0], ring.number, true, now));
	/* The next turn is as long as any. */
	IS(decide(), CKT_TURN_GIVES);
	IS(decision.length_ns, CKT_TURN_QUANTUM_NS);
	IS(decide(), CKT_TURN_NOTHING);
}

static void test_weights(void)
{
	begin(2);
	members[0].weight = 30;
	members[1].weight = 70;
	run(2, 10 * SECOND, 0);
	IS(percent(0, 10 * SECOND), 30);
	IS(percent(1, 10 * SECOND), 70);
	/* Late ends count as used. */
	begin(3);
	members[2].weight = 200;
	run(3, 20 * SECOND, 7 * MS);
	IS(percent(0, 20 * SECOND), 25);
	IS(percent(1, 20 * SECOND), 25);
	IS(percent(2, 20 * SECOND), 50);
}

/* Who did not want the GPU has little claim to what others used meanwhile. */
static void test_little_is_saved_up(void)
{
	begin(3);
	run(2, 10 * SECOND, 0);
	run(3, 9 * SECOND, 0);
	YES(percent(2, 9 * SECOND) <= 35);
}

/* One that pauses after each turn, and comes back while the other runs, has its part all the same. */
static void test_pauses(void)
{
	begin(2);
	members[0].weight = 80;
	members[1].weight = 20;
	int64_t end = now + 10 * SECOND;
	for (ckt_turn_want(&ring, &members[1]); now < end;) {
		ckt_turn_want(&ring, &members[0]);
		MUST(decide(), CKT_TURN_GIVES);
		struct ckt_turn_member *member = decision.member;
		bool pauses = member == &members[0];
		now += pauses ? 10 * MS : CKT_TURN_QUANTUM_NS;
		ckt_turn_yield(&ring, member, decision.number, !pauses, now);
		/* In the pause the other begins, for a while. */
		if (pauses && decide() == CKT_TURN_GIVES) {
			ckt_turn_want(&ring, &members[0]);
			now += CKT_TURN_QUANTUM_NS / 10;
			ckt_turn_yield(&ring, decision.member, decision.number, true, now);
		}
	}
	YES(percent(0, 10 * SECOND) >= 79 && percent(0, 10 * SECOND) <= 84);
}

static void test_classes(void)
{
	begin(3);
	members[0].class = CKT_TURN_BEST_EFFORT;
	members[1].class = CKT_TURN_LATENCY;
	/* Alone, but beside a member of an earlier class: its pace is tight. */
	ckt_turn_want(&ring, &members[0]);
	IS(decide(), CKT_TURN_GIVES);
	IS(decision.length_ns, 0);
	IS(decision.pace_ns, CKT_TURN_PACE_TIGHT_NS);
	ckt_turn_want(&ring, &members[1]);
	IS(decide(), CKT_TURN_LIMITS);
	IS(decision.length_ns, 0);
	now += MS;
	ckt_turn_yield(&ring, &members[0], ring.number, true, now);
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 1);
	IS(decision.pace_ns, CKT_TURN_PACE_NS);
	/* No class goes before best effort, but not before the turn of an earlier class has ended. */
	ckt_turn_want(&ring, &members[2]);
	IS(decide(), CKT_TURN_NOTHING);
	now += MS;
	ckt_turn_yield(&ring, &members[1], ring.number, false, now);
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 2);
	now += MS;
	ckt_turn_yield(&ring, &members[2], ring.number, false, now);
	IS(decide(), CKT_TURN_GIVES);
	IS(member_of(), 0);
}

static void test_priorities(void)
{
	begin(3);
	members[1].priority = 3;
	run(3, SECOND, 0);
	IS(percent(1, SECOND), 100);
}

static void test_cap(void)
{
	begin(2);
	members[0].cap = 25;
	run(1, 10 * SECOND, 0);
	YES(percent(0, 10 * SECOND) == 25 || percent(0, 10 * SECOND) == 26);
	/* The other has the rest, and a turn without an end while the first may not run. */
	begin(2);
	members[0].cap = 10;
	run(2, 10 * SECOND, 0);
	YES(percent(0, 10 * SECOND) <= 11);
	YES(percent(1, 10 * SECOND) >= 89);
	/* As small a cap as there is still runs. */
	begin(1);
	members[0].cap = 1;
	run(1, 100 * SECOND, 0);
	IS(percent(0, 100 * SECOND), 1);
}

static void test_forged_yields(void)
{
	begin(2);
	ckt_turn_want(&ring, &members[0]);
	decide();
	IS(ckt_turn_yield(&ring, &members[1], ring.number, true, now), false);
	IS(ckt_turn_yield(&ring, &members[0], ring.number + 1, true, now), false);
	IS(members[0].used_ns + members[1].used_ns, 0);
	YES(ring.holder == &members[0]);
}

static void test_end(void)
{
	begin(3);
	ckt_turn_want(&ring, &members[0]);
	ckt_turn_want(&ring, &members[2]);
	decide();
	ckt_turn_remove(&ring, decision.member);
	IS(decide(), CKT_TURN_GIVES);
	ckt_turn_remove(&ring, decision.member);
	IS(decide(), CKT_TURN_NOTHING);
	ckt_turn_remove(&ring, &members[1]);
	YES(!ring.first);
}

UNIT_SUITE(turn_order, {"alone", test_alone}, {"weights", test_weights},
	{"little is saved up", test_little_is_saved_up}, {"pauses", test_pauses},
	{"classes", test_classes}, {"priorities", test_priorities}, {"caps", test_cap},
	{"forged yields", test_forged_yields}, {"end", test_end}, {"outside", test_outside},
	{"ended", test_ended})
