/* SPDX-License-Identifier: Apache-2.0 */
/* Several GPUs as devices of one program: memory and work on each, copies between them, a kernel that reads its peer's memory. */
#include "phase.h"

__global__ void fill(unsigned *data, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = i * 2654435761u + salt;
}

__global__ void add(unsigned *to, const unsigned *from, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] += from[i];
}

int main(void)
{
	enum { N = 100003, MOST = 8 };
	unsigned *data[MOST], *copy[MOST], *host = (unsigned *)malloc(N * 4);
	cudaStream_t stream[MOST];
	cudaEvent_t done[MOST];
	int count, device, can, wrong = 0;

	CHECK(cudaGetDeviceCount(&count));
	if (count > MOST)
		count = MOST;
	EXPECT_ERROR(cudaSetDevice(count + 100), cudaErrorInvalidDevice);
	cudaGetLastError();
	for (int d = 0; d < count; d++) {
		cudaDeviceProp properties;

		CHECK(cudaSetDevice(d));
		CHECK(cudaGetDevice(&device));
		EXPECT(device == d);
		CHECK(cudaGetDeviceProperties(&properties, d));
		CHECK(cudaMalloc(&data[d], N * 4));
		CHECK(cudaMalloc(&copy[d], N * 4));
		CHECK(cudaStreamCreate(&stream[d]));
		CHECK(cudaEventCreateWithFlags(&done[d], cudaEventDisableTiming));
		fill<<<(N + 255) / 256, 256, 0, stream[d]>>>(data[d], N, d);
		CHECK(cudaEventRecord(done[d], stream[d]));
	}
	phase();
	/* Each device gets its neighbour's data, behind the neighbour's kernel. */
	for (int d = 0; d < count; d++) {
		int next = (d + 1) % count;
		cudaPointerAttributes attributes;

		CHECK(cudaSetDevice(d));
		CHECK(cudaStreamWaitEvent(stream[d], done[next], 0));
		CHECK(cudaMemcpyPeerAsync(copy[d], d, data[next], next, N * 4, stream[d]));
		CHECK(cudaStreamSynchronize(stream[d]));
		CHECK(cudaMemcpy(host, copy[d], N * 4, cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < N; i++)
			wrong += host[i] != i * 2654435761u + next;
		CHECK(cudaPointerGetAttributes(&attributes, copy[d]));
		EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == d);
	}
	EXPECT(wrong == 0);
	for (int d = 0; d < count && count > 1; d++) {
		int next = (d + 1) % count;

		CHECK(cudaSetDevice(d));
		CHECK(cudaDeviceCanAccessPeer(&can, d, next));
		if (!can)
			continue;
		CHECK(cudaDeviceEnablePeerAccess(next, 0));
		EXPECT_ERROR(cudaDeviceEnablePeerAccess(next, 0), cudaErrorPeerAccessAlreadyEnabled);
		cudaGetLastError();
		CHECK(cudaMemset(copy[d], 0, N * 4));
		add<<<(N + 255) / 256, 256>>>(copy[d], data[next], N);
		CHECK(cudaMemcpy(host, copy[d], N * 4, cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < N; i++)
			wrong += host[i] != i * 2654435761u + next;
		CHECK(cudaDeviceDisablePeerAccess(next));
		EXPECT_ERROR(cudaDeviceDisablePeerAccess(next), cudaErrorPeerAccessNotEnabled);
		cudaGetLastError();
	}
	EXPECT(wrong == 0);
	return finish();
}
