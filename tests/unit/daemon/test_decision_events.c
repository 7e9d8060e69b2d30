/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/decision_events.c: what is told of a decision, and floods that are folded. */
#include "server/daemon/decision_events.h"

#include <string.h>

#include "inside.h"
#include "server/daemon/event_ring.h"

static const struct ckt_event_facts facts = {
	.reason = "because", .request = 7, .gpu = 1, .bytes = 4096, .waited_ms = 3};

static unsigned count_after(uint64_t after)
{
	unsigned count = 0;
	const struct ckt_kept_event *kept;
	for (; (kept = ckt_event_ring_next(after, true)); after = kept->number)
		count++;
	return count;
}

static void test_facts(void)
{
	struct ckt_session *session = session_new("0000000000f1");
	uint64_t before = ckt_event_ring_last();
	strcpy(session->job, "train");
	session->uid = 1001;
	server.ledger.budgets[1] = 8192;
	ckt_decision_event(&server, session, CKT_EVENT_GRANTED, &facts, "%d", 5);
	ckt_decision_event(&server, NULL, CKT_EVENT_CHOOSE, &facts, "who");
	const struct ckt_kept_event *kept = ckt_event_ring_next(before, true);
	IS(kept->name, CKT_EVENT_GRANTED);
	IS(kept->uid, 1001);
	NO(kept->general);
	TEXT(kept->session, "0000000000f1");
	TEXT(kept->job, "train");
	TEXT(kept->program, "program");
	TEXT(kept->detail, "5");
	TEXT(kept->facts.reason, "because");
	IS(kept->facts.request, 7);
	IS(kept->budget_bytes, 8192);
	kept = ckt_event_ring_next(before + 1, true);
	YES(kept->general);
	TEXT(kept->session, "");
	server.ledger.budgets[1] = 0;
	session_drop(session);
	run_for(5);
}

static void test_folds(void)
{
	struct ckt_session *session = session_new("0000000000f2"),
			   *other = session_new("0000000000f3");
	uint64_t before = ckt_event_ring_last();
	for (int i = 0; i < 14; i++)
		ckt_decision_event(&server, session, CKT_EVENT_REFUSED, &facts, "no");
	ckt_decision_event(&server, other, CKT_EVENT_REFUSED, &facts, "no");
	IS(count_after(before), 2);
	for (int i = 0; i < 200; i++)
		ckt_decision_event(&server, session, CKT_EVENT_LEASED, &facts, "some");
	IS(count_after(before), 2 + 128);
	ckt_decision_events_gone(session);
	IS(count_after(before), 2 + 128 + 2);
	const struct ckt_kept_event *refused = ckt_event_ring_next(before + 130, true),
				    *leased = ckt_event_ring_next(refused->number, true);
	if (refused->name != CKT_EVENT_REFUSED) {
		const struct ckt_kept_event *swap = refused;
		refused = leased;
		leased = swap;
	}
	IS(refused->folded, 12);
	TEXT(refused->detail, "because, and 12 more");
	IS(refused->facts.bytes, 4096);
	/* The bytes of all that it stands for. */
	IS(leased->folded, 71);
	IS(leased->facts.bytes, 72 * 4096);
	/* Nothing is left. */
	ckt_decision_events_gone(session);
	IS(count_after(before), 2 + 128 + 2);
	session_drop(session);
	session_drop(other);
	run_for(5);
}

/* What is folded is told after a second, without anything else that happens. */
static bool is_told(void *data)
{
	return ckt_event_ring_last() > *(uint64_t *)data;
}

static void test_timer(void)
{
	struct ckt_session *session = session_new("0000000000f4");
	for (int i = 0; i < 130; i++)
		ckt_decision_event(&server, session, CKT_EVENT_FREED, &facts, "some");
	uint64_t before = ckt_event_ring_last();
	YES(run_until(is_told, &before));
	IS(ckt_event_ring_next(before, true)->folded, 1);
	session_drop(session);
}

UNIT_SUITE(decision_events, {"facts", test_facts}, {"folds", test_folds}, {"timer", test_timer})
