/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: the client is told once and in order, told again when it comes back, and its
 * answer lets the stream go on.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/net.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/hostfunc.h"
#include "tests/unit/worker/inside.h"

struct told {
	uint64_t instance, number, exec;
	uint32_t status;
};

static uint8_t bytes[4096];

static unsigned told(struct told *ret, unsigned room)
{
	unsigned count = 0;
	struct ckt_cursor c = {.p = bytes, .end = bytes + inside_sent(bytes, sizeof bytes)};
	while (c.p < c.end && count < room) {
		struct ckt_call_header header;
		IS(ckt_get_u32(&c), 0x80000000u | (CKT_CALL_HEADER_SIZE + 28));
		struct ckt_cursor record = {.p = c.p, .end = c.p + CKT_CALL_HEADER_SIZE + 28};
		c.p = record.end;
		YES(ckt_call_header_get(&record, &header));
		IS(header.prog, CRICKET_CALLBACK_PROG);
		IS(header.proc, CKT_CALLBACK_HOST_CALL);
		struct told *t = &ret[count++];
		t->instance = ckt_get_u64(&record);
		t->number = ckt_get_u64(&record);
		t->exec = ckt_get_u64(&record);
		t->status = ckt_get_u32(&record);
		YES(ckt_cursor_done(&record));
	}
	return count;
}

/* They come on threads of the driver. */
static unsigned wait_told(struct told *ret, unsigned wanted)
{
	unsigned count = 0;
	for (int i = 0; i < 60000 && count < wanted; i++) {
		ckt_hostcalls_send(&ckt_worker);
		count += told(ret + count, wanted - count);
		poll(NULL, 0, 1);
	}
	return count;
}

static void test_calls(void)
{
	struct told t[4] = {0}, again[4] = {0};
	CUstream real;
	NO(ckt_hostcalls_waiting(&ckt_worker));
	IS(ckt_hostcalls_rest(&ckt_worker, -1), 0);
	IS(ckt_hostcalls_rest(&ckt_worker, ckt_net_now_ms() + 60000), 0);
	IS(ckt_hostcalls_rest(&ckt_worker, ckt_net_now_ms()), -ETIMEDOUT);
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 1), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	MUST(ckt_object_stream(&ckt_worker, ID(STREAM, 1), &real), CUDA_SUCCESS);
	IS(ASK(host_func, .stream = ID(STREAM, 1), .number = 41), CUDA_SUCCESS);
	IS(ASK(host_func, .stream = ID(STREAM, 1), .number = 42, .callback = 1), CUDA_SUCCESS);
	IS(wait_told(t, 1), 1);
	IS(t[0].number, 41);
	IS(t[0].exec, 0);
	IS(t[0].status, CUDA_SUCCESS);
	IS(t[0].instance >> 40, ckt_worker.generation);
	YES(ckt_hostcalls_waiting(&ckt_worker));
	IS(ckt_hostcalls_rest(&ckt_worker, ckt_net_now_ms() + 60000), -EAGAIN);
	IS(ckt_hostcalls_rest(&ckt_worker, -1), 0);
	/* Once, until a new connection asks; and the second waits for its stream. */
	ckt_hostcalls_send(&ckt_worker);
	IS(told(again, 4), 0);
	ckt_hostcalls_resend(&ckt_worker);
	IS(told(again, 4), 1);
	IS(again[0].instance, t[0].instance);
	IS(ckt_driver.cuStreamQuery(real), CUDA_ERROR_NOT_READY);
	IS(ASK(host_func_done, .instance = 12345), CUDA_SUCCESS); /* nobody's */
	YES(ckt_hostcalls_waiting(&ckt_worker));
	IS(ASK(host_func_done, .instance = t[0].instance), CUDA_SUCCESS);
	IS(wait_told(t + 1, 1), 1);
	IS(t[1].number, 42);
	YES(t[1].instance > t[0].instance);
	IS(ASK(host_func_done, .instance = t[0].instance), CUDA_SUCCESS); /* said twice */
	YES(ckt_hostcalls_waiting(&ckt_worker));
	IS(ASK(host_func_done, .instance = t[1].instance), CUDA_SUCCESS);
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
	NO(ckt_hostcalls_waiting(&ckt_worker));
}

/* Several streams, answered in another order than they came. */
static void test_streams(void)
{
	struct told t[3] = {0};
	for (unsigned i = 0; i < 3; i++) {
		if (i)
			MUST(ckt_worker_stream_make(
				     &ckt_worker, ID(STREAM, 1 + i), CU_STREAM_NON_BLOCKING, 0),
				CUDA_SUCCESS);
		IS(ASK(host_func, .stream = ID(STREAM, 1 + i), .number = 100 + i), CUDA_SUCCESS);
	}
	IS(wait_told(t, 3), 3);
	uint64_t seen = 0;
	for (unsigned i = 0; i < 3; i++)
		seen |= 1u << (t[i].number - 100);
	IS(seen, 7);
	static const unsigned order[] = {1, 2, 0};
	for (unsigned i = 0; i < 3; i++) {
		YES(ckt_hostcalls_waiting(&ckt_worker));
		IS(ASK(host_func_done, .instance = t[order[i]].instance), CUDA_SUCCESS);
	}
	NO(ckt_hostcalls_waiting(&ckt_worker));
	for (unsigned i = 0; i < 3; i++) {
		CUstream real;
		MUST(ckt_object_stream(&ckt_worker, ID(STREAM, 1 + i), &real), CUDA_SUCCESS);
		IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 1 + i)));
	}
	IS(ASK(host_func, .stream = ID(STREAM, 99), .number = 1), CUDA_ERROR_INVALID_HANDLE);
	IS(CUT(host_func, .stream = 0, .number = 1), 0);
	IS(CUT(host_func_done, .instance = 1), 0);
}

UNIT_SUITE(hostfunc, {"calls", test_calls}, {"streams", test_streams})
