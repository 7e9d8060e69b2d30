/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/fact_calls.c: who is told what of decisions. */
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/event_ring.h"

static ckt_control_facts_res res;

static void ask(int fd, uint64_t after)
{
	ckt_control_events_args args = {.after = after};
	xdr_free((xdrproc_t)xdr_ckt_control_facts_res, (char *)&res);
	memset(&res, 0, sizeof res);
	YES(control(fd, CKT_CONTROL_FACTS, (xdrproc_t)xdr_ckt_control_events_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_facts_res, &res));
}

static void forget(int fd)
{
	xdr_free((xdrproc_t)xdr_ckt_control_facts_res, (char *)&res);
	memset(&res, 0, sizeof res);
	close(fd);
	run_for(2);
}

static void test_facts(void)
{
	struct ckt_session *session = session_new("0000000000e5");
	uint64_t before = ckt_event_ring_last();
	int fd = control_new();
	server.ledger.budgets[0] = 4096;
	ckt_daemon_event(session, CKT_EVENT_SAVED, "an image");
	ckt_decision_event(&server, session, CKT_EVENT_WAIT,
		&(struct ckt_event_facts){.reason = "full", .gpu = 0, .bytes = 2048}, "so");
	ckt_decision_event(
		&server, NULL, CKT_EVENT_CHOOSE, &(struct ckt_event_facts){.gpu = -1}, "who");
	ask(fd, before ? before : UINT64_MAX);
	MUST(res.facts.facts_len, 3);
	const ckt_control_fact *facts = res.facts.facts_val;
	TEXT(facts[0].event.name, "saved");
	IS(facts[0].gpu, -1);
	TEXT(facts[1].event.name, "wait");
	TEXT(facts[1].reason, "full");
	IS(facts[1].bytes, 2048);
	IS(facts[1].budget_bytes, 4096);
	YES(strncmp(facts[1].owner.name, "uid:", 4) == 0);
	TEXT(facts[2].event.name, "choose");
	TEXT(facts[2].owner.name, "");
	IS(facts[2].candidates.candidates_len, 0);
	IS(res.last, before + 3);
	IS(res.lost, 0);
	/* Earlier calls tell of sessions alone. */
	ckt_control_events_args args = {.after = before};
	ckt_control_events_res old = {0};
	YES(control(fd, CKT_CONTROL_EVENTS, (xdrproc_t)xdr_ckt_control_events_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_events_res, &old));
	IS(old.events.events_len, 1);
	xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&old);
	server.ledger.budgets[0] = 0;
	forget(fd);
	session_drop(session);
}

/* More than a page, and more than is kept. */
static void test_pages(void)
{
	uint64_t before = ckt_event_ring_last();
	int fd = control_new();
	for (int i = 0; i < 3000; i++)
		ckt_decision_event(&server, NULL, CKT_EVENT_DECIDED,
			&(struct ckt_event_facts){.gpu = -1}, "%d", i);
	ask(fd, before);
	IS(res.facts.facts_len, CKT_CONTROL_FACTS_MAX);
	IS(res.lost, 3000 - 2048);
	TEXT(res.facts.facts_val[0].event.detail, "952");
	ask(fd, res.last);
	IS(res.lost, 0);
	TEXT(res.facts.facts_val[0].event.detail, "1016");
	forget(fd);
}

/* Of another owner's session, and of what all hold, a user learns nothing. */
static void test_owners(void)
{
	struct ckt_session *mine = session_new("0000000000e6"),
			   *other = session_new("0000000000e7");
	uint64_t before = ckt_event_ring_last();
	struct ckt_event_facts facts = {.gpu = 0, .bytes = 2048};
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	peer->who.uid = mine->uid = 4711;
	other->uid = 4712;
	server.ledger.budgets[0] = 4096;
	ckt_decision_event(&server, other, CKT_EVENT_WAIT, &facts, "other");
	ckt_decision_event(&server, NULL, CKT_EVENT_CHOOSE, &facts, "who");
	ckt_decision_event(&server, mine, CKT_EVENT_WAIT, &facts, "mine");
	ask(fd, before);
	MUST(res.facts.facts_len, 1);
	TEXT(res.facts.facts_val[0].event.detail, "mine");
	IS(res.facts.facts_val[0].budget_bytes, 0);
	IS(res.facts.facts_val[0].used_bytes, 0);
	NO(peer->follows);
	server.ledger.budgets[0] = 0;
	forget(fd);
	session_drop(mine);
	session_drop(other);
}

UNIT_SUITE(fact_calls, {"facts", test_facts}, {"pages", test_pages}, {"owners", test_owners})
