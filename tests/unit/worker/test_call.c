/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/call.c: commands and their replies: what is sent, kept and sent again, and
 * errors of calls that nobody waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/session/call.h"
#include "tests/unit/worker/inside.h"

static uint8_t bytes[1 << 16];

static struct ckt_wcall *call_new(uint32_t xid, uint64_t seq, uint32_t flags)
{
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->header = (struct ckt_call_header){.xid = xid,
		.prog = CKT_CUDA_PROG,
		.vers = 1,
		.proc = 1,
		.seq = seq,
		.flags = flags};
	MUST(ckt_wcall_prepare(call), 0);
	return call;
}

/* A numbered call that the executor has come to. */
static struct ckt_wcall *call_next(uint32_t xid, uint64_t *ret_seq)
{
	struct ckt_replies *replies = &ckt_worker.replies;
	*ret_seq = atomic_load(&replies->executed) + 1;
	ckt_replies_expect(replies, *ret_seq, 1, xid, 1);
	atomic_store(&replies->executed, *ret_seq);
	return call_new(xid, *ret_seq, 0);
}

/* The one reply that has come: its size behind the header, or -1. */
static int reply(struct ckt_reply_header *ret_header, uint32_t *ret_result)
{
	size_t size = inside_sent(bytes, sizeof bytes);
	struct ckt_cursor c = {.p = bytes, .end = bytes + size};
	uint32_t mark = ckt_get_u32(&c);
	if (!size || mark != (0x80000000u | (uint32_t)(size - 4)) ||
		!ckt_reply_header_get(&c, ret_header))
		return -1;
	int rest = (int)(c.end - c.p);
	*ret_result = rest ? ckt_get_u32(&c) : 0xdead;
	return rest;
}

static void test_replies(void)
{
	struct ckt_reply_header header;
	uint32_t result;
	/* No results, small ones, and more than lies beside the call. */
	static const size_t sizes[] = {0, 8, 508, 509, 30000};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct ckt_wcall *call = call_new(70 + (uint32_t)i, 0, 0);
		memset(ckt_wcall_results(call, sizes[i]), 0x11, sizes[i]);
		ckt_wcall_finish(call, CUDA_SUCCESS);
		IS(reply(&header, &result), 4 + sizes[i]);
		IS(header.xid, 70 + i);
		IS(header.accept_stat, 0);
		IS(result, CUDA_SUCCESS);
	}
	/* An error has no results, whatever was written. */
	struct ckt_wcall *call = call_new(80, 0, 0);
	memset(ckt_wcall_results(call, 600), 0x22, 600);
	ckt_wcall_finish(call, CUDA_ERROR_INVALID_VALUE);
	IS(reply(&header, &result), 4);
	IS(result, CUDA_ERROR_INVALID_VALUE);
	ckt_wcall_reject(call_new(81, 0, 0), 4);
	IS(reply(&header, &result), 0);
	IS(header.accept_stat, 4);
	ckt_wcall_reject(call_new(82, 0, CKT_CALL_BATCHED), 4);
	IS(inside_sent(bytes, sizeof bytes), 0);
	ckt_wcall_free(NULL);
}

static void test_deferred(void)
{
	struct ckt_reply_header header;
	uint32_t result;
	ckt_wcall_finish(call_new(1, 0, CKT_CALL_BATCHED), CUDA_SUCCESS);
	IS(atomic_load(&ckt_worker.deferred), 0);
	ckt_wcall_finish(call_new(2, 0, CKT_CALL_BATCHED), CUDA_ERROR_INVALID_HANDLE);
	/* the first is the one that is told */
	ckt_wcall_finish(call_new(3, 0, CKT_CALL_BATCHED), CUDA_ERROR_INVALID_VALUE);
	IS(inside_sent(bytes, sizeof bytes), 0);
	ckt_wcall_finish(call_new(4, 0, 0), CUDA_SUCCESS);
	reply(&header, &result);
	IS(header.deferred, CUDA_ERROR_INVALID_HANDLE);
	IS(result, CUDA_SUCCESS);
	ckt_wcall_finish(call_new(5, 0, 0), CUDA_SUCCESS);
	reply(&header, &result);
	IS(header.deferred, 0); /* once */
	/* A reply to a connection that is gone has told nobody. */
	ckt_worker_defer(&ckt_worker, CUDA_ERROR_LAUNCH_FAILED);
	struct ckt_wcall *late = call_new(6, 0, 0);
	ckt_output_connect(&ckt_worker.output, ckt_worker.output.transport.fd, 2, NULL, 0);
	ckt_wcall_finish(late, CUDA_SUCCESS);
	IS(inside_sent(bytes, sizeof bytes), 0);
	IS(atomic_exchange(&ckt_worker.deferred, 0), CUDA_ERROR_LAUNCH_FAILED);
	ckt_output_connect(&ckt_worker.output, ckt_worker.output.transport.fd, 1, NULL, 0);
}

static void test_kept(void)
{
	struct ckt_replies *replies = &ckt_worker.replies;
	struct ckt_reply_header header;
	uint32_t result;
	uint64_t seq, second;
	struct ckt_wcall *call = call_next(100, &seq);
	ckt_put_u64(ckt_wcall_results(call, 8), 0x1234);
	ckt_worker_defer(&ckt_worker, CUDA_ERROR_ASSERT);
	ckt_wcall_finish(call, CUDA_SUCCESS);
	IS(reply(&header, &result), 12);
	IS(header.executed, seq);
	IS(header.deferred, CUDA_ERROR_ASSERT);
	IS(replies->bytes, 12);
	/*
	 * It comes again, by another connection's xid: the same, the deferred error too, which may
	 * have got lost.
	 */
	struct ckt_call_header again = {
		.xid = 555, .prog = CKT_CUDA_PROG, .vers = 1, .proc = 1, .seq = seq};
	ckt_wcall_replay(&ckt_worker, &again, 1);
	IS(reply(&header, &result), 12);
	IS(header.xid, 555);
	IS(header.deferred, CUDA_ERROR_ASSERT);
	IS(memcmp(bytes + 4 + CKT_REPLY_HEADER_SIZE, "\0\0\0\0\0\0\0\0\0\0\x12\x34", 12), 0);
	/* A call that is none, with that number: it is told so, and the reply stays what it was. */
	struct ckt_wcall *none = ckt_wcall_new(&ckt_worker);
	none->header = again;
	none->header.xid = 600;
	none->header.proc = 0xffff;
	ckt_wcall_reject(none, 3);
	IS(reply(&header, &result), 0);
	IS(header.xid, 600);
	IS(header.accept_stat, 3);
	IS(replies->bytes, 12);
	ckt_wcall_replay(&ckt_worker, &again, 1);
	IS(reply(&header, &result), 12);
	IS(header.accept_stat, 0);
	/* Asked again before it is done: whoever asked last is answered, once. */
	call = call_next(101, &second);
	again.seq = second;
	again.xid = 556;
	ckt_wcall_replay(&ckt_worker, &again, 1);
	IS(inside_sent(bytes, sizeof bytes), 0);
	ckt_wcall_finish(call, CUDA_ERROR_NOT_FOUND);
	IS(reply(&header, &result), 4);
	IS(header.xid, 556);
	IS(result, CUDA_ERROR_NOT_FOUND);
	/* Acknowledged: nothing is kept, and nothing is sent again. */
	YES(ckt_replies_acked(replies, second));
	IS(replies->bytes, 0);
	ckt_wcall_replay(&ckt_worker, &again, 1);
	IS(inside_sent(bytes, sizeof bytes), 0);
}

UNIT_SUITE(call, {"replies", test_replies}, {"deferred", test_deferred}, {"kept", test_kept})
