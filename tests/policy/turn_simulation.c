/* SPDX-License-Identifier: Apache-2.0 */
/* Turns in virtual time; see turn_simulation.h. */
#include "tests/policy/turn_simulation.h"

#include <stdbool.h>

#include "server/daemon/policy/turn_order.h"
#include "tests/policy/simulation.h"

#define MS INT64_C(1000000)

enum { BURSTS = 20 };

struct session {
	struct ckt_turn_member member;
	unsigned bursts;   /* to come, the present one included */
	int64_t left_ns;   /* of the present burst */
	int64_t wakes_ns;  /* its next burst; while it does not want */
	int64_t wanted_ns; /* since when it waits for the first turn of a burst; -1: it does not */
	bool awake;
};

struct run {
	struct ckt_turn_ring ring;
	struct session sessions[TURN_SIMULATION_MEMBERS_MAX];
	unsigned count;
	uint64_t random;
	int64_t now_ns;
	int64_t until_ns; /* the holder's turn */
	struct turn_simulation_result *result;
};

static struct session *session_of(struct run *run, const struct ckt_turn_member *member)
{
	for (unsigned i = 0; i < run->count; i++)
		if (&run->sessions[i].member == member)
			return &run->sessions[i];
	return NULL;
}

static void wake(struct run *run)
{
	for (unsigned i = 0; i < run->count; i++) {
		struct session *s = &run->sessions[i];
		if (s->awake || !s->bursts || s->wakes_ns > run->now_ns)
			continue;
		s->awake = true;
		s->left_ns = (1 + (int64_t)simulation_draw(&run->random, 60)) * MS;
		s->wanted_ns = run->now_ns;
		ckt_turn_want(&run->ring, &s->member);
	}
}

static void take_turn(struct run *run, struct session *s, int64_t length_ns)
{
	struct turn_simulation_result *result = run->result;
	run->until_ns = run->now_ns + s->left_ns;
	if (length_ns && run->now_ns + length_ns < run->until_ns)
		run->until_ns = run->now_ns + length_ns;
	result->turns++;
	if (s->wanted_ns < 0)
		return;
	int64_t waited_ms = (run->now_ns - s->wanted_ns) / MS;
	s->wanted_ns = -1;
	result->waits++;
	result->waited_ms += (double)waited_ms;
	if (waited_ms > result->longest_wait_ms)
		result->longest_wait_ms = waited_ms;
}

/* When something must be decided again; 0: not by itself. */
static int64_t decide(struct run *run)
{
	struct ckt_turn_decision decision;
	for (;;) {
		ckt_turn_decide(&run->ring, run->now_ns, &decision);
		if (decision.step == CKT_TURN_NOTHING)
			return decision.again_ns;
		struct session *s = session_of(run, decision.member);
		if (decision.step == CKT_TURN_GIVES)
			take_turn(run, s, decision.length_ns);
		else if (run->now_ns + decision.length_ns < run->until_ns)
			run->until_ns = run->now_ns + decision.length_ns;
	}
}

static void give_back(struct run *run)
{
	struct session *s = session_of(run, run->ring.holder);
	s->left_ns -= run->now_ns - run->ring.given_ns;
	bool more = s->left_ns > 0;
	ckt_turn_yield(&run->ring, &s->member, run->ring.number, more, run->now_ns);
	if (more)
		return;
	s->awake = false;
	s->wakes_ns = run->now_ns + (int64_t)simulation_draw(&run->random, 40) * MS;
	if (!--s->bursts)
		run->result->finished++;
}

/* The time of the next event; -1: there is none. */
static int64_t next_event(const struct run *run, int64_t again_ns)
{
	int64_t next = run->ring.holder ? run->until_ns : -1;
	for (unsigned i = 0; i < run->count; i++) {
		const struct session *s = &run->sessions[i];
		if (!s->awake && s->bursts && (next < 0 || s->wakes_ns < next))
			next = s->wakes_ns;
	}
	return again_ns && (next < 0 || again_ns < next) ? again_ns : next;
}

void turn_simulation_run(unsigned count, uint64_t seed, struct turn_simulation_result *result)
{
	static const unsigned weights[] = {100, 300, 500};
	struct run run = {.count = count, .random = seed * 2 + 1, .result = result};
	for (unsigned i = 0; i < count; i++) {
		struct session *s = &run.sessions[i];
		*s = (struct session){.member = {.class = CKT_TURN_PLAIN,
					      .weight = weights[simulation_draw(&run.random, 3)]},
			.bursts = BURSTS,
			.wakes_ns = (int64_t)simulation_draw(&run.random, 100) * MS,
			.wanted_ns = -1};
		ckt_turn_add(&run.ring, &s->member, 0);
	}
	for (int64_t next = 0; next >= 0;) {
		run.now_ns = next > run.now_ns ? next : run.now_ns;
		if (run.ring.holder && run.now_ns >= run.until_ns)
			give_back(&run);
		wake(&run);
		next = next_event(&run, decide(&run));
	}
	if (run.now_ns / MS > result->ended_ms)
		result->ended_ms = run.now_ns / MS;
}
