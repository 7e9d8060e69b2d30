/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/quantum.c: who has its memory on a GPU, with a clock of the test's own. */
#include "server/daemon/policy/quantum.h"

#include <stdio.h>
#include <string.h>

#include "tests/policy/quanta.h"
#include "tests/unit/suite.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
/* At 50 GB/s each way this costs 43 ms, and a quantum is 1.4 s. */
#define BYTES GIB

enum { MEMBERS = 4 };

static struct ckt_quantum quantum;
static struct ckt_quantum_member members[MEMBERS];
static struct ckt_quantum_decision decision;
static int64_t now;

/* All have their memory on the GPU, and are not idle. */
static void begin(unsigned count)
{
	now = 5 * SECOND;
	memset(members, 0, sizeof members);
	ckt_quantum_init(&quantum, 60 * SECOND);
	for (unsigned i = 0; i < count; i++) {
		members[i].weight = 100;
		members[i].here[0] = BYTES;
		ckt_quantum_add(&quantum, &members[i], now);
	}
}

static enum ckt_quantum_step decide(uint64_t free_bytes)
{
	ckt_quantum_decide(&quantum, 0, free_bytes, now, &decision);
	return decision.step;
}

static void want(unsigned i, uint64_t bytes)
{
	members[i].want[0] = bytes;
	members[i].want_since_ns = now;
}

static void out(unsigned i)
{
	members[i].here[0] = 0;
	ckt_quantum_left(&quantum, &members[i], BYTES, 20 * MS, now);
}

static unsigned member_of(const struct ckt_quantum_member *member)
{
	return (unsigned)(member - members);
}

static void test_fits(void)
{
	begin(2);
	IS(decide(0), CKT_QUANTUM_WAIT);
	IS(decision.again_ns, 0);
	want(0, BYTES);
	IS(decide(BYTES), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 0);
	IS(decision.reason, CKT_QUANTUM_FITS);
	/* Its room is kept. */
	IS(ckt_quantum_kept(&quantum, NULL, 0), BYTES);
	IS(ckt_quantum_kept(&quantum, &members[0], 0), 0);
	want(1, MIB);
	IS(decide(BYTES), CKT_QUANTUM_WAIT);
	/* It does not take it: the other is served. */
	now += CKT_QUANTUM_KEPT_NS;
	IS(decide(BYTES), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 1);
}

static void test_quantum(void)
{
	begin(2);
	out(1);
	want(1, BYTES);
	int64_t cost = ckt_quantum_cost_ns(&quantum, &members[0], &members[1], 0);
	int64_t length = ckt_quantum_length_ns(&quantum, &members[0], &members[1], 0);
	YES(cost > 35 * MS && cost < 50 * MS);
	/* A switch takes 3% of the time. */
	YES(length * 3 <= cost * 97 + 100 && length * 3 > cost * 96);
	members[0].in_since_ns = now;
	IS(decide(0), CKT_QUANTUM_WAIT);
	IS(decision.again_ns, now + length);
	now += length;
	IS(decide(0), CKT_QUANTUM_EVICT);
	IS(member_of(decision.member), 0);
	IS(member_of(decision.waiter), 1);
	IS(decision.reason, CKT_QUANTUM_OVER);
	members[0].leaving = true;
	IS(decide(0), CKT_QUANTUM_WAIT);
	out(0);
	IS(decide(BYTES), CKT_QUANTUM_ADMIT);
	members[1].coming = true;
	ckt_quantum_came(&members[1], now);
	members[1].coming = false;
	members[1].here[0] = BYTES;
	want(0, BYTES);
	/* Who has just come in is protected, however often somebody asks. */
	for (int i = 0; i < 100; i++, now += MS)
		IS(decide(0), CKT_QUANTUM_WAIT);
	IS(ckt_quantum_switches(&members[0], now), 1);
	IS(ckt_quantum_switches(&members[0], now + SECOND), 0);
}

static void test_max_wait(void)
{
	begin(4);
	quantum.max_wait_ns = SECOND;
	out(1);
	out(2);
	out(3);
	for (unsigned i = 1; i < 4; i++)
		want(i, BYTES);
	int64_t cost = ckt_quantum_cost_ns(&quantum, &members[0], &members[1], 0);
	IS(ckt_quantum_length_ns(&quantum, &members[0], &members[1], 0), SECOND / 3 - cost);
	/* Never shorter than a switch. */
	quantum.max_wait_ns = MS;
	IS(ckt_quantum_length_ns(&quantum, &members[0], &members[1], 0), cost);
}

static void test_idle(void)
{
	begin(2);
	out(1);
	now += 10 * MS;
	want(1, BYTES);
	members[0].in_since_ns = now;
	members[0].idle_since_ns = now;
	ckt_quantum_note(&members[0], now);
	int64_t cost = ckt_quantum_cost_ns(&quantum, &members[0], &members[1], 0);
	/* Nothing is known of it: twice a switch. */
	now += 2 * cost - 1;
	IS(decide(0), CKT_QUANTUM_WAIT);
	now++;
	IS(decide(0), CKT_QUANTUM_EVICT);
	IS(decision.reason, CKT_QUANTUM_WAS_IDLE);
	/* It was idle for long before: next time at once. */
	now += SECOND;
	members[0].idle_since_ns = 0;
	ckt_quantum_note(&members[0], now);
	YES(members[0].gap_ns >= SECOND);
	members[0].in_since_ns = now;
	members[0].idle_since_ns = now;
	ckt_quantum_note(&members[0], now);
	now += CKT_QUANTUM_IDLE_LEAST_NS;
	IS(decide(0), CKT_QUANTUM_EVICT);
	/* Longer than the longer way of a switch is long enough: two programs answer in turn. */
	members[0].gap_ns = cost / 2;
	IS(decide(0), CKT_QUANTUM_EVICT);
	members[0].gap_ns = cost / 2 - 1;
	IS(decide(0), CKT_QUANTUM_WAIT);
	/* Short times of idleness teach it the contrary. */
	for (int i = 0; i < 10; i++) {
		members[0].idle_since_ns = now;
		ckt_quantum_note(&members[0], now);
		now += MS;
		members[0].idle_since_ns = 0;
		ckt_quantum_note(&members[0], now);
	}
	members[0].in_since_ns = members[0].idle_since_ns = now;
	now += CKT_QUANTUM_IDLE_LEAST_NS;
	IS(decide(0), CKT_QUANTUM_WAIT);
}

static void test_least_needed(void)
{
	begin(4);
	out(3);
	want(3, BYTES);
	now += 100 * SECOND;
	members[0].in_since_ns = now - 90 * SECOND;
	IS(decide(0), CKT_QUANTUM_EVICT);
	/* The longest there. */
	YES(member_of(decision.member) != 0);
	members[0].weight = 10;
	decide(0);
	IS(member_of(decision.member), 0);
	members[1].priority = -1;
	decide(0);
	IS(member_of(decision.member), 1);
	members[2].idle_since_ns = now - SECOND;
	decide(0);
	IS(member_of(decision.member), 2);
	IS(decision.reason, CKT_QUANTUM_WAS_IDLE);
	members[0].idle_since_ns = now - 2 * SECOND;
	decide(0);
	IS(member_of(decision.member), 0);
	members[0].fixed = members[2].fixed = true;
	decide(0);
	IS(member_of(decision.member), 1);
	/* Nobody leaves where that is not enough; one that suffices alone spares another. */
	members[0].idle_since_ns = members[2].idle_since_ns = 0;
	members[0].fixed = members[2].fixed = false;
	members[3].want[0] = 4 * BYTES;
	IS(decide(0), CKT_QUANTUM_WAIT);
	members[3].want[0] = 2 * BYTES;
	members[2].here[0] = 2 * BYTES;
	decide(0);
	IS(member_of(decision.member), 2);
}

static void test_stays(void)
{
	begin(2);
	out(1);
	want(1, BYTES);
	now += 100 * SECOND;
	IS(decide(0), CKT_QUANTUM_EVICT);
	members[0].leaving = true;
	ckt_quantum_failed(&members[0], now);
	IS(decide(0), CKT_QUANTUM_WAIT);
	IS(decision.again_ns, now + CKT_QUANTUM_SKIP_NS);
	/* No room is kept for who cannot be served. */
	IS(ckt_quantum_kept(&quantum, NULL, 0), 0);
	for (int i = 0; i < 20; i++)
		ckt_quantum_failed(&members[0], now);
	decide(0);
	IS(decision.again_ns, now + CKT_QUANTUM_SKIP_MOST_NS);
	now += CKT_QUANTUM_SKIP_MOST_NS;
	IS(decide(0), CKT_QUANTUM_EVICT);
}

static void test_between(void)
{
	begin(3);
	out(1);
	out(2);
	want(1, 2 * BYTES);
	now++;
	want(2, BYTES / 2);
	members[0].fixed = true;
	/* The first cannot be served: the second fits beside. */
	IS(decide(BYTES), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 2);
	IS(decision.reason, CKT_QUANTUM_BETWEEN);
	now += MS;
	ckt_quantum_came(&members[2], now);
	members[2].here[0] = BYTES / 2;
	members[0].fixed = false;
	now += 100 * SECOND;
	members[2].in_since_ns = now;
	/* It has no quantum against the first. */
	IS(decide(BYTES / 2), CKT_QUANTUM_EVICT);
}

/* It comes in behind one that leaves, as soon as a part of that has left; never with more than it frees. */
static void test_behind(void)
{
	begin(3);
	members[2].fixed = true;
	out(1);
	want(1, BYTES);
	members[1].follows = true;
	now += 100 * SECOND;
	IS(decide(0), CKT_QUANTUM_EVICT);
	members[0].leaving = true;
	IS(decide(0), CKT_QUANTUM_WAIT);
	NO(ckt_quantum_gives(&quantum, 0));
	members[0].giving = true;
	members[0].here[0] = BYTES - 2 * MIB;
	YES(ckt_quantum_gives(&quantum, 0));
	members[1].want[0] = BYTES + 2 * MIB;
	IS(decide(2 * MIB), CKT_QUANTUM_WAIT);
	members[1].want[0] = BYTES;
	members[1].follows = false;
	IS(decide(2 * MIB), CKT_QUANTUM_WAIT);
	members[1].follows = true;
	IS(decide(2 * MIB), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 1);
	YES(decision.behind);
	IS(decision.reason, CKT_QUANTUM_BEHIND);
	members[1].coming = true;
	/* What it still wants is kept for it: nothing is left for another. */
	members[1].want[0] -= 2 * MIB;
	want(2, 2 * MIB);
	IS(decide(2 * MIB), CKT_QUANTUM_WAIT);
	IS(ckt_quantum_kept(&quantum, &members[2], 0), BYTES - 2 * MIB);
	/* The other one cannot leave: it is in the way no more. */
	ckt_quantum_failed(&members[0], now);
	NO(ckt_quantum_gives(&quantum, 0));
	ckt_quantum_failed(&members[1], now);
	IS(decide(2 * MIB), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 2);
}

/* A part of it fits, and begins to come in so early that it is there when the other one leaves. */
static void test_ahead(void)
{
	begin(2);
	out(1);
	want(1, BYTES);
	members[1].follows = true;
	members[0].in_since_ns = now;
	now += ckt_quantum_length_ns(&quantum, &members[0], &members[1], 0) - 25 * MS;
	IS(decide(BYTES / 2), CKT_QUANTUM_WAIT);
	now += 5 * MS;
	IS(decide(BYTES / 32), CKT_QUANTUM_WAIT);
	IS(decide(BYTES / 2), CKT_QUANTUM_ADMIT);
	YES(decision.behind);
	IS(decision.reason, CKT_QUANTUM_AHEAD);
	members[1].coming = true;
	members[1].want[0] -= BYTES / 2;
	members[1].got_bytes = BYTES / 2;
	IS(decide(0), CKT_QUANTUM_WAIT);
	IS(decision.again_ns, now + 20 * MS);
	now += 20 * MS;
	IS(decide(0), CKT_QUANTUM_EVICT);
	IS(member_of(decision.member), 0);
	IS(member_of(decision.waiter), 1);
	members[0].leaving = true;
	IS(decide(0), CKT_QUANTUM_WAIT);
	YES(members[1].ahead);
	members[0].giving = true;
	IS(decide(0), CKT_QUANTUM_WAIT);
	NO(members[1].ahead);
}

/* The one that was to leave does not, or only much later: it gives back what it has. */
static void test_ahead_in_vain(void)
{
	begin(2);
	out(1);
	want(1, BYTES);
	members[1].follows = true;
	members[0].in_since_ns = now;
	now += ckt_quantum_length_ns(&quantum, &members[0], &members[1], 0) - 15 * MS;
	IS(decide(BYTES / 2), CKT_QUANTUM_ADMIT);
	members[1].coming = true;
	members[1].want[0] -= BYTES / 2;
	members[0].skip_until_ns = now + CKT_QUANTUM_KEPT_NS - MS;
	IS(decide(0), CKT_QUANTUM_WAIT);
	YES(members[1].ahead);
	members[0].fixed = true;
	IS(decide(0), CKT_QUANTUM_WAIT);
	NO(members[1].ahead);
	ckt_quantum_failed(&members[1], now);
	NO(members[1].chosen);
	/* One that leaves anyway is waited for, while it drains. */
	now += 100 * SECOND;
	members[0].fixed = false;
	members[0].skip_until_ns = 0;
	members[1].want[0] = BYTES;
	IS(decide(0), CKT_QUANTUM_EVICT);
	members[0].leaving = true;
	IS(decide(BYTES / 2), CKT_QUANTUM_ADMIT);
	IS(decision.reason, CKT_QUANTUM_AHEAD);
}

static bool both_ways;
static struct quanta_program copies[8];
static struct quanta_result result;

static double ratio(uint64_t bytes, int64_t gpu_ns, int64_t own_ns, double rate)
{
	for (unsigned i = 0; i < 2; i++)
		copies[i] = (struct quanta_program){.bytes = bytes,
			.gpu_ns = gpu_ns,
			.own_ns = own_ns,
			.rounds = 10,
			.begins_ns = i * SECOND,
			.follows = both_ways};
	quanta_run(copies, 2, 16 * GIB, rate, 60 * SECOND, 4000 * SECOND, &result);
	IS(result.finished, 2);
	YES(!result.overfull);
	return (double)result.ended_ns / (double)quanta_alone_ns(copies, 2);
}

/* Two copies of each of nvshare's mixes, the second a second later, against one after the other, in virtual time. */
static void test_mixes(void)
{
	both_ways = false;
	YES(ratio(4 * GIB, 10 * SECOND, 10 * SECOND, 50e9) <= 0.75);
	IS(result.outs, 0);
	YES(ratio(4 * GIB, 18 * SECOND, 2 * SECOND, 50e9) <= 1.03);
	IS(result.outs, 0);
	YES(ratio(14 * GIB, 10 * SECOND, 10 * SECOND, 50e9) <= 0.75);
	YES(result.outs > 0 && result.outs <= 20);
	YES(ratio(14 * GIB, 18 * SECOND, 2 * SECOND, 50e9) <= 1.03);
	YES(result.outs > 0 && result.outs <= 20);
	/* Idle times that are shorter than a switch: quanta alone, no switch for each of them. */
	YES(ratio(14 * GIB, 90 * MS, 10 * MS, 50e9) <= 1.10);
	YES(result.outs <= 4);
}

/* The same with both ways at once: a switch takes one way's time, and most of what comes in does so meanwhile. */
static void test_both_ways(void)
{
	both_ways = false;
	double one_way = ratio(14 * GIB, 18 * SECOND, 2 * SECOND, 5e9);
	IS(result.met, 0);
	double switching = result.switching;
	both_ways = true;
	YES(ratio(14 * GIB, 18 * SECOND, 2 * SECOND, 5e9) < one_way);
	YES(result.met > 0);
	YES(result.switching < switching * 0.75);
	YES(ratio(14 * GIB, 10 * SECOND, 10 * SECOND, 50e9) <= 0.75);
	YES(ratio(14 * GIB, 18 * SECOND, 2 * SECOND, 50e9) <= 1.03);
	YES(ratio(14 * GIB, 90 * MS, 10 * MS, 50e9) <= 1.10);
	both_ways = false;
}

static uint64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* Whatever the mix: all end, the GPU is never too full, and nobody waits much longer than a round. */
static void test_random(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t state = seed;
		unsigned count = 2 + (unsigned)(next(&state) % 7);
		for (unsigned i = 0; i < count; i++)
			copies[i] = (struct quanta_program){.bytes = (1 + next(&state) % 15) * GIB,
				.gpu_ns = (int64_t)(1 + next(&state) % 500) * 10 * MS,
				.own_ns = (int64_t)(next(&state) % 500) * 10 * MS,
				.rounds = 1 + (unsigned)(next(&state) % 8),
				.follows = seed % 2,
				.begins_ns = (int64_t)(next(&state) % 1000) * 10 * MS};
		quanta_run(copies, count, 16 * GIB, 50e9, 10 * SECOND, 4000 * SECOND, &result);
		IS(result.finished, count);
		YES(!result.overfull);
		for (unsigned i = 0; i < count; i++)
			YES(copies[i].longest_wait_ns <= 25 * SECOND);
	}
}

/* ---- Gangs */

enum { GPUS = 2, SWITCH_MS = 20 };

/*
 * Two programs of two ranks each, a rank a GPU, whose memory does not fit together.  They begin with
 * one rank of each there.  How much of the time all ranks of one program are there, in percent.
 */
static unsigned together_percent(bool gangs)
{
	int64_t moves_at[MEMBERS] = {0}, end, both = 0;
	now = 5 * SECOND;
	memset(members, 0, sizeof members);
	ckt_quantum_init(&quantum, 60 * SECOND);
	for (unsigned i = 0; i < MEMBERS; i++) {
		members[i].weight = 100;
		members[i].gang = gangs ? 1 + i / GPUS : 0;
		ckt_quantum_add(&quantum, &members[i], now);
	}
	/* Members 0, 1: the first program's ranks on GPU 0, 1; 2, 3: the second's. */
	for (unsigned i = 0; i < MEMBERS; i++) {
		unsigned gpu = i % GPUS;
		members[i].want[gpu] = BYTES;
		if (i == 0 || i == 3) {
			members[i].here[gpu] = BYTES;
			continue;
		}
		ckt_quantum_left(&quantum, &members[i], BYTES, SWITCH_MS * MS, now);
		members[i].want_since_ns = now + i * MS;
	}
	for (end = now + 60 * SECOND; now < end; now += MS) {
		for (unsigned gpu = 0; gpu < GPUS; gpu++) {
			uint64_t used = members[gpu].here[gpu] + members[GPUS + gpu].here[gpu];
			ckt_quantum_decide(&quantum, gpu, BYTES - used, now, &decision);
			if (!decision.step)
				continue;
			moves_at[member_of(decision.member)] = now + SWITCH_MS * MS;
			if (decision.step == CKT_QUANTUM_EVICT) {
				decision.member->leaving = true;
			} else {
				decision.member->coming = true;
				decision.member->here[gpu] = BYTES;
			}
		}
		for (unsigned i = 0; i < MEMBERS; i++) {
			struct ckt_quantum_member *m = &members[i];
			if (moves_at[i] != now)
				continue;
			if (m->coming) {
				m->coming = false;
				ckt_quantum_came(m, now);
				continue;
			}
			m->here[i % GPUS] = 0;
			ckt_quantum_left(&quantum, m, BYTES, SWITCH_MS * MS, now);
			/* It has work all the time. */
			m->want_since_ns = now;
		}
		for (unsigned i = 0; i < MEMBERS; i += GPUS)
			both += (!members[i].out && !members[i].coming && !members[i + 1].out &&
					!members[i + 1].coming)
				? MS
				: 0;
	}
	/* Each has its part. */
	for (unsigned i = 0; i < MEMBERS; i++)
		YES(members[i].ins >= 15);
	return (unsigned)(both * 100 / (60 * SECOND));
}

static void test_gangs(void)
{
	unsigned apart = together_percent(false), gangs = together_percent(true);
	printf("(%u%% of the time together, without gangs %u%%) ", gangs, apart);
	YES(apart < 20);
	YES(gangs >= 85);
}

/* On one GPU: the second rank is served before others that began to wait between the two. */
static void test_gang_on_one_gpu(void)
{
	begin(4);
	for (unsigned i = 0; i < 3; i++) {
		out(i);
		now += MS;
		want(i, BYTES / 2);
	}
	members[0].gang = members[2].gang = 7;
	IS(decide(BYTES / 2), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 0);
	members[0].here[0] = BYTES / 2;
	ckt_quantum_came(&members[0], now);
	IS(decide(BYTES / 2), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 2);
	members[2].here[0] = BYTES / 2;
	ckt_quantum_came(&members[2], now);
	/* In the next round it waits as long as any other. */
	now += SECOND;
	out(2);
	now += MS;
	want(2, BYTES / 2);
	IS(decide(BYTES / 2), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 1);
}

/* Of two GPUs, one has room at once: members leave the other for it, too. */
static void test_two_gpus(void)
{
	begin(3);
	out(0);
	members[1].here[0] = 0;
	members[1].here[1] = BYTES;
	members[1].idle_since_ns = now - 10 * SECOND;
	now += MS;
	want(0, BYTES);
	members[0].want[1] = BYTES;
	IS(decide(BYTES), CKT_QUANTUM_ADMIT);
	IS(member_of(decision.member), 0);
	ckt_quantum_decide(&quantum, 1, 0, now, &decision);
	IS(decision.step, CKT_QUANTUM_EVICT);
	IS(member_of(decision.member), 1);
	members[1].leaving = true;
	ckt_quantum_decide(&quantum, 1, 0, now, &decision);
	IS(decision.step, CKT_QUANTUM_WAIT);
	/* The room of both is kept for it. */
	IS(ckt_quantum_kept(&quantum, NULL, 0), BYTES);
	IS(ckt_quantum_kept(&quantum, NULL, 1), BYTES);
	/* Who is on its way in makes nobody leave. */
	members[1].leaving = false;
	members[0].coming = true;
	ckt_quantum_decide(&quantum, 1, 0, now, &decision);
	IS(decision.step, CKT_QUANTUM_WAIT);
}

UNIT_SUITE(quantum, {"fits", test_fits}, {"quantum", test_quantum}, {"max_wait", test_max_wait},
	{"idle", test_idle}, {"least_needed", test_least_needed}, {"stays", test_stays},
	{"between", test_between}, {"behind", test_behind}, {"ahead", test_ahead},
	{"ahead in vain", test_ahead_in_vain}, {"mixes", test_mixes}, {"both ways", test_both_ways},
	{"random", test_random}, {"gangs", test_gangs}, {"gang_on_one_gpu", test_gang_on_one_gpu},
	{"two GPUs", test_two_gpus})
