/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of streams for a value in memory: what is behind one does not begin before the value is
 * there.
 */
#include "driver.h"

#define NOT_YET_US 100000

static CUdeviceptr word, effect;
static CUstream waiting, other;

static void set_up(void)
{
	start();
	QUIET(cuMemAlloc_v2, &word, 16);
	QUIET(cuMemAlloc_v2, &effect, 16);
	QUIET(cuMemsetD32_v2, word, 0, 4);
	QUIET(cuMemsetD32_v2, effect, 0, 4);
	QUIET(cuStreamCreate, &waiting, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	QUIET(cuCtxSynchronize);
}

static unsigned seen(void)
{
	unsigned value = 0xeeeeeeee;
	QUIET(cuMemcpyDtoHAsync_v2, &value, effect, 4, other);
	QUIET(cuStreamSynchronize, other);
	return value;
}

/*
 * The wait is in the stream; then a word is set behind it.  It is late enough to be sure that it
 * would be set without the wait.
 */
static void not_yet(void)
{
	QUIET(cuMemsetD32Async, effect, 5, 1, waiting);
	usleep(NOT_YET_US);
	CALL(cuStreamQuery, waiting);
	YES("set", seen() == 5);
}

static void written(CUdeviceptr at, unsigned value)
{
	CALL(cuStreamWriteValue32_v2, other, at, value, 0);
	CALL(cuStreamSynchronize, waiting);
	YES("set", seen() == 5);
}

static void not_enough(CUdeviceptr at, unsigned value)
{
	QUIET(cuStreamWriteValue32_v2, other, at, value, 0);
	QUIET(cuStreamSynchronize, other);
	usleep(NOT_YET_US);
	CALL(cuStreamQuery, waiting);
	YES("set", seen() == 5);
}

CASE(equal)
{
	set_up();
	CALL(cuStreamWaitValue32_v2, waiting, word, 3, CU_STREAM_WAIT_VALUE_EQ);
	not_yet();
	not_enough(word, 4);
	written(word, 3);
}

CASE(at_least)
{
	set_up();
	CALL(cuStreamWaitValue32_v2, waiting, word, 3, CU_STREAM_WAIT_VALUE_GEQ);
	not_yet();
	not_enough(word, 2);
	written(word, 4);
}

CASE(and)
{
	set_up();
	CALL(cuStreamWaitValue32_v2, waiting, word, 6, CU_STREAM_WAIT_VALUE_AND);
	not_yet();
	not_enough(word, 1);
	written(word, 2);
}

CASE(nor)
{
	int can = 0;
	set_up();
	QUIET(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 0);
	YES("nor", can);
	QUIET(cuMemsetD32_v2, word, 0xffffffff, 1);
	QUIET(cuCtxSynchronize);
	CALL(cuStreamWaitValue32_v2, waiting, word, 6, CU_STREAM_WAIT_VALUE_NOR);
	not_yet();
	written(word, 8);
}

/* The upper half counts as well. */
CASE(long_equal)
{
	set_up();
	CALL(cuStreamWaitValue64_v2, waiting, word, 0x300000002, CU_STREAM_WAIT_VALUE_EQ);
	not_yet();
	not_enough(word, 2);
	written(word + 4, 3);
}

CASE(long_at_least)
{
	set_up();
	CALL(cuStreamWaitValue64_v2, waiting, word, 0x300000000, CU_STREAM_WAIT_VALUE_GEQ);
	not_yet();
	not_enough(word, 0x7fffffff);
	written(word + 4, 3);
}

CASE(long_and)
{
	set_up();
	CALL(cuStreamWaitValue64_v2, waiting, word, 0x400000000, CU_STREAM_WAIT_VALUE_AND);
	not_yet();
	not_enough(word, 0xffffffff);
	written(word + 4, 6);
}

/* Two in one: both hold up what is behind. */
CASE(batch)
{
	CUstreamBatchMemOpParams ops[2];
	set_up();
	memset(ops, 0, sizeof(ops));
	ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[0].waitValue.address = word;
	ops[0].waitValue.value = 1;
	ops[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
	ops[1].waitValue.address = word + 8;
	ops[1].waitValue.value64 = 1;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
	CALL(cuStreamBatchMemOp_v2, waiting, 2, ops, 0);
	not_yet();
	not_enough(word, 1);
	written(word + 8, 1);
}

/* The program's thread goes on: a wait is the stream's alone. */
CASE(per_thread)
{
	CUstream own = CU_STREAM_PER_THREAD;
	set_up();
	CALL(cuStreamWaitValue32_v2_ptsz, NULL, word, 1, CU_STREAM_WAIT_VALUE_EQ);
	CALL(cuStreamWaitValue64_v2_ptsz, NULL, word + 8, 1, CU_STREAM_WAIT_VALUE_EQ);
	QUIET(cuMemsetD32Async, effect, 5, 1, own);
	usleep(NOT_YET_US);
	CALL(cuStreamQuery, own);
	YES("set", seen() == 5);
	CALL(cuStreamWriteValue32_v2, other, word, 1, 0);
	QUIET(cuStreamSynchronize, other);
	usleep(NOT_YET_US);
	CALL(cuStreamQuery, own);
	CALL(cuStreamWriteValue32_v2, other, word + 8, 1, 0);
	CALL(cuStreamSynchronize, own);
	YES("set", seen() == 5);
}
