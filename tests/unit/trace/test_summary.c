/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/summary.c: the counters of all threads. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "in_child.h"
#include "tests/unit/suite.h"

static void calls(void)
{
	for (int i = 0; i < 1000; i++) {
		ckt_trace_enter(site(0));
		ckt_trace_leave();
	}
	ckt_trace_enter(site(1));
	ckt_trace_command();
	ckt_trace_command();
	uint64_t begun = ckt_trace_wait_begin();
	usleep(20000);
	ckt_trace_wait_end(begun);
	ckt_trace_leave();
	ckt_trace_sent(300);
	ckt_trace_received(40);
	ckt_trace_received(4);
}

static void test_summary(void)
{
	unsigned long long count;
	double total, mean, longest, waited;
	char name[32];
	IS(in_child(NULL, "1", calls), 0);
	const char *text = child_said();
	HAS(text, "300 bytes sent, 44 bytes received");
	IS(sscanf(text, "cricket: 1001 calls, 2 commands sent, 1 waits of %lf ms", &waited), 1);
	YES(waited >= 20);
	HAS(text, "NAME\n");
	/* What cost most comes first, although it was called once. */
	IS(sscanf(strstr(text, "NAME\n") + 5, "%llu %lf %lf %lf %31s", &count, &total, &mean,
		   &longest, name),
		5);
	IS(count, 1);
	TEXT(name, "two");
	YES(total >= 20000 && mean - longest < 0.1 && longest - mean < 0.1);
	HAS(text, "        1000 ");
	IS(occurs(text, "three"), 0);
}

static void many(void)
{
	static char names[CKT_TRACE_SITES_MAX + 10][16];
	static struct ckt_trace_site sites[CKT_TRACE_SITES_MAX + 10];
	for (unsigned i = 0; i < CKT_TRACE_SITES_MAX + 10u; i++) {
		snprintf(names[i], sizeof names[i], "f%u", i);
		sites[i].name = names[i];
		ckt_trace_enter(&sites[i]);
		ckt_trace_leave();
	}
	if (ckt_trace_state.name_count != CKT_TRACE_SITES_MAX)
		_exit(1);
}

/* Ten lines at most, and every call is counted, whether or not its function has a counter. */
static void test_many(void)
{
	IS(in_child(NULL, "1", many), 0);
	HAS(child_said(), "cricket: 4106 calls");
	IS(occurs(child_said(), "\n"), 12);
}

static void ends_at_once(void)
{
	calls();
	ckt_trace_end_now();
	ckt_trace_end_now();
}

static void locked(void)
{
	calls();
	pthread_mutex_lock(&ckt_trace_lock);
	int64_t begun = ckt_now_ns();
	ckt_trace_end_now();
	_exit(ckt_now_ns() - begun >= CKT_TRACE_END_NS ? 0 : 1);
}

static void in_vfork(void)
{
	calls();
	ckt_trace_state.pid++; /* as a child of vfork sees it */
	ckt_trace_end_now();
	if (!ckt_trace_get())
		_exit(1);
	ckt_trace_end();
	_exit(0);
}

/* _exit: once, also with ckt_trace_end behind it; never for a lock that this thread has itself. */
static void test_end_now(void)
{
	IS(in_child(own_path("now"), "1", ends_at_once), 0);
	IS(occurs(child_said(), "cricket: 1001 calls"), 1);
	HAS(file_text(own_path("now")), "cricket_trace_end");
	IS(in_child(NULL, "1", locked), 0);
	TEXT(child_said(), "");
	IS(in_child(own_path("locked"), "1", locked), 0);
	TEXT(child_said(), "");
	IS(in_child(NULL, "1", in_vfork), 0);
	TEXT(child_said(), "");
}

UNIT_SUITE(
	summary, {"summary", test_summary}, {"many functions", test_many}, {"_exit", test_end_now})
