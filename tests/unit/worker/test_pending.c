/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/pending.c: calls that wait, over a driver whose events are done when the
 * test says so: the order of a chain, others that go on, data before the answer that says it is
 * there, errors, and draining.  The waiters are the real ones.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/call.h"
#include "server/worker/worker.h"

enum { ROUNDS = 400, READ_MS = 60000 };

struct event {
	_Atomic bool done;
	_Atomic int result;
};

static struct ckt_worker *const worker = &ckt_worker;
static struct ckt_fences fences = {.real = (CUcontext)1}, others = {.real = (CUcontext)2};
static int client;

static CUresult CUDAAPI query(CUevent handle)
{
	struct event *event = (struct event *)handle;
	return event->done ? (CUresult)event->result : CUDA_ERROR_NOT_READY;
}

static _Atomic unsigned synchronized;

static CUresult CUDAAPI synchronize(CUevent handle)
{
	synchronized++;
	struct event *event = (struct event *)handle;
	while (!event->done)
		usleep(50);
	return (CUresult)event->result;
}

static CUresult CUDAAPI set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

/* A stream is the event behind its work. */
static unsigned stream_queries, records;

static CUresult CUDAAPI query_stream(CUstream stream)
{
	stream_queries++;
	return query((CUevent)stream);
}

static CUresult CUDAAPI synchronize_stream(CUstream stream)
{
	return synchronize((CUevent)stream);
}

static struct event recorded;
static CUresult record_result;

static CUresult CUDAAPI create_event(CUevent *ret_event, unsigned flags)
{
	*ret_event = (CUevent)&recorded;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI record(CUevent event, CUstream stream)
{
	records++;
	recorded.done = ((struct event *)stream)->done;
	return record_result;
}

static int set_up(void)
{
	int pair[2];
	ckt_driver.cuEventQuery = query;
	ckt_driver.cuEventSynchronize = synchronize;
	ckt_driver.cuCtxSetCurrent = set_current;
	ckt_driver.cuStreamQuery = query_stream;
	ckt_driver.cuStreamSynchronize = synchronize_stream;
	ckt_driver.cuEventCreate = create_event;
	ckt_driver.cuEventRecord = record;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	client = pair[1];
	worker->stats = calloc(CKT_STATS, sizeof *worker->stats);
	worker->client_epoch = 1;
	worker->wake_fd = -1;
	/* No kernel prints here. */
	for (unsigned stream = 0; stream < CKT_PRINTED_PIPES; stream++)
		worker->printed.pipes[stream] = -1;
	ckt_output_init(&worker->output);
	ckt_replies_init(&worker->replies);
	ckt_output_connect(&worker->output, pair[0], 1, NULL, 0);
	return ckt_pendings_init(worker);
}

static struct ckt_wcall *call_new(uint32_t xid)
{
	struct ckt_wcall *call = ckt_wcall_new(worker);
	call->header =
		(struct ckt_call_header){.xid = xid, .prog = CKT_CUDA_PROG, .vers = CKT_CUDA_VERS};
	return call;
}

static uint32_t add_flags; /* of the calls that are added */

static void add(uint32_t xid, enum ckt_pending_kind kind, uint64_t chain, struct event *event,
	struct ckt_fences *of)
{
	struct ckt_pending *pending = ckt_pending_new(call_new(xid), kind, chain);
	pending->call->header.flags = add_flags;
	pending->one = (CUevent)event;
	pending->count = 1;
	pending->fences = of;
	if (kind == CKT_PENDING_DATA) {
		pending->size = 4;
		pending->piece = ckt_staging_own(4);
		memcpy(pending->piece->data, &xid, 4);
	}
	ckt_pending_add(worker, pending);
}

static void finish(struct event *event)
{
	event->done = true;
}

/* The next reply's xid; its result in ret_result. */
static uint32_t next_reply(CUresult *ret_result)
{
	uint8_t *data;
	size_t size;
	struct ckt_reply_header header = {0};
	/* As the executor does between commands, until what is cold is the waiters'. */
	while (ckt_pending_poll(worker))
		sched_yield();
	ckt_output_flush(&worker->output);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(client, CKT_RECORD_MAX,
				      ckt_net_now_ms() + READ_MS, &data, &size, NULL),
		0);
	struct ckt_cursor c = {.p = data, .end = data + size};
	CU_ASSERT_TRUE(ckt_reply_header_get(&c, &header));
	CUresult result = (CUresult)ckt_get_u32(&c);
	if (ret_result)
		*ret_result = result;
	free(data);
	return header.xid;
}

static bool silent(void)
{
	char byte;
	while (ckt_pending_poll(worker))
		sched_yield();
	ckt_output_flush(&worker->output);
	return recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void test_chains(void)
{
	struct event a = {0}, b = {0}, c = {0};
	add(1, CKT_PENDING_WAIT, 1, &a, &fences);
	add(2, CKT_PENDING_WAIT, 1, &b, &fences);
	add(3, CKT_PENDING_WAIT, 2, &c, &others);
	CU_ASSERT_TRUE(silent());
	/* The second of a chain is done and waits for the first; another chain does not. */
	finish(&b);
	CU_ASSERT_TRUE(silent());
	finish(&c);
	CU_ASSERT_EQUAL(next_reply(NULL), 3);
	CU_ASSERT_TRUE(silent());
	finish(&a);
	CU_ASSERT_EQUAL(next_reply(NULL), 1);
	CU_ASSERT_EQUAL(next_reply(NULL), 2);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	CU_ASSERT_EQUAL(worker->pending.count, 0);
}

/* More chains than waiters at the start, all of which block. */
static void test_many_chains(void)
{
	enum { CHAINS = CKT_WAITERS_AT_START + 20 };
	static struct event events[CHAINS];
	for (uint32_t i = 0; i < CHAINS; i++)
		add(10 + i, CKT_PENDING_WAIT, 100 + i, &events[i], &fences);
	CU_ASSERT_TRUE(silent());
	/* The last one first. */
	for (uint32_t i = CHAINS; i-- > 0;) {
		finish(&events[i]);
		CU_ASSERT_EQUAL(next_reply(NULL), 10 + i);
	}
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
}

/*
 * However the waiters take turns, the copy's bytes come before the answer of the wait that follows
 * it.
 */
static void test_data_first(void)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct event data = {0}, wait = {0};
		CUresult result = CUDA_ERROR_UNKNOWN;
		add(1000, CKT_PENDING_DATA, 1, &data, &fences);
		add(1001, CKT_PENDING_WAIT, 2, &wait, &fences);
		if (round % 3)
			usleep(round % 7 * 30);
		finish(&data);
		finish(&wait);
		CU_ASSERT_EQUAL_FATAL(next_reply(&result), 1000);
		CU_ASSERT_EQUAL(result, CUDA_SUCCESS);
		CU_ASSERT_EQUAL_FATAL(next_reply(NULL), 1001);
		/* The events are on this stack. */
		CU_ASSERT_EQUAL_FATAL(ckt_pending_drain(worker, NULL, -1), 0);
	}
}

/* A call that the executor answers itself, after it has delivered what is there. */
static void test_deliver(void)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct event data = {0};
		add(2000, CKT_PENDING_DATA, 1, &data, &fences);
		for (unsigned i = 0; i < round % 5; i++)
			ckt_pending_poll(worker);
		if (round % 2)
			usleep(round % 9 * 20);
		finish(&data);
		if (round % 4 == 1)
			sched_yield();
		ckt_pending_deliver(worker);
		ckt_wcall_finish(call_new(2001), CUDA_SUCCESS);
		CU_ASSERT_EQUAL_FATAL(next_reply(NULL), 2000);
		CU_ASSERT_EQUAL_FATAL(next_reply(NULL), 2001);
		CU_ASSERT_EQUAL_FATAL(ckt_pending_drain(worker, NULL, -1), 0);
	}
}

static void test_errors(void)
{
	struct event bad = {.result = CUDA_ERROR_ILLEGAL_ADDRESS},
		     data = {.result = CUDA_ERROR_ILLEGAL_ADDRESS};
	CUresult result = CUDA_SUCCESS;
	add(1, CKT_PENDING_WAIT, 1, &bad, &fences);
	finish(&bad);
	CU_ASSERT_TRUE(next_reply(&result) == 1 && result == CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Data that never came is an error, not four bytes. */
	result = CUDA_SUCCESS;
	add(2, CKT_PENDING_DATA, 1, &data, &fences);
	finish(&data);
	CU_ASSERT_TRUE(next_reply(&result) == 2 && result == CUDA_ERROR_ILLEGAL_ADDRESS);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
}

/*
 * With processors to spare the executor asks for longer, but not for a program that sleeps in its
 * waits, and not for many items.  A chain cools in order, or nobody would wait for its second item.
 */
static bool hot_for(
	uint32_t xid, enum ckt_pending_kind kind, uint64_t chain, struct event *event, int64_t ns)
{
	int64_t before = ckt_now_ns();
	add(xid, kind, chain, event, &fences);
	int64_t until = worker->pending.last->hot_until_ns;
	return until >= before + ns && until <= ckt_now_ns() + ns;
}

static void test_hot(void)
{
	enum { OTHERS = CKT_PENDING_HOT_MAX };
	struct event events[OTHERS + 2] = {0};
	CU_ASSERT_TRUE(hot_for(1, CKT_PENDING_WAIT, 1, &events[0], CKT_SPIN_NS));
	finish(&events[0]);
	CU_ASSERT_EQUAL(next_reply(NULL), 1);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	events[0].done = false;
	worker->spin_ns = CKT_SPIN_LONG_NS;
	for (uint32_t i = 0; i <= OTHERS; i++)
		CU_ASSERT_TRUE(hot_for(1 + i, CKT_PENDING_WAIT, 1 + i, &events[i],
			i < OTHERS ? CKT_SPIN_WAIT_NS : CKT_SPIN_NS));
	/* Later than what comes now, however long that took. */
	int64_t first = worker->pending.first->hot_until_ns = INT64_MAX;
	add_flags = CKT_CALL_SLEEPS;
	add(100, CKT_PENDING_WAIT, 1, &events[OTHERS + 1], &fences);
	CU_ASSERT_EQUAL(worker->pending.last->hot_until_ns, first);
	for (uint32_t i = 0; i < OTHERS + 2; i++)
		finish(&events[i]);
	for (uint32_t i = 0; i < OTHERS + 2; i++)
		next_reply(NULL);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	/* The processors are there, but others want them. */
	events[0].done = false;
	add_flags = 0;
	worker->crowd.until_ns = INT64_MAX;
	CU_ASSERT_TRUE(hot_for(150, CKT_PENDING_WAIT, 1, &events[0], CKT_CROWD_SPIN_NS));
	finish(&events[0]);
	CU_ASSERT_EQUAL(next_reply(NULL), 150);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	worker->crowd.until_ns = 0;
	add_flags = CKT_CALL_SLEEPS;
	events[0].done = false;
	CU_ASSERT_TRUE(hot_for(200, CKT_PENDING_WAIT, 1, &events[0], CKT_SPIN_NS));
	CU_ASSERT_TRUE(silent());
	finish(&events[0]);
	CU_ASSERT_EQUAL(next_reply(NULL), 200);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	add_flags = 0;
	worker->spin_ns = 0;
}

/* Staging memory comes back for no call: with processors to spare the worker ended by SIGSEGV. */
static void test_without_call(void)
{
	struct event event = {0};
	struct ckt_pending *pending = ckt_pending_new(NULL, CKT_PENDING_STAGE, 1);
	pending->one = (CUevent)&event;
	pending->count = 1;
	pending->fences = &fences;
	pending->piece = ckt_staging_own(4);
	worker->spin_ns = CKT_SPIN_LONG_NS;
	int64_t before = ckt_now_ns();
	ckt_pending_add(worker, pending);
	int64_t until = worker->pending.last->hot_until_ns;
	CU_ASSERT_TRUE(until >= before + CKT_SPIN_NS && until <= ckt_now_ns() + CKT_SPIN_NS);
	finish(&event);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	worker->spin_ns = 0;
}

static void add_behind(uint32_t xid, enum ckt_pending_kind kind, struct event *stream)
{
	struct ckt_pending *pending = ckt_pending_new(call_new(xid), kind, 1);
	pending->fences = &fences;
	if (kind == CKT_PENDING_DATA) {
		pending->size = 4;
		pending->piece = ckt_staging_own(4);
	}
	ckt_pending_add_behind(worker, pending, (CUstream)stream);
}

/* While no other command comes, the stream itself is asked for. */
static void test_behind(void)
{
	struct event stream = {0};
	CUresult result = CUDA_ERROR_UNKNOWN;
	worker->spin_ns = CKT_SPIN_LONG_NS;
	records = 0;
	add_behind(1, CKT_PENDING_WAIT, &stream);
	/* It does not cool, however long this test stands still. */
	worker->pending.last->hot_until_ns = INT64_MAX;
	CU_ASSERT_TRUE(ckt_pending_poll(worker));
	CU_ASSERT_TRUE(stream_queries > 0);
	finish(&stream);
	CU_ASSERT_TRUE(next_reply(&result) == 1 && result == CUDA_SUCCESS);
	CU_ASSERT_EQUAL(records, 0);
	CU_ASSERT_EQUAL(worker->pending.behind_count, 0);
	/* More work comes: the item is done when what was there is. */
	stream.done = false;
	add_behind(2, CKT_PENDING_DATA, &stream);
	worker->pending.last->hot_until_ns = INT64_MAX;
	CU_ASSERT_EQUAL(worker->pending.behind_count, 1);
	ckt_pending_fence(worker);
	CU_ASSERT_EQUAL(records, 1);
	CU_ASSERT_EQUAL(worker->pending.behind_count, 0);
	ckt_pending_fence(worker);
	CU_ASSERT_EQUAL(records, 1);
	CU_ASSERT_TRUE(ckt_pending_poll(worker));
	finish(&recorded);
	CU_ASSERT_EQUAL(next_reply(NULL), 2);
	/* No event can be had. */
	stream.done = true;
	record_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	add_behind(3, CKT_PENDING_DATA, &stream);
	ckt_pending_fence(worker);
	CU_ASSERT_TRUE(next_reply(&result) == 3 && result == CUDA_ERROR_ILLEGAL_ADDRESS);
	record_result = CUDA_SUCCESS;
	worker->spin_ns = 0;
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
}

/* Only who has loaded code that may print pays for the driver's wait. */
static void test_prints(void)
{
	struct event event = {.done = true};
	synchronized = 0;
	add(1, CKT_PENDING_WAIT, 1, &event, &fences);
	CU_ASSERT_EQUAL(next_reply(NULL), 1);
	add_behind(2, CKT_PENDING_WAIT, &event);
	CU_ASSERT_EQUAL(next_reply(NULL), 2);
	CU_ASSERT_EQUAL(synchronized, 0);
	ckt_printed_expect(&worker->printed);
	add(3, CKT_PENDING_WAIT, 1, &event, &fences);
	CU_ASSERT_EQUAL(next_reply(NULL), 3);
	CU_ASSERT_EQUAL(synchronized, 1);
	add_behind(4, CKT_PENDING_WAIT, &event);
	CU_ASSERT_EQUAL(next_reply(NULL), 4);
	CU_ASSERT_EQUAL(synchronized, 2);
	worker->printed.possible = false;
}

/* An item that cools is the waiters', who know events alone. */
static void test_behind_cools(void)
{
	struct event stream = {0};
	records = 0;
	add_behind(1, CKT_PENDING_WAIT, &stream);
	CU_ASSERT_TRUE(silent());
	CU_ASSERT_EQUAL(records, 1);
	unsigned queries = stream_queries;
	usleep(1000);
	CU_ASSERT_EQUAL(stream_queries, queries);
	finish(&recorded);
	CU_ASSERT_EQUAL(next_reply(NULL), 1);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
}

static void test_drain(void)
{
	struct event mine = {0}, other = {0};
	add(1, CKT_PENDING_WAIT, 1, &mine, &fences);
	add(2, CKT_PENDING_WAIT, 2, &other, &others);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, ckt_net_now_ms() + 20), -ETIMEDOUT);
	finish(&other);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, &others, -1), 0);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, &fences, ckt_net_now_ms()), -ETIMEDOUT);
	finish(&mine);
	CU_ASSERT_EQUAL(ckt_pending_drain(worker, NULL, -1), 0);
	CU_ASSERT_EQUAL(next_reply(NULL), 2);
	CU_ASSERT_EQUAL(next_reply(NULL), 1);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("pending", set_up, NULL);
	CU_add_test(suite, "chains", test_chains);
	CU_add_test(suite, "many chains", test_many_chains);
	CU_add_test(suite, "data first", test_data_first);
	CU_add_test(suite, "deliver", test_deliver);
	CU_add_test(suite, "errors", test_errors);
	CU_add_test(suite, "hot", test_hot);
	CU_add_test(suite, "without a call", test_without_call);
	CU_add_test(suite, "behind", test_behind);
	CU_add_test(suite, "prints", test_prints);
	CU_add_test(suite, "behind cools", test_behind_cools);
	CU_add_test(suite, "drain", test_drain);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
