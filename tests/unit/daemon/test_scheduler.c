/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/scheduler.c: choices that a scheduler decides, in time or not. */
#include "server/daemon/session/scheduler.h"

#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/event_ring.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/memory_wait.h"

#define MIB ((uint64_t)1 << 20)

enum { SESSIONS = 3 };

static struct ckt_session *sessions[SESSIONS];
static const struct ckt_wait_policy *policy_before;
static char said[CKT_MESSAGE_MAX];
static int fd;

/* The first holds all; the others wait for 40 and 60 MiB, as requests that are told. */
static void begin(const char *text, uint64_t ret_requests[SESSIONS])
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa1", "bbbbbbbbbbb1", "ccccccccccc1"};
	memset(&server.scheduler, 0, sizeof server.scheduler);
	MUST(ckt_scheduler_open(&server, text), 0);
	policy_before = server.waits.policy;
	server.waits.policy = &server.scheduler.policy;
	ckt_scheduler_attach(&server);
	server.ledger.budgets[0] = 100 * MIB;
	server.when_full = CKT_WHEN_FULL_WAIT;
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->serial = (uint64_t)i + 1;
		sessions[i]->child = true;
		MUST(ckt_lease_open(sessions[i]), 0);
		run_for(2);
	}
	ckt_ledger_force(&sessions[0]->lease.holder, 0, 100 * MIB);
	for (uint32_t i = 1; i < SESSIONS; i++) {
		IS(ckt_memory_wait_ask(sessions[i], i, 0, (20 + 20 * i) * MIB), CKT_MEMORY_WAIT);
		ret_requests[i] = server.waits.requests;
	}
	fd = control_new();
	ckt_memory_wait_look(&server);
}

static void release_all(void)
{
	YES(ckt_ledger_give(&sessions[0]->lease.holder, 0, 100 * MIB) == 0);
	ckt_memory_wait_freed(sessions[0], 0, 100 * MIB);
	ckt_memory_wait_look(&server);
}

static void end(void)
{
	close(fd);
	run_for(5);
	for (int i = 0; i < SESSIONS; i++) {
		ckt_lease_close(sessions[i]);
		session_drop(sessions[i]);
	}
	run_for(5);
	ckt_timer_clear(&server.scheduler.timer);
	server.waits.outside = NULL;
	server.waits.policy = policy_before;
	memset(&server.scheduler, 0, sizeof server.scheduler);
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	server.when_full = CKT_WHEN_FULL_FAIL;
}

static void follow(void)
{
	ckt_control_events_args args = {.after = UINT64_MAX};
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(9, CRICKET_CONTROL_PROG, CKT_CONTROL_FACTS,
		     (xdrproc_t)xdr_ckt_control_events_args, &args, &data, &size),
		0);
	send_bytes(fd, data, size, -1);
	free(data);
	run_for(5);
	YES(peer_last()->follows);
}

static bool choose(uint64_t event, uint64_t request, ckt_control_action action)
{
	return ckt_scheduler_choose(&server, event, request, action, "me", said, sizeof said);
}

/* Nobody follows: the fallback decides at once, and nothing is asked. */
static void test_alone(void)
{
	uint64_t requests[SESSIONS];
	begin("external:best-fit,60", requests);
	TEXT(server.waits.policy->name, "external:best-fit");
	release_all();
	IS(server.scheduler.choice, 0);
	IS(server.waits.count, 0);
	IS(sessions[2]->lease.holder.leased[0], 60 * MIB);
	end();
}

static void test_decisions(void)
{
	uint64_t requests[SESSIONS];
	begin("external,60", requests);
	follow();
	release_all();
	uint64_t first = server.scheduler.choice;
	YES(first != 0);
	IS(server.scheduler.count, 2);
	IS(server.waits.count, 2);
	NO(choose(first - 1, requests[1], CKT_CONTROL_GRANT));
	HAS(said, "asks nothing");
	NO(choose(0, requests[1], CKT_CONTROL_GRANT));
	NO(choose(first, requests[1] + 100, CKT_CONTROL_GRANT));
	HAS(said, "is no candidate");
	/* Looking again changes nothing; other candidates do. */
	ckt_memory_wait_look(&server);
	IS(server.scheduler.choice, first);
	YES(choose(first, requests[2], CKT_CONTROL_GRANT));
	ckt_memory_wait_look(&server);
	IS(sessions[2]->lease.holder.leased[0], 60 * MIB);
	uint64_t second = server.scheduler.choice;
	YES(second > first);
	NO(choose(first, requests[1], CKT_CONTROL_GRANT));
	HAS(said, "is decided: grant request");
	YES(choose(second, requests[1], CKT_CONTROL_REFUSE));
	ckt_memory_wait_look(&server);
	IS(server.waits.count, 0);
	IS(server.scheduler.choice, 0);
	IS(sessions[1]->lease.holder.leased[0], 0);
	end();
}

/* What is granted out of turn is checked, too. */
static void test_checked(void)
{
	uint64_t requests[SESSIONS];
	begin("external,60", requests);
	NO(ckt_scheduler_decide(&server, requests[1], CKT_CONTROL_GRANT, "me", said, sizeof said));
	HAS(said, "other sessions hold the memory");
	NO(ckt_scheduler_decide(&server, 4711, CKT_CONTROL_GRANT, "me", said, sizeof said));
	HAS(said, "waits no more");
	IS(server.waits.count, 2);
	IS(ckt_ledger_budget_used(&server.ledger, 0), 100 * MIB);
	end();
}

/* A withdrawn candidate changes the choice, whose time does not begin anew. */
static void test_changes(void)
{
	uint64_t requests[SESSIONS];
	begin("external,60", requests);
	follow();
	release_all();
	uint64_t first = server.scheduler.choice;
	int64_t due_ms = server.scheduler.due_ms;
	YES(ckt_memory_wait_withdraw(sessions[1], 1, false));
	ckt_memory_wait_look(&server);
	YES(server.scheduler.choice > first);
	IS(server.scheduler.due_ms, due_ms);
	NO(choose(first, requests[2], CKT_CONTROL_GRANT));
	HAS(said, "a later event asks again");
	YES(ckt_memory_wait_withdraw(sessions[2], 2, false));
	run_for(2);
	end();
}

static bool is_served(void *data)
{
	(void)data;
	return server.waits.count == 0;
}

/* One that decides nothing costs one timeout; one that ends, none. */
static void test_timeout(void)
{
	uint64_t requests[SESSIONS];
	begin("external,0.02", requests);
	follow();
	release_all();
	uint64_t choice = server.scheduler.choice;
	YES(run_until(is_served, NULL));
	YES(server.scheduler.silent);
	NO(choose(choice, requests[1], CKT_CONTROL_GRANT));
	HAS(said, "no decision came in time, and fifo decided");
	NO(server.scheduler.silent);
	end();
	begin("external,60", requests);
	follow();
	release_all();
	YES(server.scheduler.choice != 0);
	close(fd);
	YES(run_until(is_served, NULL));
	fd = control_new();
	end();
}

/* "wait" holds them all back, until the server asks again. */
static void test_wait(void)
{
	uint64_t requests[SESSIONS];
	begin("external,0.05", requests);
	follow();
	release_all();
	uint64_t first = server.scheduler.choice;
	YES(choose(first, 0, CKT_CONTROL_WAIT));
	IS(server.scheduler.choice, 0);
	ckt_memory_wait_look(&server);
	IS(server.waits.count, 2);
	NO(choose(first, requests[1], CKT_CONTROL_GRANT));
	HAS(said, "is decided: wait, by me");
	YES(run_until(is_served, NULL));
	YES(server.scheduler.past_count >= 2);
	end();
}

UNIT_SUITE(scheduler, {"alone", test_alone}, {"decisions", test_decisions},
	{"checked", test_checked}, {"changes", test_changes}, {"timeout", test_timeout},
	{"wait", test_wait})
