/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/lease_left.c: what a worker that has ended had leased is nobody's until those
 * that shared memory with it have answered, and counts for its owner, but is no session.
 */
#include "server/daemon/session/lease_left.h"

#include "inside.h"
#include "server/daemon/session/lease.h"

#define MIB ((uint64_t)1 << 20)

static struct ckt_session *session;

static void begin(void)
{
	struct ckt_limit_rule rule;
	char message[256];
	session = session_new("aaaaaaaaaaa1");
	session->uid = 1001;
	server.ledger.budgets[0] = 100 * MIB;
	MUST(ckt_limit_rule_parse("user=1001 memory=80M", &rule, message, sizeof message), 0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
	session->lease.is_holder = true;
	session->lease.holder.subject = ckt_lease_subject(session);
	session->lease.holder.leased[0] = 60 * MIB;
	ckt_ledger_add(&server.ledger, &session->lease.holder);
}

static void worker_ends(void)
{
	ckt_ledger_remove(&server.ledger, &session->lease.holder);
	session->lease.is_holder = false;
	session_drop(session);
}

static void end(void)
{
	ckt_limit_table_free(&server.ledger.limits);
	server.ledger.budgets[0] = 0;
	YES(server.ledger.first == NULL);
}

static void test_answers(void)
{
	const struct ckt_limit_subject other = {.session = "aaaaaaaaaaa2", .owner = 1001};
	begin();
	struct ckt_lease_left *left = ckt_lease_left_begin(session);
	MUST(left != NULL, true);
	worker_ends();
	IS(ckt_ledger_budget_used(&server.ledger, 0), 60 * MIB);
	IS(ckt_ledger_left(&server.ledger, &other, 0, true), 20 * MIB);
	IS(ckt_ledger_sessions(&server.ledger, &server.ledger.limits.rules[0], &other), 0);
	ckt_lease_left_await(left);
	ckt_lease_left_answered(left);
	IS(ckt_ledger_budget_used(&server.ledger, 0), 60 * MIB);
	ckt_lease_left_answered(left);
	IS(ckt_ledger_budget_used(&server.ledger, 0), 0);
	IS(ckt_ledger_left(&server.ledger, &other, 0, true), 80 * MIB);
	end();
}

/* What only a worker knew, nobody can keep for it.  Where nothing is kept, nothing is to be answered. */
static void test_none(void)
{
	begin();
	session->lease.holder.unsettled = true;
	YES(ckt_lease_left_begin(session) == NULL);
	worker_ends();
	IS(ckt_ledger_budget_used(&server.ledger, 0), 0);
	ckt_lease_left_await(NULL);
	ckt_lease_left_answered(NULL);
	end();
}

UNIT_SUITE(lease_left, {"answers", test_answers}, {"none", test_none})
