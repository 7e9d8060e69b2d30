/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/memory_wait.c: questions of workers that wait, how they hear of the end, and
 * workers that lie about waits.
 */
#include "server/daemon/session/memory_wait.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/lease.h"
#include "server/daemon/session/lease.h"

#define MIB ((uint64_t)1 << 20)

enum { SESSIONS = 3 };

static struct ckt_session *sessions[SESSIONS];
static int channels[SESSIONS];
static uint32_t number;

static void begin(void)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa1", "aaaaaaaaaaa2", "bbbbbbbbbbb1"};
	server.ledger.budgets[0] = 100 * MIB;
	server.when_full = CKT_WHEN_FULL_WAIT;
	worker.leases.gpus.gpus_len = 0;
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->uid = 1001;
		sessions[i]->serial = (uint64_t)i + 1;
		sessions[i]->child = true;
		sessions[i]->status.gpu = 0;
		worker.lease_channel = -1;
		MUST(ckt_lease_open(sessions[i]), 0);
		run_for(2);
		channels[i] = worker.lease_channel;
		worker.lease_channel = 0;
	}
	memset(worker.calls, 0, sizeof worker.calls);
	memset(&worker.waited, 0, sizeof worker.waited);
	worker.pressed = false;
}

static void drop(int i)
{
	ckt_lease_close(sessions[i]);
	session_drop(sessions[i]);
	sessions[i] = NULL;
	run_for(5);
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		if (sessions[i])
			drop(i);
		close(channels[i]);
	}
	IS(server.waits.count, 0);
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	ckt_limit_table_free(&server.ledger.limits);
	server.when_full = CKT_WHEN_FULL_FAIL;
	server.options.wait_timeout = 0;
	server.swap_told = false;
	worker.hang_up = false;
}

static void say(int i, struct ckt_lease_message message)
{
	MUST(send(channels[i], &message, sizeof message, MSG_NOSIGNAL), sizeof message);
	run_for(5);
}

/* The answer to a question, whose bytes are 0 without one. */
static struct ckt_lease_message ask(int i, uint64_t mib, uint32_t flags)
{
	struct ckt_lease_message answer = {0};
	say(i,
		(struct ckt_lease_message){.kind = CKT_LEASE_ASK,
			.number = ++number,
			.flags = flags,
			.bytes = mib * MIB,
			.want = mib * MIB});
	if (recv(channels[i], &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer)
		answer.kind = 0;
	return answer;
}

static void give(int i, uint64_t mib)
{
	say(i, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = mib * MIB});
}

static void test_wait(void)
{
	begin();
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	struct ckt_lease_message answer = ask(1, 40, 0);
	IS(answer.kind, CKT_LEASE_ANSWER);
	IS(answer.bytes, 0);
	IS(answer.flags, CKT_LEASE_MAY_WAIT);
	NO(worker.pressed);
	answer = ask(1, 40, CKT_LEASE_WAIT);
	IS(answer.bytes, 0);
	IS(answer.flags, CKT_LEASE_WAIT);
	run_for(5);
	YES(worker.pressed);
	IS(worker.calls[CKT_WORKER_LEASE_PRESS], SESSIONS);
	IS(worker.calls[CKT_WORKER_LEASE_WAITED], 0);
	give(0, 10);
	IS(server.waits.count, 1);
	give(0, 10);
	IS(server.waits.count, 0);
	IS(worker.waited.number, number);
	IS(worker.waited.bytes, 40 * MIB);
	run_for(5);
	NO(worker.pressed);
	IS(sessions[1]->lease.holder.leased[0], 40 * MIB);
	/* Granted at once, though it might have waited. */
	IS(ask(2, 0, CKT_LEASE_WAIT).flags, 0);
	give(1, 40);
	IS(ask(2, 40, CKT_LEASE_WAIT).bytes, 40 * MIB);
	/* What nobody else has is refused at once. */
	answer = ask(2, 200, CKT_LEASE_WAIT);
	IS(answer.flags, 0);
	IS(answer.bytes, 0);
	end();
}

static void test_ends(void)
{
	begin();
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	IS(ask(2, 30, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	/* A session that ends takes its wait along, and leaves its memory. */
	drop(1);
	IS(server.waits.count, 1);
	drop(0);
	IS(server.waits.count, 0);
	IS(worker.waited.bytes, 30 * MIB);
	end();
	/* Withdrawn by the worker: no call follows; a second time it means nothing. */
	begin();
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	struct ckt_lease_message withdraw = {
		.kind = CKT_LEASE_WITHDRAW, .number = number, .flags = CKT_LEASE_KEEP_PLACE};
	say(1, withdraw);
	IS(server.waits.count, 0);
	YES(sessions[1]->lease.holder.kept_place > 0);
	say(1, withdraw);
	YES(sessions[1]->lease.open);
	/* Another session's number is none of its own. */
	IS(ask(2, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	withdraw.number = number;
	say(1, withdraw);
	IS(server.waits.count, 1);
	IS(worker.calls[CKT_WORKER_LEASE_WAITED], 0);
	end();
	/* A worker that cannot be told: the next one has the memory. */
	begin();
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	close(channels[1]);
	channels[1] = -1;
	run_for(5);
	IS(server.waits.count, 0);
	end();
}

static void test_timeout(void)
{
	begin();
	/* Nobody waits for so long in the meantime. */
	server.options.wait_timeout = 60;
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	server.waits.first->since_ms -= 59999;
	ckt_memory_wait_look(&server);
	run_for(20);
	IS(server.waits.count, 0);
	IS(worker.waited.number, number);
	IS(worker.waited.bytes, 0);
	end();
}

static void test_whom(void)
{
	struct ckt_limit_rule rule;
	char message[128];
	begin();
	server.when_full = CKT_WHEN_FULL_FAIL;
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, 0);
	IS(ask(1, 40, 0).flags, 0);
	IS(server.waits.count, 0);
	MUST(ckt_limit_rule_parse(
		     "session=aaaaaaaaaaa2 when-full=swap", &rule, message, sizeof message),
		0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
	IS(ask(1, 40, 0).flags, CKT_LEASE_MAY_WAIT);
	YES(server.swap_told);
	IS(ask(2, 40, 0).flags, 0);
	YES(ckt_memory_wait_admits(&server, 0));
	end();
}

/* One worker cannot take all waits, nor another's memory. */
static void test_lies(void)
{
	begin();
	server.ledger.budgets[0] = 1000 * MIB;
	IS(ask(0, 1000, 0).bytes, 1000 * MIB);
	for (unsigned i = 0; i < CKT_WAITS_EACH; i++)
		IS(ask(1, 2, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	IS(ask(1, 2, CKT_LEASE_WAIT).flags, 0);
	IS(server.waits.count, CKT_WAITS_EACH);
	IS(ask(2, 2, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	YES(sessions[1]->lease.open);
	/* What is forced is counted, and does not wait. */
	IS(ask(2, 4, CKT_LEASE_WAIT | CKT_LEASE_FORCE).bytes, 4 * MIB);
	end();
}

static void test_options(void)
{
	char message[128] = "";
	server.options.wait_policy = (char *)"worst";
	IS(ckt_memory_wait_open(&server, message, sizeof message), -EINVAL);
	HAS(message, "--wait-policy");
	server.options.wait_policy = (char *)"best-fit";
	server.options.when_full = (char *)"never";
	IS(ckt_memory_wait_open(&server, message, sizeof message), -EINVAL);
	server.options.when_full = (char *)"wait";
	uint64_t memory = server.driver.gpus[0].memory_bytes;
	server.driver.gpus[0].memory_bytes = 3 * MIB;
	IS(ckt_memory_wait_open(&server, message, sizeof message), 0);
	IS(server.when_full, CKT_WHEN_FULL_WAIT);
	TEXT(server.waits.policy->name, "best-fit");
	/* Without --gpu-memory: what the card has. */
	IS(server.ledger.budgets[0], 2 * MIB);
	server.driver.gpus[0].memory_bytes = memory;
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	server.options.wait_policy = server.options.when_full = NULL;
	server.when_full = CKT_WHEN_FULL_FAIL;
	IS(ckt_memory_wait_open(&server, message, sizeof message), 0);
	TEXT(server.waits.policy->name, "fifo");
}

UNIT_SUITE(memory_wait, {"wait", test_wait}, {"ends", test_ends}, {"timeout", test_timeout},
	{"whom", test_whom}, {"lies", test_lies}, {"options", test_options})
