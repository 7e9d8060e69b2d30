/* SPDX-License-Identifier: Apache-2.0 */
/* base/crowd.c: when a thread that polls finds its machine crowded, and how often it asks. */
#include "base/crowd.h"

#include <pthread.h>
#include <sched.h>

#include "tests/unit/suite.h"

enum { BEGIN_NS = 1000000000, LONG_NS = 100000000 };

static int64_t counted;
static unsigned asked;

static int64_t injected(void)
{
	asked++;
	return counted;
}

/* Spins from *now_ns on with a look in each microsecond, for so many times CKT_CROWD_LOOK_NS. */
static void spin(struct ckt_crowd *crowd, int64_t *now_ns, unsigned looks)
{
	for (int64_t end_ns = *now_ns + (int64_t)looks * CKT_CROWD_LOOK_NS; *now_ns < end_ns;
		*now_ns += 1000)
		ckt_crowd_look(crowd, *now_ns);
}

/* Two looks with the switches in between: enough for a pause. */
static void preempt(struct ckt_crowd *crowd, int64_t *now_ns)
{
	spin(crowd, now_ns, 1);
	counted += CKT_CROWD_SWITCHES;
	spin(crowd, now_ns, 1);
}

static int64_t left_ns(const struct ckt_crowd *crowd, int64_t now_ns)
{
	return crowd->until_ns - now_ns;
}

/* A short spin asks nothing, a longer one once in CKT_CROWD_LOOK_NS. */
static void test_asks(void)
{
	struct ckt_crowd crowd = {0};
	int64_t now_ns = BEGIN_NS;
	ckt_crowd_switches = injected;
	asked = 0;
	for (int i = 0; i < 1000; i++) {
		ckt_crowd_begin(&crowd, now_ns);
		for (int64_t end_ns = now_ns + CKT_CROWD_LOOK_NS - 1000; now_ns < end_ns;
			now_ns += 1000)
			ckt_crowd_look(&crowd, now_ns);
	}
	IS(asked, 0);
	ckt_crowd_begin(&crowd, now_ns);
	spin(&crowd, &now_ns, 11);
	IS(asked, 10);
	/* Not during a pause. */
	preempt(&crowd, &now_ns);
	YES(ckt_crowd_is(&crowd, now_ns));
	asked = 0;
	spin(&crowd, &now_ns, 20);
	IS(asked, 0);
}

/* What happened before the spin, one switch, and switches far from each other count for nothing. */
static void test_few(void)
{
	struct ckt_crowd crowd = {0};
	int64_t now_ns = BEGIN_NS;
	ckt_crowd_switches = injected;
	counted = 1000;
	spin(&crowd, &now_ns, 3);
	NO(ckt_crowd_is(&crowd, now_ns));
	counted += CKT_CROWD_SWITCHES - 1;
	spin(&crowd, &now_ns, 3);
	NO(ckt_crowd_is(&crowd, now_ns));
	for (int i = 0; i < 10; i++) {
		now_ns += CKT_CROWD_WINDOW_NS + 1;
		counted++;
		spin(&crowd, &now_ns, 3);
		NO(ckt_crowd_is(&crowd, now_ns));
	}
	/* The program computed in between, and others ran. */
	now_ns += CKT_CROWD_WINDOW_NS + 1;
	counted += 1000;
	spin(&crowd, &now_ns, 1);
	NO(ckt_crowd_is(&crowd, now_ns));
	IS(ckt_crowd_spin_ns(&crowd, now_ns, LONG_NS), LONG_NS);
}

/* Brief spins for a pause, then long ones again. */
static void test_pause(void)
{
	struct ckt_crowd crowd = {0};
	int64_t now_ns = BEGIN_NS;
	ckt_crowd_switches = injected;
	preempt(&crowd, &now_ns);
	YES(ckt_crowd_is(&crowd, now_ns));
	IS(left_ns(&crowd, now_ns), CKT_CROWD_PAUSE_NS - CKT_CROWD_LOOK_NS);
	IS(ckt_crowd_spin_ns(&crowd, now_ns, LONG_NS), CKT_CROWD_SPIN_NS);
	IS(ckt_crowd_spin_ns(&crowd, now_ns, 20), 20);
	YES(ckt_crowd_is(&crowd, crowd.until_ns - 1));
	NO(ckt_crowd_is(&crowd, crowd.until_ns));
	IS(ckt_crowd_spin_ns(&crowd, crowd.until_ns, LONG_NS), LONG_NS);
	/* What happened during the pause does not count. */
	now_ns = crowd.until_ns;
	counted += 1000;
	spin(&crowd, &now_ns, 3);
	NO(ckt_crowd_is(&crowd, now_ns));
}

static void test_doubles(void)
{
	struct ckt_crowd crowd = {0};
	int64_t now_ns = BEGIN_NS, wanted_ns = CKT_CROWD_PAUSE_NS;
	ckt_crowd_switches = injected;
	for (int i = 0; i < 10; i++) {
		preempt(&crowd, &now_ns);
		IS(left_ns(&crowd, now_ns), wanted_ns - CKT_CROWD_LOOK_NS);
		now_ns = crowd.until_ns;
		wanted_ns = 2 * wanted_ns < CKT_CROWD_PAUSE_MAX_NS ? 2 * wanted_ns
								   : CKT_CROWD_PAUSE_MAX_NS;
	}
	IS(wanted_ns, CKT_CROWD_PAUSE_MAX_NS);
	/* After a quiet time it begins anew. */
	now_ns += CKT_CROWD_PAUSE_MAX_NS;
	preempt(&crowd, &now_ns);
	IS(left_ns(&crowd, now_ns), CKT_CROWD_PAUSE_NS - CKT_CROWD_LOOK_NS);
}

static atomic_bool over;

static void *burn(void *unused)
{
	while (!atomic_load(&over))
		;
	return unused;
}

/* Before the tests that put their own counter there: the kernel's rises with two threads on one processor. */
static void test_kernel(void)
{
	cpu_set_t all, one;
	pthread_t other;
	MUST(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	MUST(sched_setaffinity(0, sizeof one, &one), 0);
	int64_t before = ckt_crowd_switches();
	MUST(pthread_create(&other, NULL, burn, NULL), 0);
	while (ckt_crowd_switches() < before + CKT_CROWD_SWITCHES)
		;
	atomic_store(&over, true);
	pthread_join(other, NULL);
	MUST(sched_setaffinity(0, sizeof all, &all), 0);
}

UNIT_SUITE(crowd, {"kernel", test_kernel}, {"asks", test_asks}, {"few", test_few},
	{"pause", test_pause}, {"doubles", test_doubles})
