/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/issue.c: the order of work on streams, and in captures. */
#include "softgpu/libs/nccl/issue.h"

#include <unistd.h>

#include "tests/unit/soft_nccl/ranks.h"

static void CUDA_CB delay(void *data)
{
	usleep(30000);
	(void)data;
}

/* The ranks hold up different streams: only the order of calls makes the collectives meet. */
static void two_streams(struct rank *rank)
{
	CUstream other;
	int *a = ranks_ints(4, 1, 0), *b = ranks_ints(4, 10, 0);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(rank->rank ? other : rank->stream, delay, NULL));
	for (int round = 0; round < 3; round++) {
		OK(ncclAllReduce(
			a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
		OK(ncclAllReduce(b, b, 4, ncclInt32, ncclProd, rank->comm, (cudaStream_t)other));
	}
	/* One group on both: the second waits for it, too. */
	OK(ncclGroupStart());
	OK(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(ncclAllReduce(b, b, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)other));
	OK(ncclGroupEnd());
	OK(cuStreamSynchronize(other));
	IS(a[3], 16);
	IS(b[0], 2 * 100000000);
	OK(cuStreamDestroy(other));
	ranks_free(a);
	ranks_free(b);
}

static void test_order(void)
{
	ranks_with_comms(2, two_streams);
}

static void captured(struct rank *rank)
{
	CUgraph graph;
	CUgraphExec exec;
	CUevent fork, join;
	CUstream other;
	int *a = ranks_ints(4, 1, 0);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&fork, 0));
	OK(cuEventCreate(&join, 0));
	OK(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(cuStreamBeginCapture(rank->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(cuEventRecord(fork, rank->stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	OK(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)other));
	OK(cuEventRecord(join, other));
	OK(cuStreamWaitEvent(rank->stream, join, 0));
	OK(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(cuStreamEndCapture(rank->stream, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, rank->stream));
	OK(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(cuStreamSynchronize(rank->stream));
	IS(a[2], 1 << 11);
	/* Without its communicator the graph does nothing. */
	OK(ncclCommDestroy(rank->comm));
	rank->comm = NULL;
	OK(cuGraphLaunch(exec, rank->stream));
	OK(cuStreamSynchronize(rank->stream));
	IS(a[2], 1 << 11);
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamDestroy(other));
	OK(cuEventDestroy(fork));
	OK(cuEventDestroy(join));
	ranks_free(a);
}

static void test_captured(void)
{
	ranks_with_comms(2, captured);
}

/* The driver's refusal is the call's result, and nothing is counted as pending. */
static void refused(struct rank *rank)
{
	int *a = ranks_ints(4, 1, 0);
	CUstream gone;
	OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	OK(cuStreamDestroy(gone));
	IS(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, rank->comm, (cudaStream_t)gone),
		ncclUnhandledCudaError);
	HAS(ncclGetLastError(NULL), "the driver refused");
	ranks_free(a);
}

static void test_refused(void)
{
	ranks_with_comms(1, refused);
}

/* softgpu/libs/nccl/issue.c */
UNIT_SUITE(issue, {"the order of calls", test_order}, {"captured", test_captured},
	{"refused by the driver", test_refused})
