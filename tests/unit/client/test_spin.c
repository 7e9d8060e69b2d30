/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/spin.c: who polls, for how long. */
#include <cuda.h>
#include <pthread.h>
#include <time.h>

#include "base/crowd.h"
#include "client/conn/settings.h"
#include "client/conn/spin.h"
#include "tests/unit/suite.h"

static int64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void machine(unsigned processors, int spin_us, bool given)
{
	ckt_settings.processors = processors;
	ckt_settings.spin_us = spin_us;
	ckt_settings.spin_given = given;
}

enum { NONE, SHORT, LONG };

static int length(const struct ckt_spin *spin, int64_t before_us)
{
	if (!spin->until_us)
		return NONE;
	return spin->until_us - before_us >= CKT_SPIN_LONG_US ? LONG : SHORT;
}

/* Once more where this thread stood still between the two, and they say nothing of each other. */
static struct ckt_spin begin_at(int64_t *ret_before_us)
{
	for (;;) {
		*ret_before_us = now_us();
		struct ckt_spin spin = ckt_spin_begin();
		if (now_us() - *ret_before_us < CKT_SPIN_LONG_US / 2)
			return spin;
		ckt_spin_end();
	}
}

static int begin(unsigned flags)
{
	int64_t before;
	ckt_spin_schedule(flags);
	struct ckt_spin spin = begin_at(&before);
	ckt_spin_end();
	IS(spin.yield, length(&spin, before) == LONG && flags == CU_CTX_SCHED_YIELD);
	return length(&spin, before);
}

static void test_schedule(void)
{
	static const struct {
		unsigned processors, flags;
		int spin_us;
		bool given;
		int length;
	} rows[] = {
		{16, CU_CTX_SCHED_AUTO, 50, false, LONG},
		{16, CU_CTX_SCHED_SPIN, 50, false, LONG},
		{16, CU_CTX_SCHED_YIELD, 50, false, LONG},
		{16, CU_CTX_SCHED_BLOCKING_SYNC, 50, false, SHORT},
		{2, CU_CTX_SCHED_AUTO, 0, false, NONE},
		{2, CU_CTX_SCHED_YIELD, 0, false, NONE},
		{2, CU_CTX_SCHED_SPIN, 0, false, LONG},
		{1, CU_CTX_SCHED_SPIN, 0, false, NONE},
		{16, CU_CTX_SCHED_AUTO, 20, true, SHORT},
		{16, CU_CTX_SCHED_SPIN, 0, true, NONE},
		{16, CU_CTX_SCHED_AUTO | CU_CTX_MAP_HOST, 50, false, LONG},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		machine(rows[i].processors, rows[i].spin_us, rows[i].given);
		IS(begin(rows[i].flags), rows[i].length);
		IS(ckt_spin_sleeps(), rows[i].flags == CU_CTX_SCHED_BLOCKING_SYNC);
	}
}

/*
 * More threads than half of the processors: those beyond sleep, and may poll when others are done.
 */
static void test_threads(void)
{
	machine(8, 50, false);
	ckt_spin_schedule(CU_CTX_SCHED_AUTO);
	int64_t before = now_us();
	for (int i = 0; i < 4; i++) {
		struct ckt_spin spin = ckt_spin_begin();
		IS(length(&spin, before), LONG);
	}
	struct ckt_spin fifth = begin_at(&before);
	YES(fifth.until_us - before < CKT_SPIN_LONG_US);
	ckt_spin_end();
	ckt_spin_end();
	before = now_us();
	struct ckt_spin again = ckt_spin_begin();
	IS(length(&again, before), LONG);
	for (int i = 0; i < 4; i++)
		ckt_spin_end();
}

static void test_end(void)
{
	machine(2, 0, false);
	struct ckt_spin none = ckt_spin_short(), over = {.until_us = 1},
			far = {.until_us = now_us() + 3600000000ll, .yield = true};
	NO(ckt_spin_again(&none));
	NO(ckt_spin_again(&over));
	YES(ckt_spin_again(&far));
	machine(16, 3600000, true);
	struct ckt_spin given = ckt_spin_short();
	YES(ckt_spin_again(&given));
}

static int64_t switches;
static unsigned asked;

static int64_t preempted(void)
{
	asked++;
	return switches += CKT_CROWD_SWITCHES;
}

/* What a thread sees in a crowd, which lasts for CKT_CROWD_PAUSE_NS. */
struct seen {
	unsigned asked_short, asked_long, asked_after;
	bool again;
	int lengths[3];
	int64_t took_us;
};

/* In a thread of its own: the others of the process have not seen it. */
static void *spin_in_a_crowd(void *opaque)
{
	static const unsigned flags[] = {CU_CTX_SCHED_AUTO, CU_CTX_SCHED_YIELD, CU_CTX_SCHED_SPIN};
	struct seen *seen = opaque;
	asked = 0;
	ckt_spin_schedule(CU_CTX_SCHED_AUTO);
	struct ckt_spin brief = ckt_spin_short();
	while (ckt_spin_again(&brief))
		;
	seen->asked_short = asked;
	int64_t before = now_us();
	struct ckt_spin spin = ckt_spin_begin();
	while (ckt_spin_again(&spin))
		;
	ckt_spin_end();
	seen->asked_long = asked;
	seen->again = ckt_spin_again(&spin);
	for (unsigned i = 0; i < COUNT(flags); i++)
		seen->lengths[i] = begin(flags[i]);
	seen->asked_after = asked;
	seen->took_us = now_us() - before;
	return NULL;
}

static void test_crowd(void)
{
	int64_t (*kernels)(void) = ckt_crowd_switches;
	const int64_t soon_us = CKT_CROWD_WINDOW_NS / 2000;
	struct seen seen = {.took_us = INT64_MAX};
	pthread_t thread;
	machine(16, 50, false);
	ckt_crowd_switches = preempted;
	/* Another thread where this one stood still: its spin, or its crowd, was over meanwhile. */
	for (int i = 0; i < 1000 && seen.took_us > soon_us; i++) {
		MUST(pthread_create(&thread, NULL, spin_in_a_crowd, &seen), 0);
		pthread_join(thread, NULL);
	}
	ckt_crowd_switches = kernels;
	YES(seen.took_us <= soon_us);
	IS(seen.asked_short, 0);
	YES(seen.asked_long >= 2);
	NO(seen.again);
	for (unsigned i = 0; i < COUNT(seen.lengths); i++)
		IS(seen.lengths[i], SHORT);
	IS(seen.asked_after, seen.asked_long);
	IS(begin(CU_CTX_SCHED_AUTO), LONG);
}

UNIT_SUITE(spin, {"schedule", test_schedule}, {"threads", test_threads}, {"end", test_end},
	{"crowd", test_crowd})
