/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/nccl/nccl_comm.c: communicators' lanes and ends. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/state.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/call.h"
#include "tests/unit/worker/nccl_kit.h"

static struct ckt_nccl_comm *find(uint64_t id)
{
	struct ckt_nccl_comm *comm = NULL;
	return ckt_worker_nccl_comm_find(&ckt_worker, id, &comm) ? NULL : comm;
}

/* What has run is finished, until it is so. */
static void until(bool (*done)(void))
{
	for (int i = 0; i < 60000 && !done(); i++) {
		ckt_blocking_call_finish(&ckt_worker);
		poll(NULL, 0, 1);
	}
	YES(done());
}

static void test_refused(void)
{
	static uint8_t identity[CKT_NCCL_ID_BYTES], ids[CKT_NCCL_ID_BYTES];
	nccl_begin();
#define SENT(...)                                                                 \
	NCCL(NCCL_COMM, nccl_comm, true, .id = NCCL_ID(20), .identity = identity, \
		.identity_len = 128, __VA_ARGS__)                                 \
		->result
	IS(SENT(.ranks = 2, .rank = 0, .ids = ids, .ids_len = 127), INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = 0), INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = 2, .ids = ids, .ids_len = 128), INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = -1, .ids = ids, .ids_len = 128), INSIDE_GARBAGE);
	IS(SENT(.ranks = 0, .rank = 0, .ids = ids, .ids_len = 128), INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = 0, .ids = ids, .ids_len = 128, .parent = 5), INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = 0, .ids = ids, .ids_len = 128, .kind = CKT_NCCL_KINDS),
		INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = 0, .ids = ids, .ids_len = 128, .net = "a\0b", .net_len = 3),
		INSIDE_GARBAGE);
	IS(SENT(.ranks = 2, .rank = 0, .ids = ids, .ids_len = 128, .name = "\0", .name_len = 1),
		INSIDE_GARBAGE);
	IS(SENT(.kind = CKT_NCCL_SPLIT), INSIDE_GARBAGE);
	IS(SENT(.kind = CKT_NCCL_SPLIT, .parent = NCCL_ID(21)), CUDA_ERROR_INVALID_HANDLE);
	/* Only a log remembers one of which nothing came. */
	IS(SENT(.kind = CKT_NCCL_NONE), CUDA_ERROR_INVALID_VALUE);
	IS(NCCL(NCCL_COMM, nccl_comm, true, .id = 5, .identity = identity, .identity_len = 128,
		   .ranks = 1, .ids = ids, .ids_len = 128)
			->result,
		CUDA_ERROR_INVALID_VALUE);
	IS(NCCL(NCCL_END, nccl_end, false, .comm = NCCL_ID(20), .how = CKT_NCCL_HOWS)->result,
		INSIDE_GARBAGE);
	IS(NCCL(NCCL_END, nccl_end, false, .comm = NCCL_ID(20), .how = CKT_NCCL_DESTROY)->result,
		CUDA_ERROR_INVALID_HANDLE);
	uint64_t unknown[] = {NCCL_ID(20)};
	IS(NCCL(NCCL_SETTLE, nccl_settle, false, .comms = unknown, .comms_len = 1)->result,
		CUDA_ERROR_INVALID_HANDLE);
	TEXT(double_said(), "");
	/* An id twice. */
	nccl_make(NCCL_ID(20), 2, 0);
	YES(nccl_send(NCCL_ID(20), 2, 1, CKT_NCCL_INIT, 0)->result != CUDA_SUCCESS);
	IS(nccl_end(NCCL_ID(20), CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
}

/*
 * One waits for its peers: the other is made, used and ended meanwhile, and so is what else a
 * session does.
 */
static void test_beside(void)
{
	nccl_begin();
	nccl_make(NCCL_ID(30), 2, 0);
	double_hold("ncclCommSplit");
	IS(nccl_send(NCCL_ID(31), -1, -1, CKT_NCCL_SPLIT, NCCL_ID(30))->result, CUDA_SUCCESS);
	/* Behind it, in its parent's lane. */
	IS(nccl_send(NCCL_ID(32), -1, -1, CKT_NCCL_SPLIT, NCCL_ID(30))->result, CUDA_SUCCESS);
	double_await(1);
	nccl_make(NCCL_ID(33), 4, 3);
	IS(nccl_group(NCCL_ID(33), 1), CUDA_SUCCESS);
	IS(nccl_end(NCCL_ID(33), CKT_NCCL_DESTROY), ncclSuccess);
	YES(find(NCCL_ID(31))->pending && find(NCCL_ID(32))->pending);
	YES(ckt_blocking_call_is_busy(&ckt_worker));
	/* A group on one that is not made yet is its client's mistake, and waits for nothing. */
	IS(nccl_group(NCCL_ID(31), 1), CUDA_ERROR_NOT_READY);
	double_hold(NULL);
	IS(nccl_settle(NCCL_ID(31)), ncclSuccess);
	IS(nccl_settle(NCCL_ID(32)), ncclSuccess);
	IS(find(NCCL_ID(32))->ranks, 2);
	IS(find(NCCL_ID(32))->rank, 1);
	for (unsigned n = 30; n <= 32; n++)
		IS(nccl_end(NCCL_ID(n), CKT_NCCL_DESTROY), ncclSuccess);
	YES(!find(NCCL_ID(30)));
	NO(ckt_blocking_call_is_busy(&ckt_worker));
	IS(double_living(), 0);
	IS(double_astray(), 0);
}

static bool is_idle(void)
{
	return !ckt_blocking_call_is_busy(&ckt_worker);
}

/*
 * A group that waits for peers who do not come is ended by an abort, which does not stand behind
 * it.
 */
static void test_abort(void)
{
	uint8_t bytes[CKT_NCCL_OPERATION_BYTES];
	nccl_begin();
	nccl_make(NCCL_ID(40), 2, 0);
	ckt_nccl_operation_put(bytes,
		&(struct ckt_nccl_operation){
			.function = CKT_NCCL_SEND, .comm = NCCL_ID(40), .stream = 2, .count = 1});
	struct ckt_nccl_group_meet_args args = {
		.operations = bytes, .operations_len = sizeof bytes};
	uint8_t message[256];
	size_t size = (size_t)(ckt_nccl_group_meet_args_put(message, &args) - message);
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->proc = &ckt_nccl_procs[CKT_NCCL_PROC_NCCL_GROUP_MEET];
	call->header = (struct ckt_call_header){.prog = ckt_lib_prog(CKT_LIB_NCCL),
		.proc = CKT_NCCL_PROC_NCCL_GROUP_MEET,
		.flags = CKT_CALL_BATCHED};
	call->args = (struct ckt_cursor){.p = message, .end = message + size};
	double_hold("ncclSend");
	IS(call->proc->handler(call), CKT_WCALL_LATER);
	double_await(1);
	char text[CKT_MESSAGE_MAX];
	/* Nor is the session frozen meanwhile. */
	IS(inside_freeze(200, text), -ETIMEDOUT);
	HAS(text, "other ranks");
	/* Nor when its time is over before the executor looks. */
	MUST(inside_freeze(1, text), -ETIMEDOUT);
	HAS(text, "other ranks");
	IS(nccl_end(NCCL_ID(40), CKT_NCCL_ABORT), ncclSuccess);
	until(is_idle);
	YES(!find(NCCL_ID(40)));
	IS(double_living(), 0);
	MUST(inside_freeze(5000, text), 0);
}

/* What the client gives up, and what goes with its context, while it is being made. */
static void test_forget(void)
{
	nccl_begin();
	double_hold("ncclCommInitRank");
	IS(nccl_send(NCCL_ID(50), 2, 0, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	double_await(1);
	IS(nccl_end(NCCL_ID(50), CKT_NCCL_FORGET), ncclSuccess);
	YES(!find(NCCL_ID(50)));
	double_hold(NULL);
	until(is_idle);
	HAS(double_said(), "ncclCommAbort");
	IS(double_living(), 0);
	nccl_make(NCCL_ID(51), 2, 0);
	IS(nccl_end(NCCL_ID(51), CKT_NCCL_FORGET), ncclSuccess);
	IS(double_living(), 0);
	IS(double_astray(), 0);
}

UNIT_SUITE(worker_nccl_comm, {"what is refused", test_refused},
	{"ranks do not wait for each other here", test_beside}, {"abort", test_abort},
	{"what is given up while it is made", test_forget})
