/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives captured into a graph with kernels before and behind them, launched again and again, between collectives that are not captured. */
#include "nccl_ranks.h"

enum { N = 4000, LAUNCHES = 8 };

static ncclComm_t comm;
static cudaStream_t stream;
static unsigned *data, *sum, *gathered;

__global__ void step(unsigned *d, const unsigned *s, unsigned n, unsigned salt)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		d[i] = d[i] * 3 + s[i] + salt;
}

/* The same on the host, for all ranks. */
static unsigned host_data[RANKS][N], host_sum[N];

static void host_reduce(void)
{
	for (unsigned i = 0; i < N; i++) {
		host_sum[i] = 0;
		for (int r = 0; r < RANKS; r++)
			host_sum[i] += host_data[r][i];
	}
}

static void host_step(void)
{
	for (int r = 0; r < RANKS; r++)
		for (unsigned i = 0; i < N; i++)
			host_data[r][i] = host_data[r][i] * 3 + host_sum[i] + (unsigned)r;
}

static void compare(const char *name)
{
	static unsigned got[RANKS * N];

	CHECK(cudaMemcpyAsync(got, data, N * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(memcmp(got, host_data[rank], N * 4) == 0);
	say("%s: %016llx", name, (unsigned long long)checksum(got, N * 4));
	CHECK(cudaMemcpyAsync(got, gathered, RANKS * N * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	say(" %016llx\n", (unsigned long long)checksum(got, RANKS * N * 4));
}

static cudaGraphExec_t capture(void)
{
	cudaGraph_t graph;
	cudaGraphExec_t made;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	NCCL(ncclAllReduce(data, sum, N, ncclUint32, ncclSum, comm, stream));
	step<<<8, 128, 0, stream>>>(data, sum, N, (unsigned)rank);
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(data, sum, N, ncclUint32, ncclSum, comm, stream));
	NCCL(ncclAllGather(data, gathered, N, ncclUint32, comm, stream));
	NCCL(ncclGroupEnd());
	step<<<8, 128, 0, stream>>>(data, sum, N, (unsigned)rank);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&made, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return made;
}

static void launch(cudaGraphExec_t graph, int times)
{
	for (int i = 0; i < times; i++) {
		CHECK(cudaGraphLaunch(graph, stream));
		host_reduce();
		host_step();
		host_reduce();
		host_step();
	}
}

int main(int argc, char **argv)
{
	begin_ranks(argc, argv);
	NCCL(ncclCommInitRank(&comm, RANKS, id, rank));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&data, N * 4));
	CHECK(cudaMalloc(&sum, N * 4));
	CHECK(cudaMalloc(&gathered, RANKS * N * 4));
	CHECK(cudaMemset(gathered, 0, RANKS * N * 4));
	for (int r = 0; r < RANKS; r++)
		for (unsigned i = 0; i < N; i++)
			host_data[r][i] = i * 40503u + (unsigned)r;
	CHECK(cudaMemcpy(data, host_data[rank], N * 4, cudaMemcpyHostToDevice));
	/* `stream` does not wait for the legacy stream. */
	CHECK(cudaDeviceSynchronize());
	/* NCCL connects at the first use, which a capture cannot wait for. */
	NCCL(ncclAllReduce(data, sum, N, ncclUint32, ncclSum, comm, stream));
	CHECK(cudaStreamSynchronize(stream));
	cudaGraphExec_t graph = capture();
	compare("captured");
	launch(graph, LAUNCHES);
	compare("launched");
	phase_ranks();
	NCCL(ncclAllReduce(data, sum, N, ncclUint32, ncclSum, comm, stream));
	launch(graph, LAUNCHES);
	compare("and again");
	CHECK(cudaGraphExecDestroy(graph));
	graph = capture();
	launch(graph, 2);
	compare("captured again");
	CHECK(cudaGraphExecDestroy(graph));
	NCCL(ncclCommDestroy(comm));
	return finish_ranks();
}
