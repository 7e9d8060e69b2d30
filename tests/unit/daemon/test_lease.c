/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/lease.c: questions of workers, what their neighbours give back for them, and
 * workers that say what cannot be.
 */
#include "server/daemon/session/lease.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/lease.h"

#define MIB ((uint64_t)1 << 20)

enum { SESSIONS = 3 };

static struct ckt_session *sessions[SESSIONS];
static int channels[SESSIONS];
static ckt_worker_lease leases[4];
static uint32_t number;

static void limit(const char *line)
{
	struct ckt_limit_rule rule;
	char message[256] = "";
	MUST(ckt_limit_rule_parse(line, &rule, message, sizeof message), 0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
}

static void open_lease(int i)
{
	worker.lease_channel = -1;
	worker.leases.gpus.gpus_val = leases;
	MUST(ckt_lease_open(sessions[i]), 0);
	run_for(2);
	MUST(worker.lease_channel >= 0, true);
	channels[i] = worker.lease_channel;
	worker.lease_channel = 0;
}

/* Two of one owner, with a limit or without, and one of another's. */
static void begin(const char *line)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa1", "aaaaaaaaaaa2", "bbbbbbbbbbb1"};
	if (line) {
		limit(line);
		limit("user=1002 memory=1T");
	}
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->uid = i < 2 ? 1001 : 1002;
		sessions[i]->child = true;
		sessions[i]->status.gpu = 0;
		open_lease(i);
		IS(ckt_lease_open(sessions[i]), 0); /* once */
	}
	memset(worker.calls, 0, sizeof worker.calls);
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		if (sessions[i]) {
			ckt_lease_close(sessions[i]);
			ckt_lease_close(sessions[i]);
			session_drop(sessions[i]);
		}
		close(channels[i]);
	}
	ckt_limit_table_free(&server.ledger.limits);
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	YES(server.ledger.first == NULL);
	worker.leases.gpus.gpus_len = 0;
	worker.silent_on = 0;
}

static void say(int i, struct ckt_lease_message message)
{
	MUST(send(channels[i], &message, sizeof message, MSG_NOSIGNAL), sizeof message);
	run_for(5);
}

static void ask(int i, uint64_t mib, uint64_t want_mib)
{
	say(i,
		(struct ckt_lease_message){.kind = CKT_LEASE_ASK,
			.number = ++number,
			.bytes = mib * MIB,
			.want = want_mib * MIB});
}

/* MiB of the answer; -1: none has come, -2: the channel is closed. */
static int answered(int i, struct ckt_lease_message *ret_message)
{
	struct ckt_lease_message own, *message = ret_message ? ret_message : &own;
	ssize_t n = recv(channels[i], message, sizeof *message, MSG_DONTWAIT);
	if (n <= 0)
		return n ? -1 : -2;
	IS(message->kind, CKT_LEASE_ANSWER);
	IS(message->number, number);
	return (int)(message->bytes / MIB);
}

static int asked(int i, uint64_t mib)
{
	ask(i, mib, mib);
	return answered(i, NULL);
}

static bool is_answered(void *data)
{
	char byte;
	return recv(channels[*(int *)data], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static void test_ask(void)
{
	struct ckt_lease_message message;
	begin("user=1001 memory=100M");
	ask(0, 2, 66);
	IS(answered(0, &message), 14); /* an eighth of what is left ahead */
	IS(message.total, 100 * MIB);
	IS(message.left, 86 * MIB);
	IS(asked(1, 86), 86);
	IS(worker.calls[CKT_WORKER_LEASE_RECALL], 0);
	IS(asked(2, 1 << 14), 1 << 14);
	/* How much there is; nobody is asked for that. */
	ask(1, 0, 0);
	IS(answered(1, &message), 0);
	IS(message.left, 0);
	ask(2, 0, 0);
	IS(answered(2, &message), 0);
	IS(message.left, ((uint64_t)1 << 40) - ((uint64_t)16 << 30));
	IS(worker.calls[CKT_WORKER_LEASE_RECALL], 0);
	/* What comes back is there at once. */
	say(1, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 30 * MIB});
	IS(asked(0, 30), 30);
	/* A worker that ends leaves everything. */
	ckt_lease_close(sessions[0]);
	IS(asked(1, 44), 44);
	end();
}

/* Of the neighbours that share a limit alone; refused when they have answered. */
static void test_recall(void)
{
	begin("user=1001 memory=100M");
	IS(asked(0, 60), 60);
	IS(asked(2, 60), 60);
	worker.leases.gpus.gpus_len = 1;
	leases[0] = (ckt_worker_lease){.leased_bytes = 50 * MIB, .given_bytes = 10 * MIB};
	IS(asked(1, 50), 50);
	IS(worker.calls[CKT_WORKER_LEASE_RECALL], 1);
	leases[0].given_bytes = 0;
	IS(asked(1, 2), 0);
	IS(worker.calls[CKT_WORKER_LEASE_RECALL], 2);
	/* What is in use already counts in any case. */
	say(1,
		(struct ckt_lease_message){.kind = CKT_LEASE_ASK,
			.number = ++number,
			.flags = CKT_LEASE_FORCE,
			.bytes = 4 * MIB,
			.want = 4 * MIB});
	IS(answered(1, NULL), 4);
	IS(sessions[1]->lease.holder.leased[0], 54 * MIB);
	end();
}

/* A neighbour that says nothing keeps its lease, and one that ends leaves it. */
static void test_silent(void)
{
	int second = 1;
	begin("user=1001 memory=100M");
	IS(asked(0, 60), 60);
	worker.silent_on = CKT_WORKER_LEASE_RECALL;
	IS(asked(1, 50), -1);
	YES(run_until(is_answered, &second));
	IS(answered(1, NULL), 0);
	IS(asked(1, 50), -1);
	ckt_lease_close(sessions[0]);
	session_drop(sessions[0]);
	sessions[0] = NULL;
	YES(run_until(is_answered, &second));
	IS(answered(1, NULL), 50);
	end();
}

/* A limit that comes while they run: nothing is granted before all have said what they use. */
static void test_unsettled(void)
{
	begin(NULL);
	YES(worker.lease.unlimited);
	YES(sessions[0]->lease.holder.unsettled);
	limit("user=1001 memory=100M");
	worker.leases.gpus.gpus_len = 1;
	leases[0] = (ckt_worker_lease){.leased_bytes = 40 * MIB};
	ckt_lease_limits_changed(&server);
	/* Before its answer: it waits, and what came back early is not counted. */
	say(0, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 6 * MIB});
	ask(0, 2, 2);
	IS(answered(0, NULL), 2);
	IS(worker.calls[CKT_WORKER_LEASE_RECALL], 2);
	NO(sessions[0]->lease.holder.unsettled || sessions[1]->lease.holder.unsettled);
	YES(sessions[2]->lease.holder.unsettled);
	YES(sessions[0]->lease.holder.leased[0] <= 42 * MIB);
	IS(sessions[1]->lease.holder.leased[0], 40 * MIB);
	leases[0].given_bytes = 0;
	IS(asked(1, 100), 0);
	end();
	/* One of an earlier server says it at the beginning, another never. */
	begin(NULL);
	limit("user=1001 memory=100M");
	ckt_lease_close(sessions[0]);
	close(channels[0]);
	sessions[0]->lease = (struct ckt_daemon_lease){0};
	sessions[0]->child = false;
	worker.leases.gpus.gpus_len = 1;
	leases[0] = (ckt_worker_lease){.leased_bytes = 30 * MIB};
	open_lease(0);
	NO(sessions[0]->lease.holder.unsettled);
	IS(sessions[0]->lease.holder.leased[0], 30 * MIB);
	worker.accept_stat = 3;
	sessions[1]->status.memory_bytes = 50 * MIB + 1;
	leases[0].given_bytes = 0;
	IS(asked(0, 20), 0);
	IS(asked(0, 18), 18);
	worker.accept_stat = 0;
	end();
}

/* Workers of an earlier server: nothing is granted before each has said what it has, or is gone. */
static void test_unknown(void)
{
	begin("user=1001 memory=100M");
	for (int gone = 0; gone < 2; gone++) {
		ckt_lease_close(sessions[0]);
		close(channels[0]);
		sessions[0]->lease = (struct ckt_daemon_lease){0};
		sessions[0]->child = false;
		ckt_lease_is_unknown(sessions[0]);
		IS(asked(1, 40), -1);
		worker.leases.gpus.gpus_len = 1;
		leases[0] = (ckt_worker_lease){.leased_bytes = 30 * MIB};
		if (gone)
			ckt_lease_close(sessions[0]);
		else
			open_lease(0);
		run_for(5);
		IS(answered(1, NULL), 40);
		worker.leases.gpus.gpus_len = 0;
		IS(asked(1, 40), gone ? 40 : 0);
		say(1, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 40 * MIB});
	}
	end();
}

/* Whatever a worker sends, it costs its own channel alone, and nobody's memory. */
static void test_lies(void)
{
	const struct ckt_lease_message wrong[] = {
		{.kind = 9},
		/* of a session in time */
		{.kind = CKT_LEASE_END},
		{.kind = CKT_LEASE_ANSWER, .bytes = 2 * MIB},
		{.kind = CKT_LEASE_GIVE, .bytes = 4 * MIB},
		{.kind = CKT_LEASE_GIVE, .bytes = 1},
		{.kind = CKT_LEASE_GIVE, .gpu = 64},
		{.kind = CKT_LEASE_ASK, .gpu = CKT_DEVICES_MAX},
		{.kind = CKT_LEASE_ASK, .bytes = 1, .want = 1},
		{.kind = CKT_LEASE_ASK, .bytes = 4 * MIB, .want = 2 * MIB},
		{.kind = CKT_LEASE_ASK,
			.flags = CKT_LEASE_FORCE,
			.bytes = UINT64_MAX & ~(2 * MIB - 1),
			.want = UINT64_MAX},
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		begin("user=1001 memory=100M");
		IS(asked(0, 2), 2);
		say(0, wrong[i]);
		IS(answered(0, NULL), -2);
		IS(sessions[0]->lease.holder.leased[0], 2 * MIB);
		IS(asked(1, 98), 98);
		end();
	}
	/* A packet of another size; a second question before the answer. */
	begin("user=1001 memory=100M");
	MUST(send(channels[0], "short", 5, MSG_NOSIGNAL), 5);
	run_for(5);
	IS(answered(0, NULL), -2);
	IS(asked(2, 2), 2);
	worker.silent_on = CKT_WORKER_LEASE_RECALL;
	IS(asked(1, 60), 60);
	end();
	/* A recall's answer with more than it has, a GPU twice, or no GPU. */
	for (int i = 0; i < 3; i++) {
		begin("user=1001 memory=100M");
		IS(asked(0, 60), 60);
		worker.leases.gpus.gpus_len = i == 1 ? 2 : 1;
		leases[0] = leases[1] = (ckt_worker_lease){.given_bytes = i ? 0 : 62 * MIB};
		if (i == 2)
			leases[0].gpu = 64;
		IS(asked(1, 50), 0);
		IS(sessions[0]->lease.holder.leased[0], 60 * MIB);
		IS(answered(0, NULL), -2);
		end();
	}
}

UNIT_SUITE(lease, {"ask", test_ask}, {"recall", test_recall}, {"silent", test_silent},
	{"unsettled", test_unsettled}, {"unknown", test_unknown}, {"lies", test_lies})
