/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/nccl/group.c: every operation with every parameter, groups, what waits and what does
 * not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nccl/kit.h"

#define SEND ((void *)0x200000001000)
#define RECEIVE ((void *)0x200000002000)

static ncclComm_t comm;
static int comm_number; /* the double's; -1: not known yet */
static char wanted[512];

static void begin(void)
{
	double_begin();
	comm = kit_comm(4, 0);
	comm_number = -1;
	double_said();
	loop_mark();
}

static void end(void)
{
	IS(ncclCommDestroy(comm), ncclSuccess);
	kit_done();
}

static cudaStream_t stream(unsigned number)
{
	return (cudaStream_t)(uintptr_t)number;
}

/* The number that the double gave the communicator.  It has met itself afterwards. */
static int number(void)
{
	if (comm_number < 0) {
		IS(ncclSend(SEND, 1, ncclInt8, 0, comm, NULL), ncclSuccess);
		const char *at = strstr(double_said(), "comm ");
		MUST(at != NULL, true);
		comm_number = atoi(at + 5);
		loop_mark();
	}
	return comm_number;
}

#define CALLED(status, text, ...)                                                           \
	do {                                                                                \
		IS(status, ncclSuccess);                                                    \
		snprintf(wanted, sizeof wanted, "ncclGroupStart \n" text "ncclGroupEnd \n", \
			__VA_ARGS__);                                                       \
		TEXT(double_said(), wanted);                                                \
	} while (0)

/* Twice each: the first time it waits for its peers, afterwards for nothing. */
static void every_function(bool again)
{
	int n = number();
	unsigned batched = again ? 1 : 0;
#define COUNTED(...)                       \
	do {                               \
		loop_mark();               \
		CALLED(__VA_ARGS__);       \
		IS(loop_batched, batched); \
		IS(loop_waited, !batched); \
	} while (0)
	COUNTED(ncclAllReduce(SEND, RECEIVE, 11, ncclFloat16, ncclMax, comm, stream(2)),
		"ncclAllReduce %p %p 11 type 6 op 2 comm %d stream 0x2\n", SEND, RECEIVE, n);
	COUNTED(ncclReduce(SEND, RECEIVE, 12, ncclInt64, ncclAvg, 3, comm, stream(1)),
		"ncclReduce %p %p 12 type 4 op 4 root 3 comm %d stream 0x1\n", SEND, RECEIVE, n);
	COUNTED(ncclBroadcast(SEND, RECEIVE, 13, ncclFloat8e5m2, 2, comm, stream(2)),
		"ncclBroadcast %p %p 13 type 11 root 2 comm %d stream 0x2\n", SEND, RECEIVE, n);
	COUNTED(ncclReduceScatter(
			SEND, RECEIVE, (size_t)1 << 40, ncclBfloat16, ncclProd, comm, stream(2)),
		"ncclReduceScatter %p %p 1099511627776 type 9 op 1 comm %d stream 0x2\n", SEND,
		RECEIVE, n);
	COUNTED(ncclAllGather(SEND, RECEIVE, 15, ncclUint8, comm, stream(2)),
		"ncclAllGather %p %p 15 type 1 comm %d stream 0x2\n", SEND, RECEIVE, n);
	COUNTED(ncclAlltoAll(SEND, RECEIVE, 16, ncclInt32, comm, stream(2)),
		"ncclAlltoAll %p %p 16 type 2 comm %d stream 0x2\n", SEND, RECEIVE, n);
	COUNTED(ncclGather(SEND, RECEIVE, 17, ncclUint32, 1, comm, stream(2)),
		"ncclGather %p %p 17 type 3 root 1 comm %d stream 0x2\n", SEND, RECEIVE, n);
	COUNTED(ncclScatter(SEND, RECEIVE, 18, ncclUint64, 0, comm, stream(2)),
		"ncclScatter %p %p 18 type 5 root 0 comm %d stream 0x2\n", SEND, RECEIVE, n);
	COUNTED(ncclSend(SEND, 19, ncclFloat64, 1, comm, stream(2)),
		"ncclSend %p 19 type 8 peer 1 comm %d stream 0x2\n", SEND, n);
	COUNTED(ncclRecv(RECEIVE, 0, ncclFloat32, 3, comm, stream(2)),
		"ncclRecv %p 0 type 7 peer 3 comm %d stream 0x2\n", RECEIVE, n);
	/* Old name, in place; the same function to those that meet. */
	batched = 1;
	COUNTED(ncclBcast(RECEIVE, 20, ncclInt8, 1, comm, stream(2)),
		"ncclBroadcast %p %p 20 type 0 root 1 comm %d stream 0x2\n", RECEIVE, RECEIVE, n);
}

static void test_functions(void)
{
	begin();
	every_function(false);
	every_function(true);
	end();
	/* The second names are the same functions. */
	YES(pncclAllReduce == ncclAllReduce && pncclGroupEnd == ncclGroupEnd &&
		pncclRecv == ncclRecv);
}

static void test_group(void)
{
	begin();
	int n = number();
	/* It meets a peer in it, so it waits; the same again does not. */
	for (int again = 0; again < 2; again++) {
		loop_mark();
		IS(ncclGroupStart(), ncclSuccess);
		IS(ncclGroupStart(), ncclSuccess);
		IS(ncclSend(SEND, 1, ncclFloat, 1, comm, stream(2)), ncclSuccess);
		IS(ncclRecv(RECEIVE, 2, ncclFloat, 2, comm, stream(2)), ncclSuccess);
		IS(ncclGroupEnd(), ncclSuccess);
		IS(loop_batched + loop_waited, 0);
		CALLED(ncclGroupEnd(),
			"ncclSend %p 1 type 7 peer 1 comm %d stream 0x2\nncclRecv %p 2 type 7 peer 2 comm %d stream 0x2\n",
			SEND, n, RECEIVE, n);
		IS(loop_waited, !again);
		IS(loop_batched, again);
	}
	/* Nothing in it. */
	loop_mark();
	IS(ncclGroupStart(), ncclSuccess);
	IS(ncclGroupEnd(), ncclSuccess);
	IS(loop_batched + loop_waited, 0);
	IS(ncclGroupEnd(), ncclInvalidUsage);
	end();
}

static void test_large_group(void)
{
	begin();
	number();
	IS(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 200; i++)
		IS(ncclSend(SEND, (size_t)i, ncclFloat, 0, comm, stream(2)), ncclSuccess);
	IS(ncclGroupEnd(), ncclSuccess);
	HAS(double_said(), " 199 type 7");
	uint64_t before = ckt_worker_nccl_issued(&ckt_worker);
	double_answer("ncclSend", ncclSuccess);
	IS(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < CKT_NCCL_OPERATIONS_MAX + 1; i++)
		ncclSend(SEND, 1, ncclFloat, 0, comm, stream(2));
	IS(ncclGroupEnd(), ncclInvalidUsage);
	IS(ckt_worker_nccl_issued(&ckt_worker) - before, 0);
	end();
}

static void test_wrong(void)
{
	begin();
	number();
	loop_mark();
	IS(ncclAllReduce(SEND, RECEIVE, 1, (ncclDataType_t)ncclNumTypes, ncclSum, comm, NULL),
		ncclInvalidArgument);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, (ncclRedOp_t)5, comm, NULL),
		ncclInvalidArgument);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, (ncclRedOp_t)-1, comm, NULL),
		ncclInvalidArgument);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, NULL, NULL), ncclInvalidArgument);
	IS(ncclBroadcast(SEND, RECEIVE, 1, ncclFloat, 4, comm, NULL), ncclInvalidArgument);
	IS(ncclSend(SEND, 1, ncclFloat, -1, comm, NULL), ncclInvalidArgument);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, stream(77)),
		ncclInvalidArgument);
	IS(loop_batched + loop_waited, 0);
	/* In a group it is its end that says so, and nothing of it is done. */
	IS(ncclGroupStart(), ncclSuccess);
	IS(ncclSend(SEND, 1, ncclFloat, 0, comm, NULL), ncclSuccess);
	IS(ncclSend(SEND, 1, ncclFloat, 4, comm, NULL), ncclInvalidArgument);
	IS(ncclGroupEnd(), ncclInvalidArgument);
	IS(loop_batched + loop_waited, 0);
	/* Nor has anything of it stayed. */
	IS(ncclSend(SEND, 1, ncclFloat, 0, comm, NULL), ncclSuccess);
	YES(!strstr(double_said(), "peer 4"));
	/* What the library refuses of a first call is its answer. */
	double_answer("ncclAllGather", ncclInvalidUsage);
	IS(ncclAllGather(SEND, RECEIVE, 1, ncclFloat, comm, NULL), ncclInvalidUsage);
	double_answer("ncclAllGather", ncclSuccess);
	IS(ncclAllGather(SEND, RECEIVE, 1, ncclFloat, comm, NULL), ncclSuccess);
	end();
}

/* Connections are made anew by a restore, and that waits again. */
static void test_restored(void)
{
	begin();
	for (int i = 0; i < 4; i++) {
		loop_generation += i == 2;
		loop_mark();
		IS(ncclSend(SEND, 1, ncclFloat, 1, comm, NULL), ncclSuccess);
		IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
		IS(loop_waited, i % 2 ? 0 : 2);
	}
	end();
}

/* One that nobody waited for: the session's error, and the communicator's. */
static void test_failure(void)
{
	ncclResult_t error = ncclSuccess;
	begin();
	number();
	double_answer("ncclSend", ncclSystemError);
	IS(ncclSend(SEND, 1, ncclFloat, 0, comm, NULL), ncclSuccess);
	IS(loop_deferred(), CUDA_ERROR_UNKNOWN);
	IS(ncclCommGetAsyncError(comm, &error), ncclSuccess);
	IS(error, ncclSystemError);
	/* CRICKET_SYNC=1 */
	loop_sync = true;
	IS(ncclSend(SEND, 1, ncclFloat, 0, comm, NULL), ncclSystemError);
	double_answer("ncclSend", ncclSuccess);
	IS(ncclSend(SEND, 1, ncclFloat, 0, comm, NULL), ncclSuccess);
	loop_sync = false;
	end();
}

static void test_capture(void)
{
	begin();
	loop_captures = true;
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, stream(2)), ncclSuccess);
	IS(loop_captured, CKT_LIB_PROC(CKT_LIB_NCCL, CKT_NCCL_PROC_NCCL_GROUP));
	IS(loop_batched + loop_waited, 0);
	IS(ncclGroupStart(), ncclSuccess);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, stream(2)), ncclSuccess);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, stream(1)), ncclSuccess);
	IS(ncclGroupEnd(), ncclInvalidUsage);
	loop_captures = false;
	end();
}

static void test_simulate(void)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	begin();
	IS(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
	IS(ncclGroupStart(), ncclSuccess);
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
	IS(ncclGroupSimulateEnd(&info), ncclSuccess);
	YES(info.estimatedTime == 12.5f);
	HAS(double_said(), "ncclGroupSimulateEnd");
	/* Nothing has met anybody by it. */
	loop_mark();
	IS(ncclAllReduce(SEND, RECEIVE, 1, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
	IS(loop_waited, 1);
	end();
}

UNIT_SUITE(nccl_group, {"every function, with every parameter", test_functions},
	{"groups", test_group}, {"large groups", test_large_group},
	{"after a restore", test_restored}, {"what is refused", test_wrong},
	{"what fails when nobody waits", test_failure}, {"captures", test_capture},
	{"simulated groups", test_simulate})
