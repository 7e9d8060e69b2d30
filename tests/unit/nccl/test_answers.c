/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/nccl/answers.c: what concerns no operation. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nccl/kit.h"

static void test_library(void)
{
	ncclUniqueId id = {{0}};
	int version = 0;
	double_begin();
	IS(ncclGetUniqueId(&id), ncclSuccess);
	IS(id.internal[127], 7);
	IS(ncclGetUniqueId(NULL), ncclInvalidArgument);
	double_answer("ncclGetUniqueId", ncclSystemError);
	IS(ncclGetUniqueId(&id), ncclSystemError);
	IS(ncclGetVersion(&version), ncclSuccess);
	/* What the loop's library said when it was opened. */
	IS(version, 130100);
	IS(ncclGetVersion(NULL), ncclInvalidArgument);
	TEXT(ncclGetErrorString(ncclSuccess), "no error");
	TEXT(ncclGetErrorString(ncclInProgress), "NCCL operation in progress");
	TEXT(ncclGetErrorString((ncclResult_t)99), "unknown result code");
	TEXT(ncclGetErrorString((ncclResult_t)-1), "unknown result code");
	TEXT(ncclGetLastError(NULL), "what was wrong last");
	kit_done();
}

static void test_memory(void)
{
	void *a = NULL, *b = NULL;
	double_begin();
	IS(ncclMemAlloc(&a, 5), ncclSuccess);
	IS(ncclMemAlloc(&b, (2 << 20) + 1), ncclSuccess);
	YES(a && b && a != b);
	IS((uintptr_t)a % NCCL_WIN_REQUIRED_ALIGNMENT, 0);
	IS((uintptr_t)b % NCCL_WIN_REQUIRED_ALIGNMENT, 0);
	IS(ncclMemFree(a), ncclSuccess);
	IS(ncclMemFree(b), ncclSuccess);
	IS(ncclMemFree(NULL), ncclSuccess);
	/* As cudaMalloc does. */
	IS(ncclMemAlloc(NULL, 5), ncclUnhandledCudaError);
	IS(ncclMemAlloc(&a, 0), ncclSuccess);
	YES(!a);
	IS(ncclMemAlloc(&a, SIZE_MAX), ncclUnhandledCudaError);
	kit_done();
}

/* Accepted, and nothing travels. */
static void test_registrations(void)
{
	void *handle = &handle, *within, *other, *memory = (void *)0x200000000000;
	ncclWindow_t window = (ncclWindow_t)&window;
	double_begin();
	ncclComm_t comm = kit_comm(2, 0);
	loop_mark();
	IS(ncclCommRegister(comm, memory, 4096, &handle), ncclSuccess);
	YES(handle != NULL);
	/* What lies within has the same one, counted; what goes beyond has its own. */
	IS(ncclCommRegister(comm, (char *)memory + 100, 3000, &within), ncclSuccess);
	YES(within == handle);
	IS(ncclCommRegister(comm, memory, 4097, &other), ncclSuccess);
	YES(other != handle);
	IS(ncclCommDeregister(comm, handle), ncclSuccess);
	IS(ncclCommDeregister(comm, handle), ncclSuccess);
	IS(ncclCommDeregister(comm, handle), ncclInvalidUsage);
	IS(ncclCommDeregister(comm, NULL), ncclSuccess);
	IS(ncclCommWindowRegister(comm, memory, 4096, &window, NCCL_WIN_COLL_SYMMETRIC),
		ncclSuccess);
	YES(!window);
	IS(ncclCommWindowDeregister(comm, window), ncclSuccess);
	/*
	 * Pointers are not looked at without NCCL_CHECK_POINTERS; the other one goes with its
	 * communicator.
	 */
	IS(ncclCommRegister(comm, NULL, 4096, &handle), ncclSuccess);
	IS(ncclCommDeregister(comm, handle), ncclSuccess);
	IS(ncclCommRegister(comm, memory, 4096, NULL), ncclInvalidArgument);
	IS(ncclCommRegister(NULL, memory, 4096, &handle), ncclInvalidArgument);
	IS(ncclCommDeregister(comm, memory), ncclInvalidUsage);
	IS(ncclCommWindowDeregister(comm, (ncclWindow_t)memory), ncclInvalidArgument);
	IS(loop_batched + loop_waited, 0);
	IS(ncclCommDestroy(comm), ncclSuccess);
	kit_done();
}

static void test_operators(void)
{
	ncclRedOp_t half, other, third;
	double scalar = 0.5;
	uint16_t small = 0x3412;
	double_begin();
	ncclComm_t comm = kit_comm(2, 0);
	double_said();
	loop_mark();
	IS(ncclRedOpCreatePreMulSum(&half, &small, ncclFloat16, ncclScalarHostImmediate, comm),
		ncclSuccess);
	HAS(double_said(), "1000 of 1234 type 6");
	IS(ncclRedOpCreatePreMulSum(
		   &other, (void *)0x200000003000, ncclFloat64, ncclScalarDevice, comm),
		ncclSuccess);
	HAS(double_said(), "1001 at 0x200000003000 type 8");
	YES(half != other && half >= ncclNumOps && other >= ncclNumOps);
	IS(loop_batched, 2);
	IS(loop_waited, 0);
	IS(ncclAllReduce(NULL, NULL, 1, ncclDouble, other, comm, NULL), ncclSuccess);
	HAS(double_said(), "op 1001 ");
	IS(ncclRedOpDestroy(half, comm), ncclSuccess);
	HAS(double_said(), "ncclRedOpDestroy 1000");
	IS(ncclAllReduce(NULL, NULL, 1, ncclDouble, half, comm, NULL), ncclInvalidArgument);
	IS(ncclRedOpDestroy(half, comm), ncclInvalidArgument);
	IS(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
	/* The number is used again, and so is its place in a restore's log. */
	IS(ncclRedOpCreatePreMulSum(&third, &scalar, ncclFloat64, ncclScalarHostImmediate, comm),
		ncclSuccess);
	IS(third, half);
	IS(ncclRedOpDestroy(third, comm), ncclSuccess);
	IS(ncclRedOpDestroy(other, comm), ncclSuccess);
	IS(ncclRedOpCreatePreMulSum(NULL, &scalar, ncclFloat64, ncclScalarHostImmediate, comm),
		ncclInvalidArgument);
	IS(ncclRedOpCreatePreMulSum(&half, NULL, ncclFloat64, ncclScalarHostImmediate, comm),
		ncclInvalidArgument);
	IS(ncclRedOpCreatePreMulSum(
		   &half, &scalar, (ncclDataType_t)99, ncclScalarHostImmediate, comm),
		ncclInvalidArgument);
	IS(ncclRedOpCreatePreMulSum(&half, &scalar, ncclFloat64, (ncclScalarResidence_t)2, comm),
		ncclInvalidArgument);
	IS(ncclCommDestroy(comm), ncclSuccess);
	kit_done();
}

int ncclCommGrow(void), pncclCommGrow(void), ncclPutSignal(void);

/* What no header here declares is there all the same. */
static void test_refused(void)
{
	double_begin();
	IS(ncclCommGrow(), ncclInvalidUsage);
	IS(pncclCommGrow(), ncclInvalidUsage);
	IS(ncclPutSignal(), ncclInvalidUsage);
	kit_done();
}

UNIT_SUITE(nccl_answers, {"the library itself", test_library}, {"memory", test_memory},
	{"registrations", test_registrations}, {"operators of the program", test_operators},
	{"functions of newer releases", test_refused})
