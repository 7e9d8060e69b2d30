/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/lease.c: what a worker asks its server for and gives back, with the server's
 * end of the channel in a thread of the test.
 */
#include "server/worker/memory/lease.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/lease.h"
#include "tests/unit/suite.h"

#define MIB ((uint64_t)1 << 20)

/* What the server has left and leased, and what it was asked. */
static struct {
	pthread_mutex_t lock;
	int channel;
	_Atomic uint64_t left, leased;
	_Atomic unsigned asked, given;
	_Atomic bool recall_before_answer; /* once */
	_Atomic bool exact;                /* nothing is leased ahead */
	_Atomic bool waits;                /* what is not there may wait, and does */
	_Atomic unsigned leaves; /* so often somebody else still leaves, and nothing is free */
	struct ckt_lease_message last, withdrawn;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};
static ckt_worker_lease list[CKT_DEVICES_MAX];
static ckt_worker_lease_res res;

static void take_back(void)
{
	ckt_lease_recall(list, &res);
	for (u_int i = 0; i < res.gpus.gpus_len; i++) {
		fake.leased -= list[i].given_bytes;
		fake.left += list[i].given_bytes;
	}
}

static void answer(const struct ckt_lease_message *m)
{
	struct ckt_lease_message reply = {
		.kind = CKT_LEASE_ANSWER, .number = m->number, .gpu = m->gpu, .total = 512 * MIB};
	if (fake.recall_before_answer)
		take_back();
	fake.recall_before_answer = false;
	if (fake.leaves) {
		fake.leaves--;
		reply.flags = CKT_LEASE_FOLLOW;
	} else if (m->bytes <= fake.left)
		reply.bytes = m->want <= fake.left && !fake.exact ? m->want : m->bytes;
	if (!m->bytes)
		reply.bytes = 0;
	if (fake.waits && m->bytes && !reply.bytes)
		reply.flags = m->flags & CKT_LEASE_WAIT ? CKT_LEASE_WAIT : CKT_LEASE_MAY_WAIT;
	if (m->flags & CKT_LEASE_FORCE && !reply.bytes)
		reply.bytes = m->bytes;
	fake.left -= reply.bytes < fake.left ? reply.bytes : fake.left;
	fake.leased += reply.bytes;
	reply.left = fake.left;
	send(fake.channel, &reply, sizeof reply, MSG_NOSIGNAL);
}

static void *serve(void *opaque)
{
	int channel = *(int *)opaque;
	struct ckt_lease_message m;
	while (recv(channel, &m, sizeof m, 0) == sizeof m) {
		pthread_mutex_lock(&fake.lock);
		fake.last = m;
		if (m.kind == CKT_LEASE_ASK) {
			fake.asked++;
			answer(&m);
		} else if (m.kind == CKT_LEASE_WITHDRAW) {
			fake.withdrawn = m;
		} else {
			fake.given++;
			fake.leased -= m.bytes;
			fake.left += m.bytes;
		}
		pthread_mutex_unlock(&fake.lock);
	}
	return NULL;
}

/* A message that the server's thread has taken. */
static struct ckt_lease_message seen(const struct ckt_lease_message *message)
{
	pthread_mutex_lock(&fake.lock);
	struct ckt_lease_message copy = *message;
	pthread_mutex_unlock(&fake.lock);
	return copy;
}

static pthread_t server;

static void connect_server(bool unlimited)
{
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	fake.channel = ends[0];
	MUST(ckt_lease_join(ends[1], unlimited, list, &res), 0);
	MUST(pthread_create(&server, NULL, serve, &fake.channel), 0);
}

static void disconnect_server(void)
{
	shutdown(fake.channel, SHUT_RDWR);
	pthread_join(server, NULL);
	close(fake.channel);
}

static void begin(uint64_t left_mib, bool unlimited)
{
	ckt_lease_reset();
	fake.left = left_mib * MIB;
	fake.leased = 0;
	fake.asked = fake.given = 0;
	fake.exact = fake.waits = false;
	connect_server(unlimited);
}

static void end(void)
{
	ckt_lease_reset();
	disconnect_server();
}

static bool take(uint64_t mib)
{
	return ckt_lease_take(3, mib * MIB, CKT_LEASE_ASKED);
}

static void test_steps(void)
{
	begin(512, false);
	NO(ckt_lease_take(3, 2 * MIB, CKT_LEASE_HAD));
	YES(take(2));
	IS(fake.asked, 1);
	IS(fake.leased, 66 * MIB);
	/* From the step: without the server. */
	for (int i = 0; i < 32; i++)
		YES(ckt_lease_take(3, 2 * MIB, CKT_LEASE_HAD));
	IS(fake.asked, 1);
	NO(ckt_lease_take(3, 1, CKT_LEASE_HAD));
	/* To the last granule, whatever a small piece leaves of one. */
	YES(ckt_lease_take(3, 1, CKT_LEASE_ASKED));
	IS(fake.leased, 132 * MIB);
	YES(take(444));
	YES(ckt_lease_take(3, 2 * MIB - 1, CKT_LEASE_ASKED));
	IS(fake.leased, 512 * MIB);
	NO(ckt_lease_take(3, 1, CKT_LEASE_ASKED));
	NO(ckt_lease_take(64, 1, CKT_LEASE_ASKED));
	IS(fake.leased, 512 * MIB);
	/* Little stays, more comes back. */
	ckt_lease_give(3, 128 * MIB);
	IS(fake.given, 0);
	ckt_lease_give(3, 2 * MIB);
	uint64_t total, left;
	YES(ckt_lease_info(3, &total, &left));
	IS(fake.given, 1);
	IS(fake.leased, 446 * MIB);
	IS(total, 512 * MIB);
	IS(left, 130 * MIB);
	end();
}

static void test_unlimited(void)
{
	uint64_t total, left;
	begin(100, true);
	YES(take(1000));
	NO(ckt_lease_info(3, &total, &left));
	ckt_lease_give(3, 990 * MIB);
	IS(fake.asked + fake.given, 0);
	/* From the recall on, what it uses counts. */
	ckt_lease_recall(list, &res);
	NO(res.unlimited);
	IS(res.gpus.gpus_len, 1);
	IS(list[0].gpu, 3);
	IS(list[0].leased_bytes, 10 * MIB);
	IS(list[0].given_bytes, 0);
	YES(take(2));
	IS(fake.asked, 1);
	ckt_lease_recall(list, &res);
	IS(list[0].leased_bytes, 12 * MIB);
	IS(list[0].given_bytes, 64 * MIB);
	end();
}

/* Force counts what is used already; a recall that comes before the answer makes it ask again. */
static void test_meanwhile(void)
{
	begin(66, false);
	YES(take(2));
	NO(take(66));
	YES(ckt_lease_take(3, 100 * MIB, CKT_LEASE_FORCED));
	IS(fake.leased, 102 * MIB);
	end();
	begin(100, false);
	YES(take(10));
	pthread_mutex_lock(&fake.lock);
	fake.recall_before_answer = fake.exact = true;
	pthread_mutex_unlock(&fake.lock);
	/* 26 are missing at first, and the recall takes the 64 that were leased ahead. */
	YES(take(90));
	IS(fake.asked, 3);
	IS(fake.leased, 100 * MIB);
	IS(fake.left, 0);
	NO(take(2));
	end();
}

/* Behind a session that leaves: as long as the server says so, for no more than it needs. */
static void test_follows(void)
{
	begin(20, false);
	fake.leaves = 3;
	YES(ckt_lease_take(3, 10 * MIB, CKT_LEASE_FOLLOWED));
	IS(fake.asked, 4);
	IS(fake.leased, 10 * MIB);
	IS(seen(&fake.last).want, 10 * MIB);
	YES(seen(&fake.last).flags & CKT_LEASE_FOLLOW);
	NO(ckt_lease_take(3, 12 * MIB, CKT_LEASE_FOLLOWED));
	IS(fake.asked, 5);
	IS(fake.leased, 10 * MIB);
	/* Others are refused at once, whatever the answer says. */
	fake.leaves = 3;
	NO(take(12));
	IS(fake.leaves, 2);
	fake.leaves = 0;
	end();
}

static void *join_later(void *opaque)
{
	(void)opaque;
	poll(NULL, 0, 20);
	connect_server(true);
	return NULL;
}

/* A question outlives its server; what it has stays counted. */
static void test_away(void)
{
	pthread_t later;
	begin(512, false);
	YES(take(2));
	disconnect_server();
	ckt_lease_answer_ms = 10000;
	pthread_create(&later, NULL, join_later, NULL);
	YES(take(100));
	pthread_join(later, NULL);
	NO(res.unlimited);
	IS(res.gpus.gpus_len, 1);
	IS(list[0].leased_bytes, 66 * MIB);
	IS(fake.asked, 2);
	disconnect_server();
	ckt_lease_answer_ms = 50;
	uint64_t total, left;
	YES(ckt_lease_info(3, &total, &left));
	IS(left, 64 * MIB);
	YES(take(64));
	NO(take(2));
	ckt_lease_answer_ms = 10000;
	ckt_lease_reset();
}

static void test_no_channel(void)
{
	int ends[2];
	begin(512, false);
	MUST(pipe(ends), 0);
	IS(ckt_lease_join(ends[0], false, list, &res), -EINVAL);
	IS(close(ends[0]), -1);
	close(ends[1]);
	YES(take(2));
	end();
}

static _Atomic unsigned changes;

static void count_change(void)
{
	changes++;
}

/* Of a wait: as many bytes as it asked for. */
static void grant(const struct ckt_lease_wait *wait, uint64_t bytes)
{
	fake.leased += bytes;
	YES(ckt_lease_waited(&(ckt_worker_waited_args){
		.number = wait->number, .gpu = wait->gpu, .bytes = bytes}));
}

static void test_waits(void)
{
	struct ckt_lease_wait wait, other;
	uint64_t total, left;
	begin(100, false);
	fake.waits = fake.exact = true;
	changes = 0;
	ckt_lease_changed = count_change;
	NO(ckt_lease_refused(&wait));
	YES(take(90));
	NO(take(20));
	YES(ckt_lease_refused(&wait));
	IS(wait.gpu, 3);
	IS(wait.bytes, 20 * MIB);
	NO(ckt_lease_refused(&other));
	other = wait;
	ckt_lease_wait_begin(&wait);
	IS(ckt_lease_wait_state(&wait), CKT_LEASE_WAITING);
	IS(seen(&fake.last).bytes, 20 * MIB);
	/* It is there: for that allocation alone. */
	grant(&wait, 20 * MIB);
	IS(changes, 1);
	IS(ckt_lease_wait_state(&wait), CKT_LEASE_GRANTED);
	YES(ckt_lease_info(3, &total, &left));
	IS(left, 10 * MIB);
	NO(ckt_lease_take(3, 2 * MIB, CKT_LEASE_HAD));
	ckt_lease_recall(list, &res);
	IS(list[0].given_bytes, 0);
	ckt_lease_use_reserved(&wait);
	YES(ckt_lease_take(3, 20 * MIB, CKT_LEASE_HAD));
	ckt_lease_use_reserved(NULL);
	ckt_lease_wait_end(&wait, false);
	ckt_lease_give(3, 20 * MIB);
	/* While one waits, what is freed goes back at once. */
	other.bytes = 40 * MIB;
	other.total = 130 * MIB;
	ckt_lease_wait_begin(&other);
	IS(ckt_lease_wait_state(&other), CKT_LEASE_WAITING);
	ckt_lease_give(3, 2 * MIB);
	YES(ckt_lease_info(3, &total, &left));
	IS(fake.leased, 88 * MIB);
	/* Refused; and too late for one that was withdrawn: it goes back. */
	grant(&other, 0);
	IS(ckt_lease_wait_state(&other), CKT_LEASE_REFUSED);
	ckt_lease_wait_end(&other, false);
	fake.leased += 4 * MIB;
	YES(ckt_lease_waited(
		&(ckt_worker_waited_args){.number = other.number, .gpu = 3, .bytes = 4 * MIB}));
	YES(ckt_lease_info(3, &total, &left));
	IS(fake.leased, 88 * MIB);
	/* A server that goes: asked again of the next. */
	ckt_lease_wait_begin(&other);
	IS(ckt_lease_wait_state(&other), CKT_LEASE_WAITING);
	disconnect_server();
	unsigned before = changes;
	connect_server(false);
	IS(changes, before + 1);
	IS(ckt_lease_wait_state(&other), CKT_LEASE_NOT_ASKED);
	YES(ckt_lease_is_joined());
	ckt_lease_wait_begin(&other);
	IS(ckt_lease_wait_state(&other), CKT_LEASE_WAITING);
	ckt_lease_wait_end(&other, true);
	YES(ckt_lease_info(3, &total, &left));
	IS(seen(&fake.withdrawn).number, other.number);
	IS(seen(&fake.withdrawn).flags, CKT_LEASE_KEEP_PLACE);
	ckt_lease_changed = NULL;
	/* What no server grants. */
	NO(ckt_lease_waited(&(ckt_worker_waited_args){.gpu = CKT_DEVICES_MAX}));
	NO(ckt_lease_waited(&(ckt_worker_waited_args){.bytes = 1}));
	NO(ckt_lease_waited(&(ckt_worker_waited_args){.bytes = UINT64_MAX & ~(2 * MIB - 1)}));
	end();
}

/* What a thread takes of the bytes reserved for it: nobody misses it twice. */
static void test_reserved(void)
{
	struct ckt_lease_wait wait;
	begin(100, false);
	fake.waits = fake.exact = true;
	YES(take(90));
	NO(take(20));
	YES(ckt_lease_refused(&wait));
	ckt_lease_wait_begin(&wait);
	grant(&wait, 20 * MIB);
	ckt_lease_use_reserved(&wait);
	YES(ckt_lease_take(3, 20 * MIB, CKT_LEASE_HAD));
	NO(ckt_lease_take(3, 2 * MIB, CKT_LEASE_HAD));
	IS(wait.granted, 0);
	/* What it frees it may take once more, and nobody else. */
	ckt_lease_give(3, 20 * MIB);
	IS(wait.granted, 20 * MIB);
	ckt_lease_use_reserved(NULL);
	NO(ckt_lease_take(3, 2 * MIB, CKT_LEASE_HAD));
	ckt_lease_use_reserved(&wait);
	YES(ckt_lease_take(3, 8 * MIB, CKT_LEASE_HAD));
	ckt_lease_use_reserved(NULL);
	IS(wait.granted, 12 * MIB);
	/* Another thread asks for what it needs. */
	YES(take(2));
	IS(seen(&fake.last).bytes, 2 * MIB);
	ckt_lease_wait_end(&wait, false);
	YES(ckt_lease_take(3, 12 * MIB, CKT_LEASE_HAD));
	end();
}

static void test_pressed(void)
{
	uint64_t total, left;
	begin(512, false);
	YES(take(2));
	IS(fake.leased, 66 * MIB);
	NO(ckt_lease_is_pressed());
	ckt_lease_press(true);
	YES(ckt_lease_is_pressed());
	YES(ckt_lease_info(3, &total, &left));
	IS(fake.leased, 2 * MIB);
	YES(take(10));
	ckt_lease_give(3, 8 * MIB);
	YES(ckt_lease_info(3, &total, &left));
	IS(fake.leased, 4 * MIB);
	ckt_lease_press(false);
	YES(take(2));
	ckt_lease_give(3, 2 * MIB);
	YES(ckt_lease_info(3, &total, &left));
	IS(fake.leased, 70 * MIB);
	end();
}

enum { THREADS = 4, ROUNDS = 2000 };

static _Atomic unsigned got, missed;

static void *churn(void *opaque)
{
	uint64_t bytes = (uint64_t)(uintptr_t)opaque * 3 * MIB;
	for (int i = 0; i < ROUNDS; i++) {
		if (!ckt_lease_take(3, bytes, CKT_LEASE_ASKED)) {
			missed++;
			continue;
		}
		got++;
		ckt_lease_give(3, bytes);
	}
	return NULL;
}

/* Threads that take and give, and recalls among them: both sides end with the same sum. */
static void test_threads(void)
{
	pthread_t threads[THREADS];
	begin(20, false);
	got = missed = 0;
	for (uintptr_t t = 0; t < THREADS; t++)
		pthread_create(&threads[t], NULL, churn, (void *)(t + 1));
	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(&fake.lock);
		take_back();
		pthread_mutex_unlock(&fake.lock);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	IS(got + missed, THREADS * ROUNDS);
	YES(got > 0);
	pthread_mutex_lock(&fake.lock);
	take_back();
	IS(fake.leased, 0);
	IS(fake.left, 20 * MIB);
	pthread_mutex_unlock(&fake.lock);
	end();
}

UNIT_SUITE(lease, {"steps", test_steps}, {"unlimited", test_unlimited},
	{"meanwhile", test_meanwhile}, {"follows", test_follows}, {"away", test_away},
	{"no channel", test_no_channel}, {"waits", test_waits}, {"reserved", test_reserved},
	{"pressed", test_pressed}, {"threads", test_threads})
