/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators out of others: by color and key, of one's own, of those that are left; made without waiting. */
#include "nccl_ranks.h"

enum { N = 1000 };

static cudaStream_t stream;
static int *data;

static void wait_for(ncclComm_t comm)
{
	ncclResult_t state;

	do {
		NCCL(ncclCommGetAsyncError(comm, &state));
		if (state == ncclInProgress)
			usleep(1000);
	} while (state == ncclInProgress);
	EXPECT(state == ncclSuccess);
}

/* The ranks of the world that a communicator should have, in its order; all of its ranks know each other by a sum of powers. */
static void check(ncclComm_t comm, const char *name, int expected_rank, int expected_count, int weighed)
{
	int is_rank, is_count, device, value, *host = (int *)malloc(N * 4);

	NCCL(ncclCommUserRank(comm, &is_rank));
	NCCL(ncclCommCount(comm, &is_count));
	NCCL(ncclCommCuDevice(comm, &device));
	EXPECT(is_rank == expected_rank && is_count == expected_count && device == rank);
	/* The rank of the world weighed by the rank in the communicator says who is who. */
	value = (rank + 1) * (is_rank + 1);
	for (int i = 0; i < N; i++)
		host[i] = value + i;
	CHECK(cudaMemcpyAsync(data, host, N * 4, cudaMemcpyHostToDevice, stream));
	ncclResult_t result = ncclAllReduce(data, data, N, ncclInt32, ncclSum, comm, stream);
	/* One that was made without waiting may put it on the stream later. */
	if (result == ncclInProgress)
		wait_for(comm);
	else
		NCCL(result);
	CHECK(cudaMemcpyAsync(host, data, N * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	int bad = 0;
	for (int i = 0; i < N; i++)
		bad += host[i] != weighed + i * is_count;
	EXPECT(bad == 0);
	say("%s: rank %d of %d, %d wrong\n", name, is_rank, is_count, bad);
	free(host);
}

static void splits(ncclComm_t world)
{
	ncclComm_t same, turned, alone, none, deeper;

	NCCL(ncclCommSplit(world, 5, rank, &same, NULL));
	check(same, "same", rank, RANKS, 1 + 4);
	NCCL(ncclCommSplit(world, 0, -rank, &turned, NULL));
	check(turned, "turned", RANKS - 1 - rank, RANKS, 2 + 2);
	NCCL(ncclCommSplit(turned, rank, 0, &alone, NULL));
	check(alone, "alone", 0, 1, rank + 1);
	NCCL(ncclCommSplit(world, rank == 0 ? 3 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
	EXPECT((none != NULL) == (rank == 0));
	if (none)
		NCCL(ncclCommDestroy(none));
	/* Of a child, in its order. */
	NCCL(ncclCommSplit(turned, 1, 0, &deeper, NULL));
	check(deeper, "deeper", RANKS - 1 - rank, RANKS, 2 + 2);
	/* The parent goes first; its children stay, also over a checkpoint. */
	NCCL(ncclCommDestroy(turned));
	phase_ranks();
	check(same, "same", rank, RANKS, 1 + 4);
	check(deeper, "deeper", RANKS - 1 - rank, RANKS, 2 + 2);
	check(alone, "alone without its parent", 0, 1, rank + 1);
	NCCL(ncclCommDestroy(alone));
	NCCL(ncclCommDestroy(deeper));
	NCCL(ncclCommDestroy(same));
}

/* Made while the program does something else. */
static void without_waiting(ncclComm_t world)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t made;
	ncclResult_t result;

	config.blocking = 0;
	result = ncclCommSplit(world, 1, rank, &made, &config);
	EXPECT(result == ncclSuccess || result == ncclInProgress);
	wait_for(made);
	check(made, "without waiting", rank, RANKS, 1 + 4);
	result = ncclCommFinalize(made);
	EXPECT(result == ncclSuccess || result == ncclInProgress);
	wait_for(made);
	NCCL(ncclCommDestroy(made));
}

int main(int argc, char **argv)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t world;

	begin_ranks(argc, argv);
	NCCL(ncclCommInitRankConfig(&world, RANKS, id, rank, &config));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&data, N * 4));
	check(world, "world", rank, RANKS, 1 + 4);
	splits(world);
	without_waiting(world);
	NCCL(ncclCommDestroy(world));
	return finish_ranks();
}
