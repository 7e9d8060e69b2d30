/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/create.c: new communicators. */
#include <nccl.h>
#include <unistd.h>

#include "tests/unit/soft_nccl/ranks.h"

static int count_of(ncclComm_t comm)
{
	int count = -1;
	ncclCommCount(comm, &count);
	return count;
}

static int rank_of(ncclComm_t comm)
{
	int rank = -1;
	ncclCommUserRank(comm, &rank);
	return rank;
}

/*
 * What the ranks of the communicator know of each other: the sum of their numbers in the world,
 * each and one.
 */
static int sum(struct rank *rank, ncclComm_t comm)
{
	int *number = ranks_ints(1, rank->rank + 1, 0), result;
	OK(ncclAllReduce(number, number, 1, ncclInt32, ncclSum, comm, (cudaStream_t)rank->stream));
	OK(cuStreamSynchronize(rank->stream));
	result = *number;
	ranks_free(number);
	return result;
}

static void made(struct rank *rank)
{
	int device = -1;
	IS(count_of(rank->comm), rank->count);
	IS(rank_of(rank->comm), rank->rank);
	OK(ncclCommCuDevice(rank->comm, &device));
	IS(device, rank->rank);
	IS(sum(rank, rank->comm), rank->count * (rank->count + 1) / 2);
}

static void test_ranks(void)
{
	for (int count = 1; count <= RANKS_MOST; count++)
		ranks_with_comms(count, made);
}

static void wrong(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER, broken = NCCL_CONFIG_INITIALIZER,
		     strange = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId zero = {0};
	ncclComm_t comm = (ncclComm_t)&zero;
	broken.magic = 1;
	strange.blocking = 7;
	IS(ncclCommInitRank(NULL, 1, rank->id, 0), ncclInvalidArgument);
	IS(ncclCommInitRank(&comm, 1, rank->id, 1), ncclInvalidArgument);
	YES(comm == NULL);
	IS(ncclCommInitRank(&comm, 0, rank->id, 0), ncclInvalidArgument);
	IS(ncclCommInitRank(&comm, 1, zero, 0), ncclInvalidArgument);
	IS(ncclCommInitRankConfig(&comm, 1, rank->id, 0, &broken), ncclInvalidArgument);
	IS(ncclCommInitRankConfig(&comm, 1, rank->id, 0, &strange), ncclInvalidArgument);
	IS(ncclCommInitRankScalable(&comm, 1, 0, 0, &rank->id, &config), ncclInvalidArgument);
	IS(ncclGetUniqueId(NULL), ncclInvalidArgument);
	OK(ncclCommInitRankScalable(&comm, 1, 0, 1, &rank->id, &config));
	IS(sum(rank, comm), 1);
	/* Any color but one: NVIDIA's library looks at no other. */
	ncclComm_t odd;
	OK(ncclCommSplit(comm, -2, 0, &odd, NULL));
	OK(ncclCommDestroy(odd));
	IS(ncclCommSplit(NULL, 0, 0, &comm, NULL), ncclInvalidArgument);
	IS(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument);
	IS(ncclCommShrink(comm, (int[]){0}, 1, &comm, NULL, NCCL_SHRINK_DEFAULT),
		ncclInvalidArgument);
	OK(ncclCommDestroy(comm));
}

static void test_wrong(void)
{
	ranks_run(1, wrong);
}

static void all(struct rank *rank)
{
	ncclComm_t comms[3], twice[2];
	IS(ncclCommInitAll(NULL, 1, NULL), ncclInvalidArgument);
	IS(ncclCommInitAll(twice, 2, (int[]){1, 1}), ncclInvalidUsage);
	YES(twice[0] == NULL && twice[1] == NULL);
	IS(ncclCommInitAll(twice, 2, (int[]){0, 99}), ncclUnhandledCudaError);
	YES(twice[0] == NULL && twice[1] == NULL);
	OK(ncclCommInitAll(comms, 3, (int[]){2, 0, 1}));
	for (int r = 0; r < 3; r++) {
		int device = -1;
		OK(ncclCommCuDevice(comms[r], &device));
		IS(device, (r + 2) % 3);
		IS(rank_of(comms[r]), r);
		IS(count_of(comms[r]), 3);
		OK(ncclCommDestroy(comms[r]));
	}
	(void)rank;
}

static void test_all(void)
{
	ranks_run(1, all);
}

/* Even and odd ranks, in reverse. */
static void split(struct rank *rank)
{
	ncclComm_t half, none = rank->comm;
	int odd = rank->rank % 2;
	OK(ncclCommSplit(rank->comm, odd, -rank->rank, &half, NULL));
	IS(count_of(half), odd ? 2 : 3);
	IS(rank_of(half), odd ? 1 - rank->rank / 2 : 2 - rank->rank / 2);
	IS(sum(rank, half), odd ? 2 + 4 : 1 + 3 + 5);
	OK(ncclCommDestroy(half));
	OK(ncclCommSplit(rank->comm, odd ? NCCL_SPLIT_NOCOLOR : 0, 0, &none, NULL));
	YES((none == NULL) == (odd == 1));
	if (none) {
		IS(sum(rank, none), 1 + 3 + 5);
		OK(ncclCommDestroy(none));
	}
	/* Two at once, of one parent. */
	ncclComm_t two[2];
	OK(ncclGroupStart());
	OK(ncclCommSplit(rank->comm, odd, 0, &two[0], NULL));
	OK(ncclCommSplit(rank->comm, rank->rank < 2, 0, &two[1], NULL));
	OK(ncclGroupEnd());
	IS(sum(rank, two[0]), odd ? 2 + 4 : 1 + 3 + 5);
	IS(sum(rank, two[1]), rank->rank < 2 ? 1 + 2 : 3 + 4 + 5);
	OK(ncclCommDestroy(two[0]));
	OK(ncclCommDestroy(two[1]));
}

static void test_split(void)
{
	ranks_with_comms(5, split);
}

static void shrink(struct rank *rank)
{
	ncclComm_t left;
	if (rank->rank == 1)
		return;
	OK(ncclCommShrink(rank->comm, (int[]){1}, 1, &left, NULL,
		rank->rank ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT));
	IS(count_of(left), 3);
	IS(rank_of(left), rank->rank ? rank->rank - 1 : 0);
	IS(sum(rank, left), 1 + 3 + 4);
	OK(ncclCommDestroy(left));
}

static void test_shrink(void)
{
	ranks_with_comms(4, shrink);
}

static void in_background(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t state = ncclInProgress;
	ncclComm_t comm, child;
	config.blocking = 0;
	/* The last one comes when the first has asked: until then it is in progress. */
	static atomic_bool asked;
	while (rank->rank == 1 && !atomic_load(&asked))
		usleep(1000);
	IS(ncclCommInitRankConfig(&comm, rank->count, rank->id, rank->rank, &config),
		ncclInProgress);
	if (rank->rank == 0) {
		OK(ncclCommGetAsyncError(comm, &state));
		IS(state, ncclInProgress);
		IS(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, comm, NULL),
			ncclInvalidArgument);
		IS(ncclCommCount(comm, (int *)&state), ncclInvalidArgument);
		atomic_store(&asked, true);
	}
	do {
		usleep(1000);
		OK(ncclCommGetAsyncError(comm, &state));
	} while (state == ncclInProgress);
	IS(state, ncclSuccess);
	IS(sum(rank, comm), 1 + 2);
	/* Children wait as their parent does. */
	IS(ncclCommSplit(comm, 0, 0, &child, NULL), ncclInProgress);
	do {
		usleep(1000);
		OK(ncclCommGetAsyncError(child, &state));
	} while (state == ncclInProgress);
	IS(sum(rank, child), 1 + 2);
	OK(ncclCommDestroy(child));
	OK(ncclCommDestroy(comm));
}

static void test_background(void)
{
	ranks_run(2, in_background);
}

/* softgpu/libs/nccl/create.c */
UNIT_SUITE(create, {"of a unique id", test_ranks}, {"wrong arguments", test_wrong},
	{"all of a process", test_all}, {"split", test_split}, {"shrunk", test_shrink},
	{"without waiting", test_background})
