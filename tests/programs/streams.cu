/* SPDX-License-Identifier: Apache-2.0 */
/* Four streams, each with copy, kernel and copy back from pinned memory; order between streams by events; default-stream semantics. */
#include "phase.h"

#define STREAMS 4

__global__ void work(unsigned *data, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		unsigned v = data[i];

		for (int k = 0; k < 20; k++)
			v = v * 1664525u + salt + k;
		data[i] = v;
	}
}

static unsigned work_cpu(unsigned v, unsigned salt)
{
	for (int k = 0; k < 20; k++)
		v = v * 1664525u + salt + k;
	return v;
}

__global__ void append(unsigned *log, unsigned value)
{
	log[1 + log[0]++] = value;
}

int main(int argc, char **argv)
{
	unsigned n = 30011 * size_factor(argc, argv), *host[STREAMS], *device[STREAMS], *log, order[16], wrong = 0, flags;
	cudaStream_t stream[STREAMS];
	cudaEvent_t done[STREAMS];
	int least, greatest, priority;

	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	EXPECT(least >= greatest);
	for (unsigned s = 0; s < STREAMS; s++) {
		CHECK(cudaHostAlloc(&host[s], n * 4ul, cudaHostAllocDefault));
		CHECK(cudaMalloc(&device[s], n * 4ul));
		if (s < 2)
			CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
		else if (s == 2)
			CHECK(cudaStreamCreateWithPriority(&stream[s], cudaStreamNonBlocking, greatest));
		else
			CHECK(cudaStreamCreate(&stream[s]));
		CHECK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
		for (unsigned i = 0; i < n; i++)
			host[s][i] = i * (s + 1);
	}
	CHECK(cudaStreamGetPriority(stream[2], &priority));
	EXPECT(priority == greatest);
	CHECK(cudaStreamGetFlags(stream[1], &flags));
	EXPECT(flags == cudaStreamNonBlocking);
	CHECK(cudaStreamGetFlags(stream[3], &flags));
	EXPECT(flags == cudaStreamDefault);

	for (unsigned s = 0; s < STREAMS; s++) {
		CHECK(cudaMemcpyAsync(device[s], host[s], n * 4ul, cudaMemcpyHostToDevice, stream[s]));
		work<<<(n + 255) / 256, 256, 0, stream[s]>>>(device[s], n, s);
		CHECK(cudaEventRecord(done[s], stream[s]));
	}
	phase();
	for (unsigned s = 0; s < STREAMS; s++) {
		/* Each stream goes on with its neighbour's data, once that is ready. */
		CHECK(cudaStreamWaitEvent(stream[s], done[(s + 1) % STREAMS], 0));
		CHECK(cudaMemcpyAsync(host[s], device[(s + 1) % STREAMS], n * 4ul, cudaMemcpyDeviceToHost, stream[s]));
	}
	for (unsigned s = 0; s < STREAMS; s++) {
		unsigned t = (s + 1) % STREAMS;

		CHECK(cudaStreamSynchronize(stream[s]));
		CHECK(cudaStreamQuery(stream[s]));
		CHECK(cudaEventQuery(done[s]));
		for (unsigned i = 0; i < n; i++)
			wrong += host[s][i] != work_cpu(i * (t + 1), t);
		print_checksum("stream", host[s], n * 4ul);
	}
	EXPECT(wrong == 0);

	/* The legacy default stream waits for blocking streams and they for it: the log has one possible order. */
	CHECK(cudaMalloc(&log, sizeof(order)));
	CHECK(cudaMemset(log, 0, sizeof(order)));
	for (unsigned k = 0; k < 6; k++)
		append<<<1, 1, 0, k & 1 ? stream[3] : 0>>>(log, k * k);
	CHECK(cudaMemcpy(order, log, sizeof(order), cudaMemcpyDeviceToHost));
	EXPECT(order[0] == 6);
	for (unsigned k = 0; k < 6; k++)
		EXPECT(order[1 + k] == k * k);
	for (unsigned s = 0; s < STREAMS; s++) {
		CHECK(cudaStreamDestroy(stream[s]));
		CHECK(cudaEventDestroy(done[s]));
		CHECK(cudaFreeHost(host[s]));
		CHECK(cudaFree(device[s]));
	}
	CHECK(cudaFree(log));
	return finish();
}
