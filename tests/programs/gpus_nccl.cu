/* SPDX-License-Identifier: Apache-2.0 */
/* One process with a rank on each of its two GPUs: made all at once, driven by one thread in groups, then by a thread each; and a graph of both. */
#include "gpus.h"

#include <nccl.h>
#include <pthread.h>

enum { RANKS = 2, N = 20000, ROUNDS = 5 };

#define NCCL(call)                                                                                                               \
	do {                                                                                                                     \
		ncclResult_t nccl_error = (call);                                                                                \
		if (nccl_error != ncclSuccess) {                                                                                 \
			printf("%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, ncclGetErrorString(nccl_error),                \
			       ncclGetLastError(NULL));                                                                          \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

static ncclComm_t comms[RANKS];
static cudaStream_t streams[RANKS];
static float *data[RANKS], *out[RANKS];
static ncclUniqueId id;

__global__ void fill(float *p, unsigned n, unsigned salt)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = (float)((i * 7 + salt) % 1000);
}

static void fill_all(unsigned salt)
{
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		fill<<<8, 128, 0, streams[r]>>>(data[r], N, salt + (unsigned)r);
	}
}

static unsigned wrong(int r, unsigned salt)
{
	static float host[RANKS][N];
	unsigned bad = 0;

	CHECK(cudaSetDevice(r));
	CHECK(cudaMemcpyAsync(host[r], out[r], N * 4, cudaMemcpyDeviceToHost, streams[r]));
	CHECK(cudaStreamSynchronize(streams[r]));
	for (unsigned i = 0; i < N; i++) {
		float sum = 0;
		for (unsigned k = 0; k < RANKS; k++)
			sum += (float)((i * 7 + salt + k) % 1000);
		bad += host[r][i] != sum;
	}
	return bad;
}

static void report(const char *name, unsigned salt)
{
	unsigned bad = 0;

	for (int r = 0; r < RANKS; r++)
		bad += wrong(r, salt);
	EXPECT(bad == 0);
	printf("%s: %u wrong\n", name, bad);
}

static void one_thread(unsigned salt)
{
	fill_all(salt);
	NCCL(ncclGroupStart());
	for (int r = 0; r < RANKS; r++)
		NCCL(ncclAllReduce(data[r], out[r], N, ncclFloat32, ncclSum, comms[r], streams[r]));
	NCCL(ncclGroupEnd());
	report("one thread", salt);
	/* Each sends what it has to the other. */
	fill_all(salt);
	NCCL(ncclGroupStart());
	for (int r = 0; r < RANKS; r++) {
		NCCL(ncclSend(data[r], N, ncclFloat32, 1 - r, comms[r], streams[r]));
		NCCL(ncclRecv(out[r], N, ncclFloat32, 1 - r, comms[r], streams[r]));
	}
	NCCL(ncclGroupEnd());
	for (int r = 0; r < RANKS; r++) {
		static float host[N];
		unsigned bad = 0;

		CHECK(cudaSetDevice(r));
		CHECK(cudaMemcpyAsync(host, out[r], N * 4, cudaMemcpyDeviceToHost, streams[r]));
		CHECK(cudaStreamSynchronize(streams[r]));
		for (unsigned i = 0; i < N; i++)
			bad += host[i] != (float)((i * 7 + salt + 1 - (unsigned)r) % 1000);
		EXPECT(bad == 0);
		printf("exchanged, GPU %d: %u wrong\n", r, bad);
	}
}

static void *rank_main(void *opaque)
{
	int r = (int)(size_t)opaque;
	ncclComm_t own;

	CHECK(cudaSetDevice(r));
	NCCL(ncclCommInitRank(&own, RANKS, id, r));
	for (int round = 0; round < ROUNDS; round++) {
		fill<<<8, 128, 0, streams[r]>>>(data[r], N, (unsigned)(round * 11 + r));
		NCCL(ncclAllReduce(data[r], out[r], N, ncclFloat32, ncclSum, own, streams[r]));
		EXPECT(wrong(r, (unsigned)round * 11) == 0);
	}
	NCCL(ncclCommDestroy(own));
	return NULL;
}

static void two_threads(void)
{
	pthread_t threads[RANKS];

	NCCL(ncclGetUniqueId(&id));
	for (int r = 0; r < RANKS; r++)
		if (pthread_create(&threads[r], NULL, rank_main, (void *)(size_t)r))
			exit(1);
	for (int r = 0; r < RANKS; r++)
		pthread_join(threads[r], NULL);
	printf("two threads: %s\n", test_failures ? "wrong" : "right");
}

int main(void)
{
	const int twice[RANKS] = {0, 0};

	/* NVLink's multicast is a matter of the whole machine. */
	setenv("NCCL_NVLS_ENABLE", "0", 1);
	need_two_gpus();
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
		CHECK(cudaMalloc(&data[r], N * 4));
		CHECK(cudaMalloc(&out[r], N * 4));
	}
	EXPECT(ncclCommInitAll(comms, RANKS, twice) == ncclInvalidUsage);
	NCCL(ncclCommInitAll(comms, RANKS, NULL));
	for (int r = 0; r < RANKS; r++) {
		int is_rank, device;

		NCCL(ncclCommUserRank(comms[r], &is_rank));
		NCCL(ncclCommCuDevice(comms[r], &device));
		EXPECT(is_rank == r && device == r);
	}
	one_thread(3);
	phase();
	one_thread(40);
	two_threads();
	for (int r = 0; r < RANKS; r++)
		NCCL(ncclCommDestroy(comms[r]));
	return finish();
}
