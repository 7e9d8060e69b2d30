/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/waiting_call.c: allocations of a real worker that wait, with the server's
 * end of its lease channel in the test.  argv[1] the worker, argv[2] the soft libcuda.so.1.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/lease.h"
#include "rpc/net.h"
#include "server/worker/module/blob.h"
#include "tests/unit/worker/wire_session.h"

static int channel;

/* A worker whose server grants nothing by itself. */
static struct wire *begin(bool takes_again)
{
	int ends[2];
	struct ckt_worker_lease_args args = {.unlimited = false};
	ckt_worker_lease_res res = {0};
	struct wire *w = calloc(1, sizeof *w);
	char message[CKT_MESSAGE_MAX];
	MUST(w != NULL, true);
	w->fd = -1;
	w->takes_again = takes_again;
	MUST(wire_start(w, worker_path, driver_path, 0, -1, message), 0);
	MUST(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	channel = ends[0];
	MUST(ckt_net_call(w->control, CRICKET_WORKER_PROG, CKT_WORKER_LEASE,
		     (xdrproc_t)xdr_ckt_worker_lease_args, &args,
		     (xdrproc_t)xdr_ckt_worker_lease_res, &res, ckt_net_now_ms() + WIRE_GUARD_MS,
		     ends[1]),
		0);
	close(ends[1]);
	xdr_free((xdrproc_t)xdr_ckt_worker_lease_res, (char *)&res);
	return w;
}

static void end(struct wire *w)
{
	close(channel);
	session_end(w);
}

/* The next message of the worker's; kind 0: none came. */
static struct ckt_lease_message heard(int timeout_ms)
{
	struct ckt_lease_message message = {0};
	struct pollfd p = {.fd = channel, .events = POLLIN};
	if (poll(&p, 1, timeout_ms) <= 0 ||
		recv(channel, &message, sizeof message, 0) != sizeof message)
		message.kind = 0;
	return message;
}

static void answer(const struct ckt_lease_message *question, uint64_t bytes, uint32_t flags)
{
	struct ckt_lease_message message = {.kind = CKT_LEASE_ANSWER,
		.number = question->number,
		.gpu = question->gpu,
		.flags = flags,
		.bytes = bytes,
		.total = 100 * MIB,
		.left = bytes};
	MUST(send(channel, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
}

/* An allocation that waits: its xid, and the question. */
static uint32_t wait_for(struct wire *w, uint64_t mib, struct ckt_lease_message *ret_question)
{
	uint32_t xid = WIRE_SEND(w, mem_alloc, true, false, .size = mib * MIB);
	struct ckt_lease_message question = heard(WIRE_GUARD_MS);
	MUST(question.kind, CKT_LEASE_ASK);
	IS(question.flags, 0);
	answer(&question, 0, CKT_LEASE_MAY_WAIT);
	*ret_question = heard(WIRE_GUARD_MS);
	MUST(ret_question->kind, CKT_LEASE_ASK);
	IS(ret_question->flags, CKT_LEASE_WAIT);
	IS(ret_question->bytes, mib * MIB);
	answer(ret_question, 0, CKT_LEASE_WAIT);
	return xid;
}

static bool told(struct wire *w, const struct ckt_lease_message *question, uint64_t bytes)
{
	struct ckt_worker_waited_args args = {
		.number = question->number, .gpu = question->gpu, .bytes = bytes};
	return ckt_net_call(w->control, CRICKET_WORKER_PROG, CKT_WORKER_LEASE_WAITED,
		       (xdrproc_t)xdr_ckt_worker_waited_args, &args, NULL, NULL,
		       ckt_net_now_ms() + WIRE_GUARD_MS, -1) == 0;
}

static CUresult result_of(struct wire_reply reply)
{
	CUresult result = reply.result;
	free(reply.data);
	return result;
}

static void test_granted(void)
{
	struct ckt_lease_message question, other;
	struct wire *w = begin(true);
	uint32_t xid = wait_for(w, 8, &question);
	/* Other commands are executed meanwhile, and other allocations wait beside it. */
	w->thread = 2;
	IS(result_of(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	uint32_t second = wait_for(w, 4, &other);
	w->thread = 0;
	/* What is reserved for one is not the other's. */
	YES(told(w, &other, 4 * MIB));
	IS(result_of(wire_read(w, second)), CUDA_SUCCESS);
	YES(told(w, &question, 8 * MIB));
	IS(result_of(wire_read(w, xid)), CUDA_SUCCESS);
	IS(heard(20).kind, 0);
	end(w);
}

static void test_refused(void)
{
	struct ckt_lease_message question, message;
	struct wire *w = begin(true);
	uint32_t xid = wait_for(w, 8, &question);
	YES(told(w, &question, 0));
	IS(result_of(wire_read(w, xid)), CUDA_ERROR_OUT_OF_MEMORY);
	/* Refused at once, or granted at once. */
	xid = WIRE_SEND(w, mem_alloc, true, false, .size = 8 * MIB);
	message = heard(WIRE_GUARD_MS);
	answer(&message, 0, CKT_LEASE_MAY_WAIT);
	message = heard(WIRE_GUARD_MS);
	IS(message.flags, CKT_LEASE_WAIT);
	answer(&message, 0, 0);
	IS(result_of(wire_read(w, xid)), CUDA_ERROR_OUT_OF_MEMORY);
	xid = WIRE_SEND(w, mem_alloc, true, false, .size = 8 * MIB);
	message = heard(WIRE_GUARD_MS);
	answer(&message, 0, CKT_LEASE_MAY_WAIT);
	message = heard(WIRE_GUARD_MS);
	answer(&message, message.bytes, 0);
	IS(result_of(wire_read(w, xid)), CUDA_SUCCESS);
	/* What nobody waits for comes back at once. */
	YES(told(w, &question, 6 * MIB));
	message = heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_GIVE);
	IS(message.bytes, 6 * MIB);
	end(w);
}

static void test_gone(void)
{
	struct ckt_lease_message question, message;
	struct wire *w = begin(true);
	uint32_t xid = wait_for(w, 8, &question);
	wire_disconnect(w);
	message = heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_WITHDRAW);
	IS(message.number, question.number);
	IS(message.flags, 0);
	/* It comes back: asked for again, and executed once. */
	MUST(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	message = heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_ASK);
	IS(message.flags, CKT_LEASE_WAIT);
	answer(&message, 0, CKT_LEASE_WAIT);
	w->executed = 0;
	wire_resend(w);
	YES(told(w, &message, 8 * MIB));
	IS(result_of(wire_read(w, xid)), CUDA_SUCCESS);
	IS(heard(20).kind, 0);
	end(w);
}

/* Frozen: the call is answered, and not executed. */
static void test_frozen(void)
{
	struct ckt_worker_pause_args args = {.deadline_ms = WIRE_GUARD_MS};
	for (int again = 0; again < 2; again++) {
		struct ckt_lease_message question, message;
		struct wire *w = begin(again);
		uint32_t xid = wait_for(w, 8, &question);
		ckt_worker_result paused = wire_control(
			w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args);
		IS(paused.status, 0);
		IS(result_of(wire_read(w, xid)),
			again ? (CUresult)CKT_RESULT_AGAIN : CUDA_ERROR_OUT_OF_MEMORY);
		message = heard(WIRE_GUARD_MS);
		IS(message.kind, CKT_LEASE_WITHDRAW);
		IS(message.flags, CKT_LEASE_KEEP_PLACE);
		IS(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, 0);
		end(w);
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

static uint32_t load(struct wire *w, unsigned number, struct ckt_lease_message *ret_question)
{
	static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
				  ".visible .global .align 4 .b8 big[4194304];\n";
	uint8_t hash[32];
	ckt_blob_hash(ptx, sizeof ptx, hash);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx, .offset = 0,
		.data = (const uint8_t *)ptx, .data_len = sizeof ptx);
	uint32_t xid = WIRE_SEND(
		w, module_load, true, false, .id = MODULE(number), .hash = hash, .hash_len = 32);
	struct ckt_lease_message question = heard(WIRE_GUARD_MS);
	MUST(question.kind, CKT_LEASE_ASK);
	IS(question.flags, 0);
	answer(&question, 0, CKT_LEASE_MAY_WAIT);
	*ret_question = heard(WIRE_GUARD_MS);
	MUST(ret_question->kind, CKT_LEASE_ASK);
	IS(ret_question->flags, CKT_LEASE_WAIT);
	answer(ret_question, 0, CKT_LEASE_WAIT);
	return xid;
}

/* A module's memory is waited for like any other, and nobody else waits meanwhile. */
static void test_module(void)
{
	struct ckt_lease_message question;
	struct wire *w = begin(true);
	uint32_t xid = load(w, 1, &question);
	w->thread = 2;
	IS(result_of(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	w->thread = 0;
	YES(told(w, &question, question.bytes));
	IS(status_of(wire_read(w, xid)), CUDA_SUCCESS);
	IS(heard(20).kind, 0);
	xid = load(w, 2, &question);
	YES(told(w, &question, 0));
	IS(status_of(wire_read(w, xid)), CUDA_ERROR_OUT_OF_MEMORY);
	end(w);
}

UNIT_SUITE(waiting_call, {"granted", test_granted}, {"refused", test_refused}, {"gone", test_gone},
	{"frozen", test_frozen}, {"module", test_module})
