/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned buffers with copies in flight at the mid point: both directions on two streams, large enough to take many commands, nothing
 * waited for before.  Each round hands its pattern through the device and back and looks at what came two rounds ago.
 */
#include "phase.h"

#define LANES 2

struct lanes {
	size_t n;
	unsigned *source[LANES], *back[LANES], *device[LANES], round;
	cudaStream_t stream[LANES];
	int wrong;
};

__global__ void add(unsigned *data, size_t n, unsigned value)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
		if (i % 61 == 0)
			data[i] += value;
}

static void send(struct lanes *l)
{
	unsigned k = l->round++ % LANES;

	/* The same lane's last turn: its stream says when it has come back. */
	CHECK(cudaStreamSynchronize(l->stream[k]));
	for (size_t i = 0; l->round > LANES && i < l->n; i += 7)
		l->wrong += l->back[k][i] != l->source[k][i] + (i % 61 == 0 ? l->source[k][0] : 0);
	for (size_t i = 0; i < l->n; i++)
		l->source[k][i] = (unsigned)i * 3 + l->round;
	CHECK(cudaMemcpyAsync(l->device[k], l->source[k], l->n * 4, cudaMemcpyHostToDevice, l->stream[k]));
	add<<<4, 64, 0, l->stream[k]>>>(l->device[k], l->n, l->source[k][0]);
	CHECK(cudaMemcpyAsync(l->back[k], l->device[k], l->n * 4, cudaMemcpyDeviceToHost, l->stream[k]));
}

static void send_one(void *opaque)
{
	send((struct lanes *)opaque);
}

int main(int argc, char **argv)
{
	struct lanes l = {};

	l.n = 500009 * (size_t)size_factor(argc, argv);
	for (int k = 0; k < LANES; k++) {
		CHECK(cudaMallocHost(&l.source[k], l.n * 4));
		if (k == 0) {
			CHECK(cudaMallocHost(&l.back[k], l.n * 4));
		} else {
			l.back[k] = (unsigned *)calloc(l.n, 4);
			CHECK(cudaHostRegister(l.back[k], l.n * 4, cudaHostRegisterDefault));
		}
		CHECK(cudaMalloc(&l.device[k], l.n * 4));
		CHECK(cudaStreamCreateWithFlags(&l.stream[k], cudaStreamNonBlocking));
	}
	send(&l);
	send(&l);
	phase_with(send_one, &l);
	/* The same rounds for everyone. */
	for (int i = 0; i < LANES; i++)
		send(&l);
	CHECK(cudaDeviceSynchronize());
	l.round = 100;
	send(&l);
	send(&l);
	CHECK(cudaDeviceSynchronize());
	EXPECT(l.wrong == 0);
	print_checksum("first", l.back[0], l.n * 4);
	print_checksum("second", l.back[1], l.n * 4);
	CHECK(cudaHostUnregister(l.back[1]));
	return finish();
}
