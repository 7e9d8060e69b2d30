/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks: sends and receives alone, in groups, in rings, to oneself, of many sizes at once, on several streams; groups of collectives. */
#include "nccl_ranks.h"

enum { N = 5000, BLOCKS = 12 };

static ncclComm_t comm;
static cudaStream_t stream;

__global__ void fill(unsigned *data, unsigned n, unsigned salt)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = i * 2654435761u + salt;
}

static unsigned *block(unsigned salt, unsigned n = N)
{
	unsigned *data;

	CHECK(cudaMalloc(&data, n * 4));
	fill<<<8, 128, 0, stream>>>(data, n, salt);
	CHECK(cudaGetLastError());
	return data;
}

static unsigned wrong(const unsigned *data, unsigned n, unsigned salt)
{
	unsigned bad = 0, *host = (unsigned *)malloc(n * 4);

	CHECK(cudaMemcpyAsync(host, data, n * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (unsigned i = 0; i < n; i++)
		bad += host[i] != i * 2654435761u + salt;
	free(host);
	return bad;
}

static void one_way(void)
{
	unsigned *data = block(100 + (unsigned)rank);

	if (rank == 0)
		NCCL(ncclSend(data, N, ncclUint32, 1, comm, stream));
	else if (rank == 1)
		NCCL(ncclRecv(data, N, ncclUint32, 0, comm, stream));
	unsigned bad = wrong(data, N, 100);
	EXPECT(rank > 1 || bad == 0);
	say("one way: %u wrong\n", bad);
	CHECK(cudaFree(data));
}

static void ring(void)
{
	unsigned *mine = block(200 + (unsigned)rank), *got = block(1), next = (unsigned)((rank + 1) % RANKS), before = (unsigned)((rank + RANKS - 1) % RANKS);

	NCCL(ncclGroupStart());
	NCCL(ncclSend(mine, N, ncclUint32, (int)next, comm, stream));
	NCCL(ncclRecv(got, N, ncclUint32, (int)before, comm, stream));
	NCCL(ncclGroupEnd());
	unsigned bad = wrong(got, N, 200 + before);
	EXPECT(bad == 0);
	say("ring: %u wrong\n", bad);
	CHECK(cudaFree(mine));
	CHECK(cudaFree(got));
}

/* Blocks of many sizes to all, to oneself too, within one group that is a group within a group. */
static void exchange(void)
{
	unsigned *mine[RANKS][BLOCKS], *got[RANKS][BLOCKS], bad = 0;

	for (int peer = 0; peer < RANKS; peer++) {
		for (unsigned b = 0; b < BLOCKS; b++) {
			mine[peer][b] = block(1000u * (unsigned)rank + 100u * (unsigned)peer + b, 1u << b);
			got[peer][b] = block(7, 1u << b);
		}
	}
	NCCL(ncclGroupStart());
	for (int peer = 0; peer < RANKS; peer++) {
		NCCL(ncclGroupStart());
		for (unsigned b = 0; b < BLOCKS; b++) {
			NCCL(ncclSend(mine[peer][b], 1u << b, ncclUint32, peer, comm, stream));
			NCCL(ncclRecv(got[peer][b], 1u << b, ncclUint32, peer, comm, stream));
		}
		NCCL(ncclGroupEnd());
	}
	NCCL(ncclGroupEnd());
	for (int peer = 0; peer < RANKS; peer++) {
		for (unsigned b = 0; b < BLOCKS; b++) {
			bad += wrong(got[peer][b], 1u << b, 1000u * (unsigned)peer + 100u * (unsigned)rank + b);
			CHECK(cudaFree(mine[peer][b]));
			CHECK(cudaFree(got[peer][b]));
		}
	}
	EXPECT(bad == 0);
	say("exchange: %u wrong\n", bad);
}

/* Several collectives in one group, and a communicator used from two streams, which its order holds together. */
static void groups(void)
{
	unsigned *a = block(0), *b = block(0), *c = block((unsigned)rank), *host = (unsigned *)malloc(N * 4), bad = 0;
	cudaStream_t other;

	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaStreamSynchronize(stream));
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(a, a, N, ncclUint32, ncclSum, comm, stream));
	NCCL(ncclAllReduce(b, b, N, ncclUint32, ncclSum, comm, stream));
	NCCL(ncclBroadcast(c, c, N, ncclUint32, 1, comm, stream));
	NCCL(ncclGroupEnd());
	for (int round = 0; round < 6; round++)
		NCCL(ncclAllReduce(round % 2 ? a : b, round % 2 ? a : b, N, ncclUint32, ncclSum, comm, round % 3 ? stream : other));
	CHECK(cudaStreamSynchronize(other));
	bad += wrong(c, N, 1);
	unsigned times = 1;
	for (int round = 0; round < 4; round++)
		times *= RANKS;
	for (int which = 0; which < 2; which++) {
		CHECK(cudaMemcpy(host, which ? a : b, N * 4, cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < N; i++)
			bad += host[i] != i * 2654435761u * times;
	}
	EXPECT(bad == 0);
	say("groups: %u wrong\n", bad);
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(c));
	free(host);
}

/* A group with an error begins nothing: what was called before it is not done either. */
static void broken_group(void)
{
	unsigned *a = block(9 + (unsigned)rank);

	CHECK(cudaStreamSynchronize(stream));
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(a, a, N, ncclUint32, ncclSum, comm, stream));
	NCCL_ERROR(ncclSend(a, N, ncclUint32, RANKS + 5, comm, stream), ncclInvalidArgument);
	NCCL_ERROR(ncclGroupEnd(), ncclInvalidArgument);
	unsigned bad = wrong(a, N, 9 + (unsigned)rank);
	EXPECT(bad == 0);
	say("broken group: %u wrong\n", bad);
	CHECK(cudaFree(a));
}

/* Registered memory, and memory of NCCL's own. */
static void registered(void)
{
	void *handle, *data;

	NCCL(ncclMemAlloc(&data, N * 4));
	fill<<<8, 128, 0, stream>>>((unsigned *)data, N, 300u + (unsigned)rank);
	NCCL(ncclCommRegister(comm, data, N * 4, &handle));
	NCCL(ncclBroadcast(data, data, N, ncclUint32, 0, comm, stream));
	unsigned bad = wrong((unsigned *)data, N, 300);
	EXPECT(bad == 0);
	say("registered: %u wrong\n", bad);
	NCCL(ncclCommDeregister(comm, handle));
	NCCL(ncclMemFree(data));
}

int main(int argc, char **argv)
{
	begin_ranks(argc, argv);
	NCCL(ncclCommInitRank(&comm, RANKS, id, rank));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	one_way();
	ring();
	phase_ranks();
	exchange();
	groups();
	broken_group();
	registered();
	NCCL(ncclCommDestroy(comm));
	return finish_ranks();
}
