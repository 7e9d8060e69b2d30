/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that a program and its kernels use at the same time: a kernel and the CPU that hand a value to and fro, a stream that waits
 * for the CPU, pointers that only device memory holds, copies of every kind with pinned memory, fills.  Over a network pinned memory is
 * coherent at synchronisation points only: the second argument says for how many of the two halves it is more than that (2 unless given).
 */
#include "phase.h"
#include <cuda.h>

struct ball {
	volatile unsigned to_kernel, to_cpu;
};

__global__ void player(ball *b, unsigned rounds)
{
	for (unsigned i = 1; i <= rounds; i++) {
		while (b->to_kernel != i)
			__nanosleep(200);
		__threadfence_system();
		b->to_cpu = i * 3;
		__threadfence_system();
	}
}

__global__ void add(unsigned *p, size_t n, unsigned what)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += what;
}

struct table {
	unsigned *hidden[4];
};

__global__ void through(const table *t, unsigned which, size_t n)
{
	unsigned *p = t->hidden[which];

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = p[i] * 2 + which;
}

static size_t differ(const unsigned *p, size_t n, unsigned factor, unsigned offset)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += p[i] != (unsigned)i * factor + offset;
	return wrong;
}

static void play(ball *b, cudaStream_t stream, unsigned rounds)
{
	time_t deadline = time(NULL) + 30;

	b->to_kernel = b->to_cpu = 0;
	player<<<1, 1, 0, stream>>>(b, rounds);
	for (unsigned i = 1; i <= rounds; i++) {
		b->to_kernel = i;
		while (b->to_cpu != i * 3) {
			if (time(NULL) > deadline) {
				printf("the kernel did not answer in round %u\n", i);
				exit(1);
			}
		}
	}
	CHECK(cudaStreamSynchronize(stream));
}

/* A stream that stands until the CPU stores the value. */
static void hold(unsigned *flag, unsigned *counter, cudaStream_t stream)
{
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
	cudaDriverEntryPointQueryResult how;

	CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 12000, cudaEnableDefault, &how));
	*(volatile unsigned *)flag = *(volatile unsigned *)counter = 0;
	CUresult result = wait(stream, (CUdeviceptr)flag, 7, CU_STREAM_WAIT_VALUE_EQ);
	EXPECT(result == CUDA_SUCCESS);
	add<<<1, 1, 0, stream>>>(counter, 1, 5);
	EXPECT_ERROR(cudaStreamQuery(stream), cudaErrorNotReady);
	EXPECT(*(volatile unsigned *)counter == 0);
	*(volatile unsigned *)flag = 7;
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(*(volatile unsigned *)counter == 5);
}

static unsigned *a, *b, *tall, *device;
static table *lookup;
static size_t n = 700001;

static void copies(cudaStream_t stream)
{
	for (size_t i = 0; i < n; i++)
		a[i] = (unsigned)i;
	/* What a kernel leaves in pinned memory is copied, and what was copied is there for the next one. */
	add<<<64, 256, 0, stream>>>(a, n, 2);
	CHECK(cudaMemcpyAsync(device, a, n * 4, cudaMemcpyHostToDevice, stream));
	add<<<64, 256, 0, stream>>>(device, n, 3);
	CHECK(cudaMemcpyAsync(b, device, n * 4, cudaMemcpyDeviceToHost, stream));
	add<<<64, 256, 0, stream>>>(b, n, 4);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(a, n, 1, 2) == 0 && differ(b, n, 1, 9) == 0);
	/* Synchronous ones are done when they return, small and large; so is a fill. */
	for (size_t size = 16; size <= n; size = size * 40 + 1) {
		CHECK(cudaMemcpy(device, a, size * 4, cudaMemcpyHostToDevice));
		memset(b, 0, size * 4);
		CHECK(cudaMemcpy(b, device, size * 4, cudaMemcpyDeviceToHost));
		EXPECT(differ(b, size, 1, 2) == 0);
	}
	/* A small one comes behind the kernel before, too. */
	unsigned last = 0;
	add<<<1, 32>>>(a, n, 1);
	CHECK(cudaMemcpy(device, a + n - 1, 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(&last, device, 4, cudaMemcpyDeviceToHost));
	EXPECT(last == n - 1 + 3);
	add<<<64, 256>>>(a, n, ~0u);
	CHECK(cudaMemset(b, 0x11, n * 4));
	EXPECT(b[0] == 0x11111111 && b[n - 1] == 0x11111111);
	CHECK(cudaMemcpy(b, a, n * 4, cudaMemcpyDefault));
	EXPECT(differ(b, n, 1, 2) == 0);
	/* Rows, with other memory around them. */
	memset(tall, 0, 64 * 128 * 4);
	CHECK(cudaMemcpy2DAsync(device, 256, a, 512, 256, 64, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpy2DAsync(tall, 512, device, 256, 256, 64, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	size_t wrong = 0;
	for (unsigned y = 0; y < 64; y++)
		for (unsigned x = 0; x < 128; x++)
			wrong += tall[y * 128 + x] != (x < 64 ? y * 128 + x + 2 : 0);
	EXPECT(wrong == 0);
}

/* A graph whose copies lead from and to pinned memory. */
static void graph(cudaGraphExec_t exec, cudaStream_t stream, unsigned base)
{
	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < n; i++)
			a[i] = (unsigned)i + base + round;
		CHECK(cudaGraphLaunch(exec, stream));
		add<<<64, 256, 0, stream>>>(b, n, 1);
		CHECK(cudaStreamSynchronize(stream));
		EXPECT(differ(b, n, 1, base + round + 11) == 0);
	}
}

static void half(ball *ball, unsigned *flags, bool at_once, cudaGraphExec_t exec, cudaStream_t stream, unsigned base)
{
	if (at_once) {
		play(ball, stream, 50);
		hold(flags, flags + 1, stream);
		/* Nobody asked for this one's device address. */
		for (size_t i = 0; i < n; i++)
			tall[i] = (unsigned)i;
		through<<<64, 256, 0, stream>>>(lookup, 2, n);
		CHECK(cudaStreamSynchronize(stream));
		EXPECT(differ(tall, n, 2, 2) == 0);
	}
	copies(stream);
	graph(exec, stream, base);
}

int main(int argc, char **argv)
{
	int halves = argc > 2 ? atoi(argv[2]) : 2;
	ball *ball_memory;
	unsigned *flags;
	cudaStream_t stream;
	cudaGraph_t captured;
	cudaGraphExec_t exec;
	table t = {};

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaHostAlloc(&ball_memory, sizeof *ball_memory, cudaHostAllocMapped));
	CHECK(cudaMallocHost(&flags, 64));
	CHECK(cudaMallocHost(&a, n * 4));
	CHECK(cudaMallocHost(&b, n * 4));
	CHECK(cudaMallocHost(&tall, n * 4));
	CHECK(cudaMalloc(&device, n * 4));
	CHECK(cudaMalloc(&lookup, sizeof *lookup));
	t.hidden[2] = tall;
	CHECK(cudaMemcpy(lookup, &t, sizeof t, cudaMemcpyHostToDevice));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(device, a, n * 4, cudaMemcpyHostToDevice, stream));
	add<<<64, 256, 0, stream>>>(device, n, 10);
	CHECK(cudaMemcpyAsync(b, device, n * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamEndCapture(stream, &captured));
	CHECK(cudaGraphInstantiate(&exec, captured, 0));

	half(ball_memory, flags, halves > 0, exec, stream, 100);
	/* What is there at the mid point is there afterwards, and what is done to it meanwhile counts. */
	for (size_t i = 0; i < n; i++)
		b[i] = (unsigned)i * 5;
	add<<<64, 256, 0, stream>>>(b, n, 1);
	CHECK(cudaStreamSynchronize(stream));
	phase();
	EXPECT(differ(b, n, 5, 1) == 0);
	b[n - 1] = 1;
	add<<<64, 256, 0, stream>>>(b, n, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(b, n - 1, 5, 2) == 0 && b[n - 1] == 2);
	half(ball_memory, flags, halves > 1, exec, stream, 200);
	print_checksum("b", b, n * 4);

	/* Freed and made again, many of them. */
	unsigned *many[40];
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 40; i++) {
			CHECK(cudaMallocHost(&many[i], 1000 * (i + 1)));
			many[i][0] = many[i][250 * i] = i;
			add<<<1, 1, 0, stream>>>(many[i], 1, 1);
		}
		CHECK(cudaStreamSynchronize(stream));
		for (unsigned i = 0; i < 40; i++) {
			EXPECT(many[i][0] == i + 1);
			CHECK(cudaFreeHost(many[i]));
		}
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(captured));
	CHECK(cudaFreeHost(ball_memory));
	CHECK(cudaFreeHost(flags));
	CHECK(cudaFreeHost(a));
	CHECK(cudaFreeHost(b));
	CHECK(cudaFreeHost(tall));
	CHECK(cudaFree(device));
	CHECK(cudaFree(lookup));
	CHECK(cudaStreamDestroy(stream));
	return finish();
}
