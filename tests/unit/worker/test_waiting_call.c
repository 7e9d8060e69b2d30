/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/waiting_call.c: allocations of a real worker that wait, with the server's
 * end of its lease channel in the test.  argv[1] the worker, argv[2] the soft libcuda.so.1.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "rpc/lease.h"
#include "server/worker/module/blob.h"
#include "tests/unit/worker/wire_lease.h"

/* An allocation that waits: its xid, and the question. */
static uint32_t wait_for(struct wire *w, uint64_t mib, struct ckt_lease_message *ret_question)
{
	uint32_t xid = WIRE_SEND(w, mem_alloc, true, false, .size = mib * MIB);
	struct ckt_lease_message question = lease_heard(WIRE_GUARD_MS);
	MUST(question.kind, CKT_LEASE_ASK);
	IS(question.flags, 0);
	lease_answer(&question, 0, CKT_LEASE_MAY_WAIT);
	*ret_question = lease_heard(WIRE_GUARD_MS);
	MUST(ret_question->kind, CKT_LEASE_ASK);
	IS(ret_question->flags, CKT_LEASE_WAIT);
	IS(ret_question->bytes, mib * MIB);
	lease_answer(ret_question, 0, CKT_LEASE_WAIT);
	return xid;
}

static void test_granted(void)
{
	struct ckt_lease_message question, other;
	struct wire *w = lease_begin(true, NULL);
	uint32_t xid = wait_for(w, 8, &question);
	/* Other commands are executed meanwhile, and other allocations wait beside it. */
	w->thread = 2;
	IS(lease_result(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	uint32_t second = wait_for(w, 4, &other);
	w->thread = 0;
	/* What is reserved for one is not the other's. */
	YES(lease_told(w, &other, 4 * MIB));
	IS(lease_result(wire_read(w, second)), CUDA_SUCCESS);
	YES(lease_told(w, &question, 8 * MIB));
	IS(lease_result(wire_read(w, xid)), CUDA_SUCCESS);
	IS(lease_heard(20).kind, 0);
	lease_end(w);
}

static void test_refused(void)
{
	struct ckt_lease_message question, message;
	struct wire *w = lease_begin(true, NULL);
	uint32_t xid = wait_for(w, 8, &question);
	YES(lease_told(w, &question, 0));
	IS(lease_result(wire_read(w, xid)), CUDA_ERROR_OUT_OF_MEMORY);
	/* Refused at once, or granted at once. */
	xid = WIRE_SEND(w, mem_alloc, true, false, .size = 8 * MIB);
	message = lease_heard(WIRE_GUARD_MS);
	lease_answer(&message, 0, CKT_LEASE_MAY_WAIT);
	message = lease_heard(WIRE_GUARD_MS);
	IS(message.flags, CKT_LEASE_WAIT);
	lease_answer(&message, 0, 0);
	IS(lease_result(wire_read(w, xid)), CUDA_ERROR_OUT_OF_MEMORY);
	xid = WIRE_SEND(w, mem_alloc, true, false, .size = 8 * MIB);
	message = lease_heard(WIRE_GUARD_MS);
	lease_answer(&message, 0, CKT_LEASE_MAY_WAIT);
	message = lease_heard(WIRE_GUARD_MS);
	lease_answer(&message, message.bytes, 0);
	IS(lease_result(wire_read(w, xid)), CUDA_SUCCESS);
	/* What nobody waits for comes back at once. */
	YES(lease_told(w, &question, 6 * MIB));
	message = lease_heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_GIVE);
	IS(message.bytes, 6 * MIB);
	lease_end(w);
}

static void test_gone(void)
{
	struct ckt_lease_message question, message;
	struct wire *w = lease_begin(true, NULL);
	uint32_t xid = wait_for(w, 8, &question);
	wire_disconnect(w);
	message = lease_heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_WITHDRAW);
	IS(message.number, question.number);
	IS(message.flags, 0);
	/* It comes back: asked for again, and executed once. */
	MUST(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	message = lease_heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_ASK);
	IS(message.flags, CKT_LEASE_WAIT);
	lease_answer(&message, 0, CKT_LEASE_WAIT);
	w->executed = 0;
	wire_resend(w);
	YES(lease_told(w, &message, 8 * MIB));
	IS(lease_result(wire_read(w, xid)), CUDA_SUCCESS);
	IS(lease_heard(20).kind, 0);
	lease_end(w);
}

/* Frozen: the call is answered, and not executed. */
static void test_frozen(void)
{
	struct ckt_worker_pause_args args = {.deadline_ms = WIRE_GUARD_MS};
	for (int again = 0; again < 2; again++) {
		struct ckt_lease_message question, message;
		struct wire *w = lease_begin(again, NULL);
		uint32_t xid = wait_for(w, 8, &question);
		ckt_worker_result paused = wire_control(
			w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args);
		IS(paused.status, 0);
		IS(lease_result(wire_read(w, xid)),
			again ? (CUresult)CKT_RESULT_AGAIN : CUDA_ERROR_OUT_OF_MEMORY);
		message = lease_heard(WIRE_GUARD_MS);
		IS(message.kind, CKT_LEASE_WITHDRAW);
		IS(message.flags, CKT_LEASE_KEEP_PLACE);
		IS(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, 0);
		lease_end(w);
	}
}

/* The status of a module's load, which is answered by a thread beside the executor. */
static CUresult status_of(struct wire_reply reply)
{
	struct ckt_module_load_res res = {.status = 999};
	CUresult result = reply.result;
	if (!result)
		YES(ckt_module_load_res_get(&reply.results, &res));
	free(reply.data);
	return result ? result : (CUresult)res.status;
}

/* A load that asks for memory. */
static uint32_t load_begin(struct wire *w, unsigned number, struct ckt_lease_message *ret_question)
{
	static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
				  ".visible .global .align 4 .b8 big[4194304];\n";
	uint8_t hash[32];
	ckt_blob_hash(ptx, sizeof ptx, hash);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx, .offset = 0,
		.data = (const uint8_t *)ptx, .data_len = sizeof ptx);
	uint32_t xid = WIRE_SEND(
		w, module_load, true, false, .id = MODULE(number), .hash = hash, .hash_len = 32);
	*ret_question = lease_heard(WIRE_GUARD_MS);
	MUST(ret_question->kind, CKT_LEASE_ASK);
	IS(ret_question->flags, 0);
	return xid;
}

static uint32_t load(struct wire *w, unsigned number, struct ckt_lease_message *ret_question)
{
	uint32_t xid = load_begin(w, number, ret_question);
	lease_answer(ret_question, 0, CKT_LEASE_MAY_WAIT);
	*ret_question = lease_heard(WIRE_GUARD_MS);
	MUST(ret_question->kind, CKT_LEASE_ASK);
	IS(ret_question->flags, CKT_LEASE_WAIT);
	lease_answer(ret_question, 0, CKT_LEASE_WAIT);
	return xid;
}

/* A module's memory is waited for like any other, and nobody else waits meanwhile. */
static void test_module(void)
{
	struct ckt_lease_message question;
	struct wire *w = lease_begin(true, NULL);
	uint32_t xid = load(w, 1, &question);
	w->thread = 2;
	IS(lease_result(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	w->thread = 0;
	YES(lease_told(w, &question, question.bytes));
	IS(status_of(wire_read(w, xid)), CUDA_SUCCESS);
	IS(lease_heard(20).kind, 0);
	xid = load(w, 2, &question);
	YES(lease_told(w, &question, 0));
	IS(status_of(wire_read(w, xid)), CUDA_ERROR_OUT_OF_MEMORY);
	lease_end(w);
}

/* ---- A load that is still beside the executor when the session is to be frozen */

static void *pause_session(void *opaque)
{
	struct ckt_worker_pause_args args = {.deadline_ms = WIRE_GUARD_MS};
	static ckt_worker_result paused;
	paused =
		wire_control(opaque, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args);
	return &paused;
}

/* A command that the executor leaves where it is, since it waits for the load. */
static uint32_t send_unheard(struct wire *w)
{
	enum { SILENT_MS = 200 };
	for (;;) {
		uint32_t xid = WIRE_SEND(w, ctx_synchronize, false, false, 0);
		struct pollfd p = {.fd = w->fd, .events = POLLIN};
		if (poll(&p, 1, SILENT_MS) == 0)
			return xid;
		IS(lease_result(wire_read(w, xid)), CUDA_SUCCESS);
	}
}

static void test_frozen_meanwhile(void)
{
	struct ckt_lease_message question;
	pthread_t pauses;
	void *paused;
	struct wire *w = lease_begin(true, NULL);
	uint32_t xid = load_begin(w, 1, &question);
	MUST(pthread_create(&pauses, NULL, pause_session, w), 0);
	w->thread = 2;
	uint32_t later = send_unheard(w);
	w->thread = 0;
	lease_answer(&question, 0, CKT_LEASE_MAY_WAIT);
	question = lease_heard(WIRE_GUARD_MS);
	IS(question.flags, CKT_LEASE_WAIT);
	lease_answer(&question, 0, CKT_LEASE_WAIT);
	question = lease_heard(WIRE_GUARD_MS);
	IS(question.kind, CKT_LEASE_WITHDRAW);
	IS(question.flags, CKT_LEASE_KEEP_PLACE);
	MUST(pthread_join(pauses, &paused), 0);
	IS(((ckt_worker_result *)paused)->status, 0);
	/* An image of now holds no call without an answer. */
	IS(status_of(wire_read(w, xid)), (CUresult)CKT_RESULT_AGAIN);
	IS(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, 0);
	IS(lease_result(wire_read(w, later)), CUDA_SUCCESS);
	lease_end(w);
}

UNIT_SUITE(waiting_call, {"granted", test_granted}, {"refused", test_refused}, {"gone", test_gone},
	{"frozen", test_frozen}, {"module", test_module},
	{"frozen meanwhile", test_frozen_meanwhile})
