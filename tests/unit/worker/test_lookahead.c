/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking ahead: host functions end whose host_func_done lies in the input, but for those behind
 * commands of their own thread.
 */
#include "server/worker/memory/copy.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/call.h"
#include "server/worker/session/lookahead.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/worker/session/hostfunc.h"
#include "tests/unit/worker/inside.h"

static uint8_t bytes[4096];
static size_t size;
static int peer;

/* A call of that thread with one number as its arguments. */
static void add(uint32_t prog, uint32_t proc, uint64_t seq, uint32_t thread, uint64_t argument)
{
	uint8_t *p = ckt_put_u32(bytes + size, 0x80000000u | (CKT_CALL_HEADER_SIZE + 8));
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){.prog = prog,
			.vers = 1,
			.proc = proc,
			.seq = seq,
			.thread = thread,
			.flags = CKT_CALL_BATCHED});
	p = ckt_put_u64(p, argument);
	size = (size_t)(p - bytes);
}

static void done(uint64_t seq, uint32_t thread, uint64_t instance)
{
	add(CKT_CUDA_PROG, CKT_PROC_HOST_FUNC_DONE, seq, thread, instance);
}

/* Begins a host function on the stream: its instance, as the client is told it. */
static uint64_t begin(uint64_t stream)
{
	uint8_t told[256];
	IS(ASK(host_func, .stream = stream, .number = 7), CUDA_SUCCESS);
	for (int i = 0; i < 60000; i++) {
		/* Sends it, too. */
		ckt_lookahead_look(&ckt_worker);
		if (inside_sent(told, sizeof told) >= CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 28) {
			struct ckt_cursor c = {.p = told + CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE,
				.end = told + sizeof told};
			return ckt_get_u64(&c);
		}
		poll(NULL, 0, 1);
	}
	return 0;
}

/*
 * A connection with those records and no executor; whether the host function has ended after a
 * look.
 */
static bool ends(void)
{
	int pair[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer = pair[0];
	ckt_input_connect(&ckt_worker.input, pair[1]);
	IS(send(peer, bytes, size, 0), size);
	size = 0;
	ckt_lookahead_look(&ckt_worker);
	bool ended = !ckt_hostcalls_waiting(&ckt_worker);
	/* The executor has every byte in its turn. */
	IS(ckt_input_receive(&ckt_worker.input), 1);
	ckt_input_connect(&ckt_worker.input, -1);
	close(pair[0]);
	close(pair[1]);
	return ended;
}

static void test_ahead(void)
{
	CUstream real;
	uint64_t stream = ID(STREAM, 70), now = 100;
	uint64_t before = atomic_exchange(&ckt_worker.replies.executed, now);
	MUST(ckt_worker_stream_make(&ckt_worker, stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	MUST(ckt_object_stream(&ckt_worker, stream, &real), CUDA_SUCCESS);
	/* Behind calls of other threads, and of its own that are done. */
	uint64_t instance = begin(stream);
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now - 1, 2, 0);
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now, 1, 0);
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now + 1, 3, 0);
	done(now + 2, 2, instance);
	YES(ends());
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
	/* In its turn it finds nothing. */
	IS(ASK(host_func_done, .instance = instance), CUDA_SUCCESS);
	/* Two of one thread, one behind the other. */
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 71), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	uint64_t other = begin(ID(STREAM, 71));
	instance = begin(stream);
	done(now + 1, 2, other);
	done(now + 2, 2, instance);
	YES(ends());
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
	atomic_store(&ckt_worker.replies.executed, before);
}

/* Left to the executor. */
static void test_behind(void)
{
	uint64_t now = 100, before = atomic_exchange(&ckt_worker.replies.executed, now);
	uint64_t instance = begin(ID(STREAM, 70));
	/*
	 * What the function wrote is on its way; in the second case the executor may be inside of
	 * it.
	 */
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now + 1, 2, 0);
	done(now + 2, 2, instance);
	NO(ends());
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now, 2, 0);
	done(now + 1, 2, instance);
	NO(ends());
	/* Contents of pinned memory, and more threads than it keeps in mind. */
	add(CRICKET_SESSION_PROG, CKT_SESSION_HOST_FILL, 0, 9, 0);
	done(now + 1, 2, instance);
	NO(ends());
	/* Another's, and cut short. */
	done(now + 1, 2, instance + 1);
	NO(ends());
	done(now + 1, 2, instance);
	size -= 8;
	ckt_put_u32(bytes, 0x80000000u | CKT_CALL_HEADER_SIZE);
	NO(ends());
	IS(ASK(host_func_done, .instance = instance), CUDA_SUCCESS);
	NO(ckt_hostcalls_waiting(&ckt_worker));
	for (unsigned i = 0; i < 2; i++)
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 70 + i)));
	atomic_store(&ckt_worker.replies.executed, before);
}

static unsigned asked;
static CUresult (*event_query)(CUevent event);

static CUresult count_queries(CUevent event)
{
	asked++;
	return event_query(event);
}

/* A copy of a word to the host, whose reply waits for whoever delivers it. */
static void copy(uint64_t stream, uint32_t xid, uint64_t from)
{
	CUstream real;
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->header = (struct ckt_call_header){
		.xid = xid, .prog = CKT_CUDA_PROG, .vers = 1, .proc = CKT_PROC_MEMCPY_DTOH};
	MUST(ckt_object_stream(&ckt_worker, stream, &real), CUDA_SUCCESS);
	struct ckt_staging_piece *piece = ckt_worker_take_piece(&ckt_worker, 4);
	CUresult begun = ckt_driver.cuMemcpyDtoHAsync_v2(piece->data, from, 4, real);
	IS(ckt_worker_reply_when_done(call, begun, stream, real, piece, 4), CKT_WCALL_LATER);
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
}

/*
 * Puts the function on the stream, looks when its turn has come, ends it; the numbers of the
 * records that were sent, in order, 0 for its call.
 */
static unsigned tell(uint64_t stream, uint32_t *ret_xids)
{
	uint8_t sent[1024];
	unsigned count = 0;
	uint64_t instance = 0;
	/* As the executor before each command. */
	ckt_pending_fence(&ckt_worker);
	/* As nobody waits for it: for a reply the test would deliver what is done. */
	IS(INSIDE(host_func, true, .stream = stream, .number = 9)->result, CUDA_SUCCESS);
	for (int i = 0; i < 60000 && !ckt_hostcalls_waiting(&ckt_worker); i++)
		poll(NULL, 0, 1);
	inside_sent(sent, sizeof sent);
	ckt_driver.cuEventQuery = count_queries;
	asked = 0;
	ckt_lookahead_look(&ckt_worker);
	ckt_driver.cuEventQuery = event_query;
	struct ckt_cursor c = {.p = sent, .end = sent + inside_sent(sent, sizeof sent)};
	while (c.p < c.end) {
		const uint8_t *end = c.p + CKT_MARK_SIZE +
			(ckt_get_u32(&(struct ckt_cursor){.p = c.p, .end = c.end}) & 0x7fffffff);
		struct ckt_cursor record = {.p = c.p + CKT_MARK_SIZE, .end = end};
		uint32_t xid = ckt_get_u32(&record), is_reply = ckt_get_u32(&record);
		if (!is_reply) {
			record.p = c.p + CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE;
			instance = ckt_get_u64(&record);
		}
		ret_xids[count++] = is_reply ? xid : 0;
		c.p = end;
	}
	YES(ckt_hostcall_end(&ckt_worker, instance));
	NO(ckt_hostcall_end(&ckt_worker, instance));
	return count;
}

/*
 * What a function may look at goes before its call; the driver is asked for other streams alone,
 * because a call of the executor's may hold its locks.
 */
static void test_data(void)
{
	uint64_t memory = inside_memory(4, 5), one = ID(STREAM, 72), two = ID(STREAM, 73);
	uint32_t xids[8];
	event_query = ckt_driver.cuEventQuery;
	MUST(ckt_worker_stream_make(&ckt_worker, one, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	MUST(ckt_worker_stream_make(&ckt_worker, two, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	IS(tell(one, xids), 1);
	IS(asked, 0);
	copy(one, 501, memory);
	copy(one, 502, memory);
	IS(tell(one, xids), 3);
	IS(xids[0], 501);
	IS(xids[1], 502);
	IS(xids[2], 0);
	IS(asked, 0);
	copy(two, 503, memory);
	copy(one, 504, memory);
	IS(tell(one, xids), 3);
	IS(xids[0], 504);
	IS(xids[1], 503);
	IS(xids[2], 0);
	IS(asked, 1);
	NO(ckt_worker.pending.data_count);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, one));
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, two));
	inside_free(memory);
}

/* Beats are the executor's, which is frozen here: its thread leaves this to us. */
static void test_beats(void)
{
	struct ckt_lookahead lookahead = {0};
	ckt_lookahead_beat(&lookahead);
	ckt_lookahead_beat(&lookahead);
	IS(lookahead.beats, 2);
	ckt_lookahead_asleep(&lookahead, true);
	YES(lookahead.asleep);
	YES(ckt_worker.lookahead.asleep);
}

UNIT_SUITE(worker / lookahead, {"ahead", test_ahead}, {"behind", test_behind}, {"data", test_data},
	{"beats", test_beats})
