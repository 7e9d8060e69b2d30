/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline over three streams: pieces go up on one, are worked on by another and come back on the third, three buffers in turn, events
 * between them.  At the mid point pieces are in every stage, and more of them follow as long as it lasts.
 */
#include "phase.h"

#define BUFFERS 3

struct pipeline {
	unsigned n, next;	/* words of a piece; the number of the next */
	unsigned *up[BUFFERS], *down[BUFFERS], *device[BUFFERS];
	cudaStream_t upload, work, download;
	cudaEvent_t uploaded[BUFFERS], worked[BUFFERS], downloaded[BUFFERS];
	int wrong;
};

__global__ void stir(unsigned *data, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		for (int k = 0; k < 8; k++)
			data[i] = data[i] * 1664525u + salt + k;
}

static unsigned stir_cpu(unsigned value, unsigned salt)
{
	for (int k = 0; k < 8; k++)
		value = value * 1664525u + salt + k;
	return value;
}

/* What came back of the piece that had the buffer. */
static void take(struct pipeline *p, unsigned piece)
{
	unsigned b = piece % BUFFERS;

	CHECK(cudaEventSynchronize(p->downloaded[b]));
	for (unsigned i = 0; i < p->n; i++)
		p->wrong += p->down[b][i] != stir_cpu(i ^ piece, piece);
}

static void put(struct pipeline *p)
{
	unsigned piece = p->next++, b = piece % BUFFERS;

	if (piece >= BUFFERS)
		take(p, piece - BUFFERS);
	for (unsigned i = 0; i < p->n; i++)
		p->up[b][i] = i ^ piece;
	CHECK(cudaStreamWaitEvent(p->upload, p->downloaded[b], 0));
	CHECK(cudaMemcpyAsync(p->device[b], p->up[b], p->n * 4ul, cudaMemcpyHostToDevice, p->upload));
	CHECK(cudaEventRecord(p->uploaded[b], p->upload));
	CHECK(cudaStreamWaitEvent(p->work, p->uploaded[b], 0));
	stir<<<(p->n + 127) / 128, 128, 0, p->work>>>(p->device[b], p->n, piece);
	CHECK(cudaEventRecord(p->worked[b], p->work));
	CHECK(cudaStreamWaitEvent(p->download, p->worked[b], 0));
	CHECK(cudaMemcpyAsync(p->down[b], p->device[b], p->n * 4ul, cudaMemcpyDeviceToHost, p->download));
	CHECK(cudaEventRecord(p->downloaded[b], p->download));
}

static void put_some(void *opaque)
{
	for (int i = 0; i < 4; i++)
		put((struct pipeline *)opaque);
}

int main(int argc, char **argv)
{
	struct pipeline p = {};
	unsigned long long sum = 0;

	p.n = 4001 * size_factor(argc, argv);
	CHECK(cudaStreamCreateWithFlags(&p.upload, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&p.work, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&p.download, cudaStreamNonBlocking));
	for (int b = 0; b < BUFFERS; b++) {
		CHECK(cudaMallocHost(&p.up[b], p.n * 4ul));
		CHECK(cudaMallocHost(&p.down[b], p.n * 4ul));
		CHECK(cudaMalloc(&p.device[b], p.n * 4ul));
		CHECK(cudaEventCreateWithFlags(&p.uploaded[b], cudaEventDisableTiming));
		CHECK(cudaEventCreateWithFlags(&p.worked[b], cudaEventDisableTiming));
		CHECK(cudaEventCreateWithFlags(&p.downloaded[b], cudaEventDisableTiming));
	}
	for (int i = 0; i < 7; i++)
		put(&p);
	phase_with(put_some, &p);
	/* The same pieces for everyone, however many there were. */
	for (unsigned piece = p.next - BUFFERS; piece < p.next; piece++)
		take(&p, piece);
	p.next = 1000002;
	for (int b = 0; b < BUFFERS; b++) {
		unsigned piece = p.next;

		p.next = p.next + 1;
		for (unsigned i = 0; i < p.n; i++)
			p.up[b][i] = i ^ piece;
		CHECK(cudaMemcpyAsync(p.device[b], p.up[b], p.n * 4ul, cudaMemcpyHostToDevice, p.work));
		stir<<<(p.n + 127) / 128, 128, 0, p.work>>>(p.device[b], p.n, piece);
		CHECK(cudaMemcpyAsync(p.down[b], p.device[b], p.n * 4ul, cudaMemcpyDeviceToHost, p.work));
	}
	CHECK(cudaStreamSynchronize(p.work));
	for (int b = 0; b < BUFFERS; b++)
		for (unsigned i = 0; i < p.n; i++)
			sum += p.down[b][i];
	printf("sum %llu\n", sum);
	EXPECT(p.wrong == 0);
	return finish();
}
