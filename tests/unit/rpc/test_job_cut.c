/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/job_cut.c: whom to let on, until none has anything left to do: over sessions that are
 * played here, whose work waits for each other's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rpc/job_cut.h"
#include "tests/unit/suite.h"

enum { RANKS = 3, ROUNDS_MAX = 20000, NEAR = 3 };

/*
 * Programs that issue commands; every `period`th is a collective, which ends once all have issued
 * as many.
 */
static struct {
	uint64_t executed, left, bound;
	unsigned period;
	bool counts;
} play[RANKS];

static bool decide(
	struct ckt_job_cut *cut, struct ckt_job_rank *ranks, unsigned count, int64_t now_ms)
{
	struct ckt_job_rank *all[RANKS];
	for (unsigned i = 0; i < count; i++)
		all[i] = &ranks[i];
	return ckt_job_cut_decide(cut, all, count, now_ms);
}

static uint64_t collectives(unsigned r)
{
	return play[r].executed / play[r].period;
}

static void play_on(struct ckt_job_rank *ranks)
{
	uint64_t least = UINT64_MAX;
	for (unsigned r = 0; r < RANKS; r++) {
		if (ranks[r].step) {
			play[r].left = ranks[r].step_commands;
			play[r].bound = ranks[r].step_issued;
		}
		ranks[r].step = false;
		/* So many a millisecond. */
		for (unsigned i = 0; i < 2000 && play[r].left &&
			!(play[r].bound && collectives(r) >= play[r].bound);
			i++) {
			play[r].executed++;
			play[r].left--;
		}
		if (play[r].bound && collectives(r) >= play[r].bound)
			play[r].left = 0;
		least = collectives(r) < least ? collectives(r) : least;
	}
	for (unsigned r = 0; r < RANKS; r++) {
		ranks[r].drained = collectives(r) == least;
		ranks[r].commands = play[r].left;
		ranks[r].issued = play[r].counts ? collectives(r) : 0;
	}
}

/* How long it took, in milliseconds of the play; 0: it never came. */
static int64_t find_cut(struct ckt_job_rank *ranks)
{
	struct ckt_job_cut cut;
	int64_t now = 1000;
	ckt_job_cut_begin(&cut, now);
	for (unsigned i = 0; i < ROUNDS_MAX; i++, now++) {
		play_on(ranks);
		if (decide(&cut, ranks, RANKS, now))
			return now - 999;
	}
	return 0;
}

static void begin_play(const uint64_t executed[RANKS], unsigned period, bool counts)
{
	for (unsigned r = 0; r < RANKS; r++)
		memset(&play[r], 0, sizeof play[r]), play[r].executed = executed[r],
						     play[r].period = period,
						     play[r].counts = counts;
}

static void test_meet(void)
{
	static const uint64_t starts[][RANKS] = {{0, 0, 0}, {100, 100, 100}, {100, 199, 100},
		{1000, 0, 500}, {1, 30000, 7}, {12345, 678, 12000}};
	for (size_t i = 0; i < COUNT(starts); i++)
		for (unsigned period = 1; period <= 100; period += 33)
			/*
			 * Without counts three ranks that are far apart may take longer than any
			 * deadline.
			 */
			for (int counts = i >= NEAR; counts < 2; counts++) {
				struct ckt_job_rank ranks[RANKS] = {{0}};
				begin_play(starts[i], period, counts);
				int64_t took = find_cut(ranks);
				YES(took > 0);
				NO(counts && took > 100);
				for (unsigned r = 0; r < RANKS; r++)
					IS(collectives(r), collectives(0));
			}
}

/* With counts nobody gets further than the furthest was. */
static void test_exact(void)
{
	struct ckt_job_rank ranks[RANKS] = {{0}};
	begin_play((uint64_t[]){1000, 320, 10}, 10, true);
	YES(find_cut(ranks) > 0);
	IS(play[0].executed, 1000);
	IS(play[1].executed, 1000);
	IS(play[2].executed, 1000);
}

/* What was let on and finds nothing to do counts only once it is stopped. */
static void test_idle(void)
{
	struct ckt_job_rank ranks[2] = {{.drained = true, .commands = 5}, {.drained = true}};
	struct ckt_job_cut cut;
	ckt_job_cut_begin(&cut, 0);
	NO(decide(&cut, ranks, 2, 0));
	YES(ranks[0].step && ranks[0].step_commands == 0 && !ranks[1].step);
	ranks[0].commands = 0;
	YES(decide(&cut, ranks, 2, 1));
}

/* Those that are stuck are let on as well where the others find nothing to do. */
static void test_everybody(void)
{
	struct ckt_job_rank ranks[2] = {{.drained = true}, {.drained = false}};
	struct ckt_job_cut cut;
	bool first = false, second = false;
	ckt_job_cut_begin(&cut, 0);
	for (int64_t now = 0; now < 1000 && !second; now++) {
		ranks[0].step = ranks[1].step = false;
		NO(decide(&cut, ranks, 2, now));
		first |= ranks[0].step;
		second |= ranks[1].step;
		if (ranks[0].step)
			ranks[0].commands = ranks[0].step_commands;
		NO(second && !first);
	}
	YES(second);
}

/* The session that the others wait for is named, not one that was let on for its sake. */
static void test_late(void)
{
	struct ckt_job_rank ranks[RANKS] = {
		{.drained = true}, {.drained = true}, {.drained = true}};
	struct ckt_job_rank *all[RANKS] = {&ranks[0], &ranks[1], &ranks[2]};
	IS(ckt_job_cut_late(all, RANKS), RANKS);
	ranks[0].drained = false;
	IS(ckt_job_cut_late(all, RANKS), 0);
	ranks[1] = (struct ckt_job_rank){.tells = true};
	IS(ckt_job_cut_late(all, RANKS), 1);
	ranks[2] = (struct ckt_job_rank){.stuck = true};
	IS(ckt_job_cut_late(all, RANKS), 2);
	ranks[1].stuck = true;
	IS(ckt_job_cut_late(all, RANKS), 1);
}

UNIT_SUITE(job_cut, {"meet", test_meet}, {"exact", test_exact}, {"idle", test_idle},
	{"everybody", test_everybody}, {"late", test_late})
