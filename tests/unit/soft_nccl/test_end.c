/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/end.c: finalized, destroyed, aborted, revoked. */
#include <nccl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/soft_nccl/ranks.h"

static void *number; /* on the first rank's device */

static void put(struct rank *rank, ncclComm_t comm)
{
	number = ranks_ints(1, 1, 0);
	OK(ncclAllReduce(number, number, 1, ncclInt32, ncclSum, comm, (cudaStream_t)rank->stream));
}

/* The peer is there and calls nothing. */
static void abort_work(struct rank *rank)
{
	static atomic_bool done;
	if (rank->rank == 0) {
		put(rank, rank->comm);
		usleep(50000);
		IS(cuStreamQuery(rank->stream), CUDA_ERROR_NOT_READY);
		OK(ncclCommAbort(rank->comm));
		OK(cuStreamSynchronize(rank->stream));
		ranks_free(number);
		atomic_store(&done, true);
	} else {
		while (!atomic_load(&done))
			usleep(1000);
		OK(ncclCommAbort(rank->comm));
	}
	IS(ncclCommAbort(rank->comm), ncclInvalidArgument);
	rank->comm = NULL;
}

static void test_abort(void)
{
	ranks_with_comms(2, abort_work);
}

/* Nobody comes to the meeting. */
static void abort_init(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;
	config.blocking = 0;
	IS(ncclCommInitRankConfig(&comm, 2, rank->id, 0, &config), ncclInProgress);
	usleep(20000);
	OK(ncclCommAbort(comm));
	OK(ncclCommAbort(NULL));
}

static void test_abort_init(void)
{
	ranks_run(1, abort_init);
}

/* A peer that goes is an error of those who wait for it, and of those who wait for them. */
static void gone(struct rank *rank)
{
	ncclResult_t state;
	if (rank->rank == 2) {
		OK(ncclCommAbort(rank->comm));
		rank->comm = NULL;
		return;
	}
	int *own = ranks_ints(1, 1, 0);
	OK(ncclAllReduce(own, own, 1, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(cuStreamSynchronize(rank->stream));
	OK(ncclCommGetAsyncError(rank->comm, &state));
	IS(state, ncclRemoteError);
	IS(ncclAllReduce(own, own, 1, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream),
		ncclRemoteError);
	HAS(ncclGetLastError(rank->comm), "a peer is gone");
	ranks_free(own);
}

static void test_gone(void)
{
	ranks_with_comms(3, gone);
}

/*
 * The first waits for the second only, which has given up because of the third, and is still there.
 */
static void given_up(struct rank *rank)
{
	static atomic_bool done;
	ncclResult_t state;
	int *own = ranks_ints(1, 1, 0);
	if (rank->rank == 2) {
		OK(ncclCommAbort(rank->comm));
		rank->comm = NULL;
	} else {
		OK(ncclRecv(
			own, 1, ncclInt32, rank->rank + 1, rank->comm, (cudaStream_t)rank->stream));
		OK(cuStreamSynchronize(rank->stream));
		OK(ncclCommGetAsyncError(rank->comm, &state));
		IS(state, ncclRemoteError);
	}
	if (rank->rank == 0)
		atomic_store(&done, true);
	while (rank->rank == 1 && !atomic_load(&done))
		usleep(1000);
	ranks_free(own);
}

static void test_given_up(void)
{
	ranks_with_comms(3, given_up);
}

static void finalize(struct rank *rank)
{
	int *own = ranks_ints(1, rank->rank + 1, 0);
	OK(ncclAllReduce(own, own, 1, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream));
	OK(ncclCommFinalize(rank->comm));
	IS(*own, 3); /* it waited for the work */
	IS(ncclCommFinalize(rank->comm), ncclInvalidArgument);
	IS(ncclAllReduce(own, own, 1, ncclInt32, ncclSum, rank->comm, (cudaStream_t)rank->stream),
		ncclInvalidUsage);
	OK(ncclCommDestroy(rank->comm));
	IS(ncclCommDestroy(rank->comm), ncclInvalidArgument);
	IS(ncclCommFinalize(rank->comm), ncclInvalidArgument);
	rank->comm = NULL;
	ranks_free(own);
}

static void test_finalize(void)
{
	ranks_with_comms(2, finalize);
}

/* Its work comes back, and a split of it still works. */
static void revoked(struct rank *rank)
{
	ncclComm_t child;
	if (rank->rank == 0)
		put(rank, rank->comm);
	IS(ncclCommRevoke(rank->comm, 1), ncclInvalidArgument);
	IS(ncclCommRevoke(NULL, 0), ncclInvalidArgument);
	OK(ncclCommRevoke(rank->comm, NCCL_REVOKE_DEFAULT));
	OK(cuStreamSynchronize(rank->stream));
	IS(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, rank->comm, NULL), ncclInvalidUsage);
	OK(ncclCommSplit(rank->comm, 0, 0, &child, NULL));
	int *own = ranks_ints(1, rank->rank + 1, 0);
	OK(ncclAllReduce(own, own, 1, ncclInt32, ncclSum, child, (cudaStream_t)rank->stream));
	OK(cuStreamSynchronize(rank->stream));
	IS(*own, 3);
	OK(ncclCommDestroy(child));
	ranks_free(own);
	if (rank->rank == 0)
		ranks_free(number);
}

static void test_revoke(void)
{
	ranks_with_comms(2, revoked);
}

/* softgpu/libs/nccl/end.c */
UNIT_SUITE(end, {"aborted under work", test_abort}, {"aborted alone", test_abort_init},
	{"a peer that goes", test_gone}, {"a peer that gives up", test_given_up},
	{"finalized", test_finalize}, {"revoked", test_revoke})
