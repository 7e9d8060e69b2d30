/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/metrics/counters.c: what is counted where, and the buckets of stop times. */
#include <string.h>

#include "inside.h"
#include "server/daemon/metrics/counters.h"

static void test_checkpoints(void)
{
	memset(&ckt_counters, 0, sizeof ckt_counters);
	ckt_count_checkpoint("a", false, 7, 7);
	IS(ckt_counters.checkpoint_failures, 1);
	IS(ckt_counters.checkpoints + ckt_counters.checkpoint_bytes + ckt_counters.stop_us, 0);
	ckt_count_checkpoint("a", true, 100, 0);
	ckt_count_checkpoint("a", true, 100, 1000);
	ckt_count_checkpoint("a", true, 100, 1001);
	ckt_count_checkpoint("a", true, 100, UINT64_C(1) << 40);
	IS(ckt_counters.checkpoints, 4);
	IS(ckt_counters.checkpoint_bytes, 400);
	IS(ckt_counters.stops[0], 1);
	IS(ckt_counters.stops[1], 1);
	IS(ckt_counters.stops[CKT_STOP_BUCKETS - 1], 1);
	IS(ckt_counters.stop_us, 2001 + (UINT64_C(1) << 40));
}

static void test_decisions(void)
{
	struct ckt_decision decision = {.answer = CKT_POLICY_BUSY};
	memset(&ckt_counters, 0, sizeof ckt_counters);
	ckt_count_decision(CKT_QUESTION_PAUSE, &decision);
	IS(ckt_counters.decisions[CKT_QUESTION_PAUSE][CKT_POLICY_BUSY], 1);
	TEXT(ckt_counted_question_name(CKT_QUESTION_MEMORY), "memory");
	TEXT(ckt_counted_answer_name(CKT_POLICY_STOPPING), "stopping");
	/* A real question: a session that does not live yet cannot be paused. */
	struct ckt_session *session = session_new("c0c0c0c0c0c0");
	session->phase = CKT_SESSION_STARTING;
	ckt_ask_pause(session, &decision);
	IS(ckt_counters.decisions[CKT_QUESTION_PAUSE][decision.answer],
		decision.answer == CKT_POLICY_BUSY ? 2 : 1);
	YES(decision.answer != CKT_POLICY_YES);
	session->phase = CKT_SESSION_LIVE;
	session_drop(session);
}

static void test_turns(void)
{
	memset(&ckt_counters, 0, sizeof ckt_counters);
	ckt_count_turn("a", 3, CKT_TURN_WAS_LIMITED, 5);
	IS(ckt_counters.turns[3][CKT_TURN_WAS_LIMITED], 1);
	TEXT(ckt_counted_turn_name(CKT_TURN_WAS_OVERDUE), "overdue");
}

UNIT_SUITE(counters, {"checkpoints", test_checkpoints}, {"decisions", test_decisions},
	{"turns", test_turns})
