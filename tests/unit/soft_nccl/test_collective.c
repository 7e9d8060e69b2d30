/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/collective.c: every call, what it refuses, and operators. */
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/soft_nccl/ranks.h"

enum { N = 64 };

static int expect(const int *numbers, int first, int step, size_t count)
{
	int wrong = 0;
	for (size_t i = 0; i < count; i++)
		wrong += numbers[i] != first + (int)i * step;
	return wrong;
}

static void calls(struct rank *rank)
{
	cudaStream_t s = (cudaStream_t)rank->stream;
	ncclComm_t comm = rank->comm;
	int *from = ranks_ints(3 * N, 1000 * rank->rank, 1), *to = ranks_ints(3 * N, -1, 0),
	    before = (rank->rank + 2) % 3;
#define DONE(call)                                     \
	do {                                           \
		OK(call);                              \
		OK(cuStreamSynchronize(rank->stream)); \
	} while (0)
	DONE(ncclAllReduce(from, to, N, ncclInt32, ncclSum, comm, s));
	IS(expect(to, 3000, 3, N), 0);
	DONE(pncclAllReduce(from, to, N, ncclInt32, ncclMax, comm, s));
	IS(expect(to, 2000, 1, N), 0);
	memset(to, 0, N * 4);
	DONE(ncclReduce(from, rank->rank == 2 ? to : NULL, N, ncclInt32, ncclMin, 2, comm, s));
	IS(expect(to, 0, rank->rank == 2, N), 0);
	DONE(ncclBroadcast(rank->rank == 1 ? from : NULL, to, N, ncclInt32, 1, comm, s));
	IS(expect(to, 1000, 1, N), 0);
	memcpy(to, from, N * 4);
	DONE(ncclBcast(to, N, ncclInt32, 2, comm, s));
	IS(expect(to, 2000, 1, N), 0);
	DONE(ncclReduceScatter(from, to, N, ncclInt32, ncclSum, comm, s));
	IS(expect(to, 3000 + 3 * N * rank->rank, 3, N), 0);
	DONE(ncclAllGather(from, to, N, ncclInt32, comm, s));
	IS(expect(to, 0, 1, N) + expect(to + N, 1000, 1, N) + expect(to + 2 * N, 2000, 1, N), 0);
	DONE(ncclAlltoAll(from, to, N, ncclInt32, comm, s));
	IS(expect(to, N * rank->rank, 1, N) + expect(to + 2 * N, 2000 + N * rank->rank, 1, N), 0);
	DONE(ncclScatter(from, to, N, ncclInt32, 1, comm, s));
	IS(expect(to, 1000 + N * rank->rank, 1, N), 0);
	DONE(ncclGather(from, rank->rank == 0 ? to : NULL, N, ncclInt32, 0, comm, s));
	if (rank->rank == 0)
		IS(expect(to + 2 * N, 2000, 1, N), 0);
	OK(ncclGroupStart());
	OK(ncclSend(from, N, ncclInt32, (rank->rank + 1) % 3, comm, s));
	OK(ncclRecv(to, N, ncclInt32, before, comm, s));
	DONE(ncclGroupEnd());
	IS(expect(to, 1000 * before, 1, N), 0);
	ranks_free(from);
	ranks_free(to);
}

static void test_calls(void)
{
	ranks_with_comms(3, calls);
}

/* The text is the process's, as in NCCL: one rank alone, so that no other overwrites it. */
static void said(struct rank *rank)
{
	cudaStream_t s = (cudaStream_t)rank->stream;
	int *own = ranks_ints(N, 1, 0), *host = malloc(4 * N);
	IS(ncclAllReduce(own, host, N, ncclInt32, ncclSum, rank->comm, s), ncclInvalidArgument);
	HAS(ncclGetLastError(rank->comm), "not the GPU's memory");
	free(host);
}

static void refused(struct rank *rank)
{
	cudaStream_t s = (cudaStream_t)rank->stream;
	ncclComm_t comm = rank->comm;
	int *own = ranks_ints(N, 1, 0), *host = malloc(4 * N);
	IS(ncclAllReduce(own, own, N, ncclInt32, ncclSum, NULL, s), ncclInvalidArgument);
	IS(ncclAllReduce(own, own, N, ncclNumTypes, ncclSum, comm, s), ncclInvalidArgument);
	IS(ncclAllReduce(own, own, N, ncclInt32, (ncclRedOp_t)ncclNumOps, comm, s),
		ncclInvalidArgument);
	IS(ncclAllReduce(own, own, N, ncclInt32, (ncclRedOp_t)-1, comm, s), ncclInvalidArgument);
	IS(ncclAllReduce(NULL, own, N, ncclInt32, ncclSum, comm, s), ncclInvalidArgument);
	IS(ncclAllReduce(own, host, N, ncclInt32, ncclSum, comm, s), ncclInvalidArgument);
	IS(ncclAllReduce(own, own, 1ull << 40, ncclInt32, ncclSum, comm, s), ncclInvalidArgument);
	IS(ncclAllReduce(own, own, SIZE_MAX, ncclInt32, ncclSum, comm, s), ncclInvalidArgument);
	IS(ncclReduce(own, own, N, ncclInt32, ncclSum, 2, comm, s), ncclInvalidArgument);
	IS(ncclBroadcast(own, own, N, ncclInt32, -1, comm, s), ncclInvalidArgument);
	IS(ncclSend(own, N, ncclInt32, 5, comm, s), ncclInvalidArgument);
	IS(ncclRecv(NULL, N, ncclInt32, 0, comm, s), ncclInvalidArgument);
	OK(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, comm, s));
	free(host);
	ranks_free(own);
}

static void test_refused(void)
{
	ranks_with_comms(1, said);
	ranks_with_comms(2, refused);
}

static void operators(struct rank *rank)
{
	cudaStream_t s = (cudaStream_t)rank->stream;
	ncclComm_t comm = rank->comm;
	ncclRedOp_t ops[6], device_op;
	int *own = ranks_ints(N, 1, 1), *out = ranks_ints(N, 0, 0), *factor = ranks_ints(1, 5, 0),
	    scalar = rank->rank + 2;
	for (int i = 0; i < 6; i++) {
		OK(ncclRedOpCreatePreMulSum(
			&ops[i], &scalar, ncclInt32, ncclScalarHostImmediate, comm));
		scalar += 10;
		for (int k = 0; k < i; k++)
			YES(ops[k] != ops[i]);
	}
	OK(ncclAllReduce(own, out, N, ncclInt32, ops[0], comm, s));
	/* Gone before it has run. */
	OK(ncclRedOpDestroy(ops[0], comm));
	OK(cuStreamSynchronize(rank->stream));
	IS(expect(out, 5, 5, N), 0);
	IS(ncclRedOpDestroy(ops[0], comm), ncclInvalidArgument);
	IS(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
	IS(ncclAllReduce(own, out, N, ncclInt32, ops[0], comm, s), ncclInvalidArgument);
	IS(ncclAllReduce(own, out, N, ncclFloat32, ops[1], comm, s), ncclInvalidArgument);
	OK(ncclRedOpCreatePreMulSum(&device_op, factor, ncclInt32, ncclScalarDevice, comm));
	IS(device_op, ops[0]); /* the place that became free */
	OK(ncclAllReduce(own, out, N, ncclInt32, device_op, comm, s));
	OK(cuStreamSynchronize(rank->stream));
	IS(expect(out, 10, 10, N), 0);
	IS(ncclRedOpCreatePreMulSum(&device_op, &scalar, ncclInt32, ncclScalarDevice, comm),
		ncclInvalidArgument);
	IS(ncclRedOpCreatePreMulSum(&device_op, NULL, ncclInt32, ncclScalarHostImmediate, comm),
		ncclInvalidArgument);
	IS(ncclRedOpCreatePreMulSum(
		   &device_op, &scalar, ncclNumTypes, ncclScalarHostImmediate, comm),
		ncclInvalidArgument);
	ranks_free(own);
	ranks_free(out);
	ranks_free(factor);
}

static void test_operators(void)
{
	ranks_with_comms(2, operators);
}

/* softgpu/libs/nccl/collective.c */
UNIT_SUITE(collective, {"every call", test_calls}, {"refused", test_refused},
	{"operators", test_operators})
