/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a library takes for itself and that is waited for (library_long_call.h): the work
 * area of a plan of the soft GPU's cuFFT.
 */
#include <cufft.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "rpc/gen/cufft_codec.h"
#include "tests/unit/worker/wire_lease.h"

enum { POINTS = 1 << 17 };

#define PLAN(n) ckt_handle_make(CKT_KIND_LIB_OBJECT, 1, 700 + (n))

static uint32_t send_cufft(
	struct wire *w, uint32_t proc, const void *args, size_t size, bool numbered)
{
	w->prog = ckt_lib_prog(CKT_LIB_CUFFT);
	uint32_t xid = wire_send(w, proc, args, size, numbered, false);
	w->prog = 0;
	return xid;
}

/* The library's status; -1: the call failed otherwise, with *ret_result. */
static int plan_status(struct wire_reply reply, CUresult *ret_result)
{
	int status = reply.result ? -1 : (int)ckt_get_u32(&reply.results);
	*ret_result = reply.result;
	free(reply.data);
	return status;
}

static struct wire *begin_cufft(void)
{
	static char libraries[4096];
	uint8_t version[4];
	const char *directory = getenv("CRICKET_LIBRARY_SOFT");
	MUST(directory != NULL, true);
	snprintf(libraries, sizeof libraries, "CRICKET_LIBRARY_SOFT=%s", directory);
	struct wire *w = lease_begin(true, libraries);
	ckt_put_u32(version, 12000);
	MUST(lease_result(wire_read(
		     w, send_cufft(w, CKT_CUFFT_PROC_CUFFT_OPEN, version, sizeof version, false))),
		CUDA_SUCCESS);
	return w;
}

static void create_plan(struct wire *w, unsigned number)
{
	CUresult result;
	uint8_t bytes[8];
	ckt_put_u64(bytes, PLAN(number));
	uint32_t xid = send_cufft(w, CKT_CUFFT_PROC_CUFFTCREATE, bytes, sizeof bytes, true);
	MUST(plan_status(wire_read(w, xid), &result), CUFFT_SUCCESS);
}

static uint32_t make_plan(struct wire *w, unsigned number)
{
	struct ckt_cufftMakePlan1d_args args = {
		.plan = PLAN(number), .nx = POINTS, .type = CUFFT_C2C, .batch = 1};
	uint8_t bytes[64];
	ckt_cufftMakePlan1d_args_put(bytes, &args);
	return send_cufft(w, CKT_CUFFT_PROC_CUFFTMAKEPLAN1D, bytes,
		ckt_cufftMakePlan1d_args_size(&args), true);
}

/* What is asked for is not there, now and after the pools have given back what they keep. */
static void refuse_now(struct ckt_lease_message *ret_question)
{
	struct ckt_lease_message question = lease_heard(WIRE_GUARD_MS);
	for (; question.kind == CKT_LEASE_GIVE || !question.flags;
		question = lease_heard(WIRE_GUARD_MS))
		if (question.kind == CKT_LEASE_ASK)
			lease_answer(&question, 0, CKT_LEASE_MAY_WAIT);
		else
			MUST(question.kind, CKT_LEASE_GIVE);
	MUST(question.kind, CKT_LEASE_ASK);
	IS(question.flags, CKT_LEASE_WAIT);
	lease_answer(&question, 0, CKT_LEASE_WAIT);
	*ret_question = question;
}

/* The plan waits while other threads go on, and is made once. */
static void test_plan(void)
{
	struct ckt_lease_message question, again;
	uint8_t bytes[64];
	CUresult result;
	ckt_worker_press_args press = {.on = true};
	struct wire *w = begin_cufft();
	create_plan(w, 1);
	uint32_t xid = make_plan(w, 1);
	refuse_now(&question);
	YES(question.bytes >= POINTS * 16);
	/* Others wait, too: what the worker neither uses nor keeps for a wait it gives back. */
	wire_ask(w, CKT_WORKER_LEASE_PRESS, (xdrproc_t)xdr_ckt_worker_press_args, &press, NULL,
		NULL);
	w->thread = 2;
	IS(lease_result(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	/* Nor does the thread beside the executor wait: one that takes no memory is made meanwhile. */
	create_plan(w, 2);
	struct ckt_fft_set_auto_allocation_args none = {.plan = PLAN(2), .allocate = 0};
	ckt_fft_set_auto_allocation_args_put(bytes, &none);
	IS(lease_result(wire_read(w,
		   send_cufft(w, CKT_CUFFT_PROC_FFT_SET_AUTO_ALLOCATION, bytes,
			   ckt_fft_set_auto_allocation_args_size(&none), true))),
		CUDA_SUCCESS);
	IS(plan_status(wire_read(w, make_plan(w, 2)), &result), CUFFT_SUCCESS);
	w->thread = 0;
	/* It has less than it needs: gives that back, and waits again for all of it. */
	YES(lease_told(w, &question, question.bytes - 2 * MIB));
	refuse_now(&again);
	IS(again.bytes, question.bytes);
	YES(lease_told(w, &again, again.bytes));
	IS(plan_status(wire_read(w, xid), &result), CUFFT_SUCCESS);
	IS(lease_heard(20).kind, 0);
	/* It is a plan, and this one only. */
	xid = make_plan(w, 1);
	IS(plan_status(wire_read(w, xid), &result), CUFFT_INVALID_PLAN);
	create_plan(w, 3);
	xid = make_plan(w, 3);
	refuse_now(&question);
	YES(lease_told(w, &question, 0));
	IS(plan_status(wire_read(w, xid), &result), -1);
	IS(result, CUDA_ERROR_OUT_OF_MEMORY);
	lease_end(w);
}

/* The client is back, and its plan waits until the memory is granted. */
static void come_back(struct wire *w, uint32_t xid)
{
	struct ckt_lease_message question;
	CUresult result;
	MUST(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	refuse_now(&question);
	w->executed = w->seq - 1;
	wire_resend(w);
	YES(lease_told(w, &question, question.bytes));
	IS(plan_status(wire_read(w, xid), &result), CUFFT_SUCCESS);
	lease_end(w);
}

static void test_plan_gone(void)
{
	struct ckt_lease_message question, message;
	struct wire *w = begin_cufft();
	create_plan(w, 1);
	uint32_t xid = make_plan(w, 1);
	refuse_now(&question);
	wire_disconnect(w);
	message = lease_heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_WITHDRAW);
	IS(message.number, question.number);
	come_back(w, xid);
}

/* The worker's executor has seen that the client is gone. */
static void leave(struct wire *w)
{
	uint8_t byte;
	MUST(shutdown(w->fd, SHUT_WR), 0);
	while (recv(w->fd, &byte, sizeof byte, 0) > 0)
		;
	wire_disconnect(w);
}

/* A call that came back without its memory while no client is there: asked for when one is back. */
static void test_plan_refused_later(void)
{
	struct ckt_lease_message question, message;
	struct wire *w = begin_cufft();
	create_plan(w, 1);
	uint32_t xid = make_plan(w, 1);
	question = lease_heard(WIRE_GUARD_MS);
	leave(w);
	lease_answer(&question, 0, CKT_LEASE_MAY_WAIT);
	/* Once more, when the pools have given back what they keep. */
	question = lease_heard(WIRE_GUARD_MS);
	IS(question.flags, 0);
	lease_answer(&question, 0, CKT_LEASE_MAY_WAIT);
	message = lease_heard(100);
	IS(message.kind, 0);
	come_back(w, xid);
}

static void test_plan_frozen(void)
{
	struct ckt_worker_pause_args args = {.deadline_ms = WIRE_GUARD_MS};
	struct ckt_lease_message question, message;
	CUresult result;
	struct wire *w = begin_cufft();
	create_plan(w, 1);
	uint32_t xid = make_plan(w, 1);
	refuse_now(&question);
	IS(wire_control(w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args).status,
		0);
	IS(plan_status(wire_read(w, xid), &result), -1);
	IS(result, (CUresult)CKT_RESULT_AGAIN);
	message = lease_heard(WIRE_GUARD_MS);
	IS(message.kind, CKT_LEASE_WITHDRAW);
	IS(message.flags, CKT_LEASE_KEEP_PLACE);
	IS(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, 0);
	xid = make_plan(w, 1);
	refuse_now(&question);
	YES(lease_told(w, &question, question.bytes));
	IS(plan_status(wire_read(w, xid), &result), CUFFT_SUCCESS);
	lease_end(w);
}

UNIT_SUITE(library_waits, {"plan", test_plan}, {"gone", test_plan_gone},
	{"refused later", test_plan_refused_later}, {"frozen", test_plan_frozen})
