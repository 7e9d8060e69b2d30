/* SPDX-License-Identifier: Apache-2.0 */
/* A rank whose peer never comes: to the communicator, to a collective, to a split; and a peer that ends.  Each time the rank aborts, and goes on. */
#include "nccl_ranks.h"

#include <pthread.h>

enum { N = 1 << 16, WAIT_MS = 300 };

static void *wait_and_abort(void *comm)
{
	usleep(WAIT_MS * 1000);
	NCCL(ncclCommAbort((ncclComm_t)comm));
	return NULL;
}

/* Nobody else has this id. */
static void never_met(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId lonely;
	ncclComm_t comm;
	ncclResult_t state;

	config.blocking = 0;
	NCCL(ncclGetUniqueId(&lonely));
	ncclResult_t result = ncclCommInitRankConfig(&comm, RANKS, lonely, 0, &config);
	EXPECT(result == ncclSuccess || result == ncclInProgress);
	usleep(WAIT_MS * 1000);
	NCCL(ncclCommGetAsyncError(comm, &state));
	EXPECT(state == ncclInProgress);
	NCCL(ncclCommAbort(comm));
	say("aborted while it waited for its peer\n");
}

/* The collective is on the stream, and the stream stands still until the abort; where the peer is gone it may have been given up before. */
static void never_joined(ncclComm_t comm, bool aborted_by_thread, bool gone)
{
	cudaStream_t stream;
	pthread_t thread;
	float *data;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&data, N * 4));
	CHECK(cudaMemset(data, 0, N * 4));
	CHECK(cudaDeviceSynchronize());
	NCCL(ncclAllReduce(data, data, N, ncclFloat32, ncclSum, comm, stream));
	usleep(WAIT_MS * 1000);
	cudaError_t state = cudaStreamQuery(stream);
	EXPECT(state == cudaErrorNotReady || (gone && state == cudaSuccess));
	if (aborted_by_thread) {
		if (pthread_create(&thread, NULL, wait_and_abort, comm))
			exit(1);
		CHECK(cudaStreamSynchronize(stream));
		pthread_join(thread, NULL);
	} else {
		NCCL(ncclCommAbort(comm));
		CHECK(cudaStreamSynchronize(stream));
	}
	CHECK(cudaMemset(data, 1, N * 4));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(data));
	say("aborted while the stream waited, by %s thread\n", aborted_by_thread ? "another" : "the same");
}

static void end(int)
{
	_exit(test_failures ? 1 : 0);
}

static void end_other(void)
{
	int status;

	kill(others[1], SIGTERM);
	EXPECT(waitpid(others[1], &status, 0) == others[1] && status == 0);
	others[1] = 0;
	say("its peer has ended\n");
}

int main(int argc, char **argv)
{
	ncclComm_t first, second, third;
	float *data, value = 1;

	signal(SIGTERM, end);
	begin_ranks(argc, argv);
	if (rank == 0)
		never_met();
	NCCL(ncclCommInitRank(&first, RANKS, id, rank));
	NCCL(ncclCommSplit(first, 0, rank, &second, NULL));
	NCCL(ncclCommSplit(first, 0, rank, &third, NULL));
	CHECK(cudaMalloc(&data, 4));
	CHECK(cudaMemcpy(data, &value, 4, cudaMemcpyHostToDevice));
	/* All three work at first, so that nothing is left to connect. */
	NCCL(ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, first, NULL));
	NCCL(ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, second, NULL));
	NCCL(ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, third, NULL));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost));
	EXPECT(value == 8);
	/* Not there, until it is told to end without a word. */
	while (rank != 0)
		pause();
	never_joined(second, false, false);
	never_joined(third, true, false);
	end_other();
	never_joined(first, false, true);
	return finish_ranks();
}
