/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/quanta.c and quantum_calls.c: sessions that swap each other out, what is told
 * of them, and workers that lie about it.
 */
#include "server/daemon/session/quanta.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "inside.h"
#include "rpc/lease.h"
#include "server/daemon/session/lease.h"

#define MIB ((uint64_t)1 << 20)
#define SECOND INT64_C(1000000000)

enum { SESSIONS = 2 };

static struct ckt_session *sessions[SESSIONS];
static int channels[SESSIONS];
static uint32_t number;
static struct ckt_activity *pages[SESSIONS];

static void begin(void)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa1", "bbbbbbbbbbb1"};
	server.ledger.budgets[0] = 100 * MIB;
	server.when_full = CKT_WHEN_FULL_SWAP;
	server.options.swap_memory = 1024 * MIB;
	server.options.max_wait = 60;
	server.options.drain = 5;
	ckt_quantum_open(&server);
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->child = true;
		sessions[i]->status.gpu = 0;
		worker.lease_channel = worker.activity = -1;
		MUST(ckt_lease_open(sessions[i]), 0);
		ckt_quantum_watch(sessions[i]);
		run_for(5);
		channels[i] = worker.lease_channel;
		pages[i] = mmap(NULL, CKT_ACTIVITY_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			worker.activity, 0);
		YES(pages[i] != MAP_FAILED);
		/* The worker cannot cut it off. */
		IS(ftruncate(worker.activity, 0), -1);
		close(worker.activity);
		worker.lease_channel = worker.activity = 0;
	}
	memset(worker.calls, 0, sizeof worker.calls);
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		ckt_lease_close(sessions[i]);
		ckt_swap_close(sessions[i]);
		session_drop(sessions[i]);
		munmap(pages[i], CKT_ACTIVITY_PAGE_SIZE);
		close(channels[i]);
	}
	run_for(5);
	CU_ASSERT_PTR_NULL(server.quantum.first);
	ckt_quantum_close(&server);
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	server.when_full = CKT_WHEN_FULL_FAIL;
	server.options.swap_memory = 0;
	server.options.idle_memory = 0;
	server.swaps = false;
	server.waits.bars = NULL;
	memset(&worker, 0, sizeof worker);
}

static void say(int i, struct ckt_lease_message message)
{
	MUST(send(channels[i], &message, sizeof message, MSG_NOSIGNAL), sizeof message);
	run_for(10);
}

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

static struct ckt_quantum_view view_of(int i)
{
	struct ckt_quantum_view view = {0};
	YES(ckt_quantum_describe(sessions[i], &view));
	return view;
}

/* The first has 80 MiB, and its quantum is over; the second waits for 40. */
static void crowd(void)
{
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	sessions[0]->quantum.member.in_since_ns = 1;
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	run_for(20);
}

static void test_switch(void)
{
	begin();
	worker.silent_on = CKT_WORKER_SWAP_YIELD;
	crowd();
	IS(worker.calls[CKT_WORKER_SWAP_YIELD], 1);
	IS(view_of(0).state, CKT_QUANTUM_MOVES);
	IS(view_of(1).state, CKT_QUANTUM_WAITS);
	IS(view_of(1).wanted_bytes, 40 * MIB);
	/* What it gives back is the waiter's, and a newcomer's only beyond that. */
	say(0, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 20 * MIB});
	run_for(20);
	IS(worker.waited.bytes, 40 * MIB);
	IS(sessions[1]->lease.holder.leased[0], 40 * MIB);
	end();
}

static void test_comes_in(void)
{
	begin();
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	/* As a swap by hand leaves it. */
	ckt_quantum_moves(sessions[0], true);
	say(0, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 80 * MIB});
	ckt_quantum_moved(
		sessions[0], true, 0, &(ckt_worker_swap_res){.swapped = true, .bytes = 80 * MIB});
	IS(view_of(0).state, CKT_QUANTUM_SWAPPED);
	IS(view_of(0).swapped_bytes, 80 * MIB);
	IS(view_of(0).outs, 1);
	IS(ckt_quantum_swapped_bytes(&server, 0), 80 * MIB);
	/* The other takes the room: a command of the first is a wish. */
	IS(ask(1, 90, 0).bytes, 90 * MIB);
	worker.silent_on = CKT_WORKER_SWAP_YIELD;
	IS(ask(0, 80, 0).bytes, 0);
	IS(view_of(0).state, CKT_QUANTUM_WAITS);
	IS(worker.calls[CKT_WORKER_SWAP_IN], 0);
	say(1, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 90 * MIB});
	worker.swapped = true;
	run_for(30);
	YES(worker.calls[CKT_WORKER_SWAP_IN] >= 1);
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	IS(view_of(0).state, CKT_QUANTUM_RUNS);
	IS(view_of(0).ins, 1);
	IS(view_of(0).swapped_bytes, 0);
	end();
}

static void test_stays(void)
{
	begin();
	worker.status = -ENOSPC;
	worker.message = "the swap memory is full";
	crowd();
	IS(view_of(0).state, CKT_QUANTUM_STAYS);
	TEXT(view_of(0).reason, "the swap memory is full");
	IS(view_of(0).outs, 0);
	IS(worker.calls[CKT_WORKER_SWAP_YIELD], 1);
	/* It is not tried again and again. */
	run_for(50);
	IS(worker.calls[CKT_WORKER_SWAP_YIELD], 1);
	IS(sessions[0]->phase, CKT_SESSION_LIVE);
	end();
}

/* It says that it gave its memory back, and keeps the lease. */
static void test_liar(void)
{
	begin();
	worker.bytes = 80 * MIB;
	worker.swapped = true;
	crowd();
	IS(worker.calls[CKT_WORKER_SWAP_YIELD], 1);
	IS(sessions[1]->lease.holder.leased[0], 0);
	IS(sessions[0]->phase, CKT_SESSION_LIVE);
	sessions[0]->quantum.promised_ns -= 3 * SECOND;
	ckt_quantum_soon(&server);
	run_for(10);
	IS(sessions[0]->phase, CKT_SESSION_ENDING);
	IS(sessions[1]->phase, CKT_SESSION_LIVE);
	end();
}

static void test_silent(void)
{
	begin();
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	sessions[0]->quantum.member.in_since_ns = 1;
	worker.garbage = true;
	IS(ask(1, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	IS(sessions[0]->phase, CKT_SESSION_LIVE);
	for (int i = 0; i < 3; i++) {
		sessions[0]->quantum.member.skip_until_ns = 0;
		ckt_quantum_soon(&server);
		run_for(20);
	}
	IS(sessions[0]->phase, CKT_SESSION_ENDING);
	end();
}

/* A page can say anything. */
static void test_page(void)
{
	begin();
	IS(view_of(0).state, CKT_QUANTUM_RUNS);
	pages[0]->idle_since_ns = ckt_now_ns() + 100 * SECOND;
	IS(view_of(0).state, CKT_QUANTUM_RUNS);
	pages[0]->idle_since_ns = INT64_MIN;
	IS(view_of(0).state, CKT_QUANTUM_RUNS);
	pages[0]->idle_since_ns = 1;
	IS(view_of(0).state, CKT_QUANTUM_IDLE);
	/* Idle since ever: it leaves at once with --idle-memory, and nobody else. */
	IS(ask(0, 8, 0).bytes, 8 * MIB);
	IS(ask(1, 8, 0).bytes, 8 * MIB);
	server.options.idle_memory = 60;
	worker.silent_on = CKT_WORKER_SWAP_YIELD;
	ckt_quantum_soon(&server);
	run_for(20);
	IS(worker.calls[CKT_WORKER_SWAP_YIELD], 1);
	IS(view_of(0).state, CKT_QUANTUM_MOVES);
	IS(view_of(1).state, CKT_QUANTUM_RUNS);
	end();
}

static void test_told(void)
{
	ckt_control_list_args args = {.after = (char *)""};
	ckt_control_quanta_res res = {0};
	begin();
	sessions[1]->uid = geteuid() + 1;
	IS(ask(0, 8, 0).bytes, 8 * MIB);
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_QUANTA, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_quanta_res, &res));
	YES(res.sessions.sessions_len >= 1);
	TEXT(res.sessions.sessions_val[0].session, "aaaaaaaaaaa1");
	IS(res.sessions.sessions_val[0].here_bytes, 8 * MIB);
	IS(res.sessions.sessions_val[0].state, CKT_CONTROL_QUANTUM_RUNS);
	NO(res.more);
	xdr_free((xdrproc_t)xdr_ckt_control_quanta_res, (char *)&res);
	/* Not those before the one that the caller has. */
	memset(&res, 0, sizeof res);
	args.after = (char *)"ffffffffffff";
	YES(control(fd, CKT_CONTROL_QUANTA, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_quanta_res, &res));
	IS(res.sessions.sessions_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_quanta_res, (char *)&res);
	close(fd);
	run_for(5);
	end();
}

/* ---- Both ways at once */

enum { STEP = 20 };

static uint64_t used(void)
{
	uint64_t bytes = ckt_ledger_budget_used(&server.ledger, 0);
	YES(bytes <= server.ledger.budgets[0]);
	return bytes;
}

static void give(int i, uint64_t mib)
{
	say(i, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = mib * MIB});
	used();
}

/* The answer that came meanwhile; kind 0: none. */
static struct ckt_lease_message answer_of(int i)
{
	struct ckt_lease_message answer = {0};
	if (recv(channels[i], &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer)
		answer.kind = 0;
	return answer;
}

/*
 * The first has 80 MiB, and leaves for the second, which is out with 80; a step of it has left, and so
 * the second comes in behind it.  Neither call is answered.
 */
static void both_ways(void)
{
	begin();
	IS(ask(1, 80, 0).bytes, 80 * MIB);
	ckt_quantum_moves(sessions[1], true);
	give(1, 80);
	ckt_quantum_moved(
		sessions[1], true, 0, &(ckt_worker_swap_res){.swapped = true, .bytes = 80 * MIB});
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	sessions[0]->quantum.member.in_since_ns = 1;
	worker.swaps_last = true;
	IS(ask(1, 80, 0).bytes, 0);
	run_for(20);
	IS(worker.calls[CKT_WORKER_SWAP_YIELD], 1);
	IS(worker.calls[CKT_WORKER_SWAP_FOLLOW], 0);
	give(0, STEP);
	run_for(20);
	IS(worker.calls[CKT_WORKER_SWAP_FOLLOW], 1);
	IS(view_of(1).state, CKT_QUANTUM_MOVES);
}

static void ends(int i, bool out, int error)
{
	struct ckt_session *session = sessions[i];
	ckt_quantum_moved(session, out, error,
		&(ckt_worker_swap_res){.status = error, .swapped = out, .bytes = 80 * MIB});
}

static void test_both_ways(void)
{
	both_ways();
	/* 40 MiB are free. */
	IS(ask(1, STEP, CKT_LEASE_FOLLOW).bytes, STEP * MIB);
	IS(ask(1, STEP, CKT_LEASE_FOLLOW).bytes, STEP * MIB);
	IS(used(), 100 * MIB);
	IS(ask(1, STEP, CKT_LEASE_FOLLOW).kind, 0);
	/* It is its own, whoever asks. */
	give(0, STEP);
	IS(sessions[1]->lease.holder.leased[0], 60 * MIB);
	IS(answer_of(1).bytes, STEP * MIB);
	IS(ask(1, STEP, CKT_LEASE_FOLLOW).kind, 0);
	give(0, STEP);
	IS(answer_of(1).bytes, STEP * MIB);
	give(0, STEP);
	IS(sessions[1]->quantum.met_bytes, 60 * MIB);
	IS(used(), 80 * MIB);
	ends(0, true, 0);
	IS(view_of(0).state, CKT_QUANTUM_MOVES);
	ends(1, false, 0);
	IS(sessions[1]->quantum.member.out, false);
	IS(sessions[1]->quantum.member.want[0], 0);
	IS(view_of(1).ins, 1);
	end();
}

/* What it took and a recall took back is asked for again; more than it was promised is not granted. */
static void test_follow_bounds(void)
{
	both_ways();
	IS(ask(1, STEP, CKT_LEASE_FOLLOW).bytes, STEP * MIB);
	give(1, STEP);
	IS(sessions[1]->quantum.member.want[0], 80 * MIB);
	IS(ask(1, 82, CKT_LEASE_FOLLOW).bytes, 0);
	IS(ask(1, 80, CKT_LEASE_FOLLOW).kind, 0);
	give(0, 60);
	IS(answer_of(1).bytes, 80 * MIB);
	IS(ask(1, 2, CKT_LEASE_FOLLOW).flags & CKT_LEASE_FOLLOW, 0);
	IS(sessions[1]->lease.holder.leased[0], 80 * MIB);
	/* Who was promised nothing asks in vain. */
	struct ckt_lease_message answer = ask(0, 2, CKT_LEASE_FOLLOW);
	IS(answer.kind, CKT_LEASE_ANSWER);
	IS(answer.bytes, 0);
	IS(sessions[0]->lease.open, true);
	end();
}

/* The one that leaves cannot, and wants its memory back: nobody waits for more of it. */
static void test_leaver_fails(void)
{
	both_ways();
	IS(ask(1, 40, CKT_LEASE_FOLLOW).bytes, 40 * MIB);
	IS(ask(1, STEP, CKT_LEASE_FOLLOW).kind, 0);
	IS(ask(0, STEP, 0).bytes, 0);
	run_for(20);
	struct ckt_lease_message answer = answer_of(1);
	IS(answer.kind, CKT_LEASE_ANSWER);
	IS(answer.bytes, 0);
	NO(answer.flags & CKT_LEASE_FOLLOW);
	give(1, 40);
	/* Not kept for the other any more. */
	IS(ask(0, STEP, 0).bytes, STEP * MIB);
	IS(used(), 80 * MIB);
	end();
}

/* It is gone with all that it had: the other one has the rest at once. */
static void test_leaver_dies(void)
{
	both_ways();
	IS(ask(1, 40, CKT_LEASE_FOLLOW).bytes, 40 * MIB);
	IS(ask(1, 40, CKT_LEASE_FOLLOW).kind, 0);
	ckt_lease_close(sessions[0]);
	run_for(20);
	IS(answer_of(1).bytes, 40 * MIB);
	IS(used(), 80 * MIB);
	end();
}

static void test_follower_dies(void)
{
	both_ways();
	IS(ask(1, 40, CKT_LEASE_FOLLOW).bytes, 40 * MIB);
	IS(used(), 100 * MIB);
	ckt_lease_close(sessions[1]);
	IS(used(), 60 * MIB);
	give(0, 60);
	IS(used(), 0);
	end();
}

/* It failed half way, and its memory is taken: what has left is out, and waits like others. */
static void test_half(void)
{
	both_ways();
	ckt_quantum_moved(sessions[0], true, -EIO,
		&(ckt_worker_swap_res){.status = -EIO, .swapped = true, .bytes = STEP * MIB});
	YES(sessions[0]->quantum.member.out);
	IS(view_of(0).here_bytes, 60 * MIB);
	IS(view_of(0).swapped_bytes, STEP * MIB);
	IS(sessions[0]->quantum.promised_bytes, STEP * MIB);
	/* Its client is idle, and it comes in all the same. */
	IS(view_of(0).wanted_bytes, STEP * MIB);
	sessions[0]->quantum.asked_ns = 1;
	ckt_quantum_facts(&server, ckt_now_ns());
	YES(sessions[0]->quantum.member.want_since_ns != 0);
	end();
}

/* Workers that leave, or come in, without an end: they may take the time that a slow disk needs. */
static void test_endless(void)
{
	for (int liar = 0; liar < 2; liar++) {
		both_ways();
		sessions[liar]->quantum.begun_ns -= 100 * SECOND;
		ckt_quantum_soon(&server);
		run_for(20);
		IS(sessions[liar]->phase, CKT_SESSION_LIVE);
		sessions[liar]->quantum.begun_ns -= 100 * SECOND;
		ckt_quantum_soon(&server);
		run_for(20);
		IS(sessions[liar]->phase, CKT_SESSION_ENDING);
		IS(sessions[1 - liar]->phase, CKT_SESSION_LIVE);
		end();
	}
}

static bool asked_to_follow(void *data)
{
	(void)data;
	return worker.calls[CKT_WORKER_SWAP_FOLLOW] != 0;
}

/* A part of it fits: it comes in before anything has left, and waits for the rest. */
static void test_ahead(void)
{
	begin();
	server.ledger.budgets[0] = 200 * MIB;
	IS(ask(1, 120, 0).bytes, 120 * MIB);
	ckt_quantum_moves(sessions[1], true);
	give(1, 120);
	ckt_quantum_moved(
		sessions[1], true, 0, &(ckt_worker_swap_res){.swapped = true, .bytes = 120 * MIB});
	IS(ask(0, 120, 0).bytes, 120 * MIB);
	sessions[0]->quantum.member.in_since_ns = 1;
	worker.swaps_last = true;
	IS(ask(1, 120, 0).bytes, 0);
	YES(run_until(asked_to_follow, NULL));
	IS(sessions[1]->quantum.member.reason, CKT_QUANTUM_AHEAD);
	IS(ask(1, 80, CKT_LEASE_FOLLOW).bytes, 80 * MIB);
	IS(used(), 200 * MIB);
	IS(ask(1, 40, CKT_LEASE_FOLLOW).kind, 0);
	give(0, 40);
	run_for(20);
	IS(answer_of(1).bytes, 40 * MIB);
	IS(sessions[1]->quantum.met_bytes, 80 * MIB);
	end();
}

/* A worker of an earlier version does not know the call: it comes in when all is there. */
static void test_cannot_follow(void)
{
	begin();
	IS(ask(1, 80, 0).bytes, 80 * MIB);
	ckt_quantum_moves(sessions[1], true);
	give(1, 80);
	ckt_quantum_moved(
		sessions[1], true, 0, &(ckt_worker_swap_res){.swapped = true, .bytes = 80 * MIB});
	IS(ask(0, 80, 0).bytes, 80 * MIB);
	sessions[0]->quantum.member.in_since_ns = 1;
	worker.silent_on = CKT_WORKER_SWAP_YIELD;
	IS(ask(1, 80, 0).bytes, 0);
	run_for(20);
	worker.garbage = true;
	give(0, STEP);
	YES(run_until(asked_to_follow, NULL));
	run_for(20);
	YES(sessions[1]->quantum.cannot_follow);
	IS(sessions[1]->phase, CKT_SESSION_LIVE);
	worker.garbage = false;
	sessions[1]->quantum.member.skip_until_ns = 0;
	ckt_quantum_soon(&server);
	run_for(20);
	IS(worker.calls[CKT_WORKER_SWAP_FOLLOW], 1);
	IS(worker.calls[CKT_WORKER_SWAP_IN], 0);
	IS(sessions[1]->quantum.member.want[0], 80 * MIB);
	give(0, 60);
	run_for(20);
	YES(worker.calls[CKT_WORKER_SWAP_IN] >= 1);
	end();
}

UNIT_SUITE(quantum_session, {"switch", test_switch}, {"comes_in", test_comes_in},
	{"stays", test_stays}, {"liar", test_liar}, {"silent", test_silent}, {"page", test_page},
	{"told", test_told}, {"both ways", test_both_ways}, {"follow bounds", test_follow_bounds},
	{"leaver fails", test_leaver_fails}, {"leaver dies", test_leaver_dies},
	{"follower dies", test_follower_dies}, {"half", test_half}, {"endless", test_endless},
	{"ahead", test_ahead}, {"cannot follow", test_cannot_follow})
