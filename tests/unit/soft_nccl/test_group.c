/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/group.c: what begins together, or not at all. */
#include "softgpu/libs/nccl/group.h"

#include "tests/unit/soft_nccl/ranks.h"

static void groups(struct rank *rank)
{
	cudaStream_t stream = (cudaStream_t)rank->stream;
	int *a = ranks_ints(10, rank->rank, 1), *b = ranks_ints(10, 5, 0),
	    *c = ranks_ints(10, 0, 0);
	OK(ncclGroupStart());
	OK(ncclGroupStart());
	OK(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, rank->comm, stream));
	OK(ncclGroupEnd());
	/* Nothing has begun: nobody waits for anybody. */
	OK(cuStreamSynchronize(rank->stream));
	IS(a[3], rank->rank + 3);
	OK(ncclAllReduce(a, b, 10, ncclInt32, ncclMax, rank->comm, stream));
	OK(ncclGroupEnd());
	OK(cuStreamSynchronize(rank->stream));
	IS(a[3], 0 + 1 + 2 + 3 * 3);
	IS(b[4], 0 + 1 + 2 + 3 * 4);
	/* To oneself. */
	OK(ncclGroupStart());
	OK(ncclSend(a, 10, ncclInt32, rank->rank, rank->comm, stream));
	OK(ncclRecv(c, 10, ncclInt32, rank->rank, rank->comm, stream));
	OK(ncclGroupEnd());
	OK(cuStreamSynchronize(rank->stream));
	IS(c[9], a[9]);
	ranks_free(a);
	ranks_free(b);
	ranks_free(c);
}

static void test_groups(void)
{
	ranks_with_comms(3, groups);
}

static void errors(struct rank *rank)
{
	cudaStream_t stream = (cudaStream_t)rank->stream;
	ncclComm_t none = rank->comm;
	int *a = ranks_ints(10, rank->rank, 1);
	IS(ncclGroupEnd(), ncclInvalidUsage);
	OK(ncclGroupStart());
	OK(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, rank->comm, stream));
	OK(ncclCommSplit(rank->comm, 0, 0, &none, NULL));
	IS(ncclReduce(a, a, 10, ncclInt32, ncclSum, 9, rank->comm, stream), ncclInvalidArgument);
	IS(ncclGroupEnd(), ncclInvalidArgument);
	YES(none == NULL);
	OK(cuStreamSynchronize(rank->stream));
	IS(a[3], rank->rank + 3);
	/* Alone it would wait for itself for ever. */
	IS(ncclSend(a, 10, ncclInt32, rank->rank, rank->comm, stream), ncclInvalidUsage);
	IS(ncclRecv(a, 10, ncclInt32, rank->rank, rank->comm, stream), ncclInvalidUsage);
	OK(ncclGroupStart());
	OK(ncclSend(a, 10, ncclInt32, rank->rank, rank->comm, stream));
	OK(ncclRecv(a, 9, ncclInt32, rank->rank, rank->comm, stream));
	IS(ncclGroupEnd(), ncclInvalidUsage);
	ranks_free(a);
}

static void test_errors(void)
{
	ranks_with_comms(2, errors);
}

static void simulate(struct rank *rank)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER, wrong = NCCL_SIM_INFO_INITIALIZER;
	int *a = ranks_ints(10, 7, 0);
	wrong.magic = 0;
	IS(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
	OK(ncclGroupStart());
	OK(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	IS(ncclGroupSimulateEnd(&wrong), ncclInvalidArgument);
	OK(ncclGroupSimulateEnd(&info));
	OK(cuStreamSynchronize(rank->stream));
	IS(a[0], 7);
	YES(info.estimatedTime >= 0);
	ranks_free(a);
}

static void test_simulate(void)
{
	ranks_with_comms(2, simulate);
}

/* One thread with all ranks: they are made together, or it would wait for itself. */
static void one_thread(struct rank *unused)
{
	ncclComm_t comms[3];
	CUstream streams[3];
	int *numbers[3];
	ncclUniqueId id;
	CUcontext context;
	OK(ncclGetUniqueId(&id));
	OK(ncclGroupStart());
	for (int r = 0; r < 3; r++) {
		OK(cuDevicePrimaryCtxRetain(&context, r));
		OK(cuCtxSetCurrent(context));
		OK(cuStreamCreate(&streams[r], CU_STREAM_NON_BLOCKING));
		numbers[r] = ranks_ints(5, r, 0);
		OK(ncclCommInitRank(&comms[r], 3, id, r));
	}
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	for (int r = 0; r < 3; r++)
		OK(ncclAllReduce(numbers[r], numbers[r], 5, ncclInt32, ncclSum, comms[r],
			(cudaStream_t)streams[r]));
	OK(ncclGroupEnd());
	/* The calling thread's context is what it was. */
	CUcontext now;
	OK(cuCtxGetCurrent(&now));
	YES(now == context);
	for (int r = 0; r < 3; r++) {
		OK(cuStreamSynchronize(streams[r]));
		IS(numbers[r][4], 3);
		OK(ncclCommDestroy(comms[r]));
		OK(cuStreamDestroy(streams[r]));
		ranks_free(numbers[r]);
	}
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	(void)unused;
}

static void test_one_thread(void)
{
	ranks_run(1, one_thread);
}

/* softgpu/libs/nccl/group.c */
UNIT_SUITE(group, {"groups", test_groups}, {"errors", test_errors},
	{"a simulated end", test_simulate}, {"one thread with all ranks", test_one_thread})
