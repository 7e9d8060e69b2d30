/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two GPUs that reach each other: what the attributes say, access given and taken back, kernels that read, write and count in their
 * peer's memory, every kind of copy between the two, and copies that wait for the other GPU's work by themselves.
 */
#include "gpus.h"

enum { N = 1 << 16, WIDTH = 60, HEIGHT = 7, DEPTH = 3 };

__global__ void fill(unsigned *data, unsigned n, unsigned salt)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = i * 2654435761u + salt;
}

/* Works for a while before it writes: who does not wait for it reads what was there before. */
__global__ void fill_late(unsigned *data, unsigned n, unsigned salt, unsigned rounds)
{
	unsigned x = salt;	/* its value does not matter, but the compiler must not know */

	for (unsigned r = 0; r < rounds; r++)
		x = x * 1664525u + 1013904223u;
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = i * 2654435761u + salt + (x == 0x12345678u && rounds == 1);
}

__global__ void add(unsigned *to, const unsigned *from, unsigned n)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		to[i] += from[i];
}

__global__ void count(unsigned *counter, unsigned n)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(counter, 1);
}

static unsigned *data[2], *copy[2], *host;

static unsigned wrong(const unsigned *got, unsigned n, unsigned salt)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < n; i++)
		bad += got[i] != i * 2654435761u + salt;
	return bad;
}

static unsigned wrong_on(const unsigned *address, unsigned n, unsigned salt)
{
	memset(host, 0x5a, n * 4);
	CHECK(cudaMemcpy(host, address, n * 4, cudaMemcpyDeviceToHost));
	return wrong(host, n, salt);
}

static void attributes(void)
{
	int can, value;

	for (int d = 0; d < 2; d++) {
		CHECK(cudaDeviceCanAccessPeer(&can, d, 1 - d));
		printf("device %d reaches its peer: %d\n", d, can);
		CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, d, 1 - d));
		EXPECT(value == can);
		/* What the link can do: the same through Cricket as natively, which the comparison of this text sees. */
		for (int a = cudaDevP2PAttrPerformanceRank; a <= cudaDevP2PAttrCudaArrayAccessSupported; a++) {
			CHECK(cudaDeviceGetP2PAttribute(&value, (cudaDeviceP2PAttr)a, d, 1 - d));
			printf("attribute %d: %d\n", a, value);
		}
		CHECK(cudaDeviceCanAccessPeer(&can, d, d));
		EXPECT(can == 0);
		EXPECT_ERROR(cudaDeviceCanAccessPeer(&can, d, 99), cudaErrorInvalidDevice);
		EXPECT_ERROR(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, d, d), cudaErrorInvalidDevice);
		EXPECT_ERROR(cudaDeviceGetP2PAttribute(&value, (cudaDeviceP2PAttr)77, d, 1 - d), cudaErrorInvalidValue);
		EXPECT_ERROR(cudaDeviceGetP2PAttribute(NULL, cudaDevP2PAttrAccessSupported, d, 1 - d), cudaErrorInvalidValue);
	}
	cudaGetLastError();
}

static void enable(void)
{
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		EXPECT_ERROR(cudaDeviceDisablePeerAccess(1 - d), cudaErrorPeerAccessNotEnabled);
		EXPECT_ERROR(cudaDeviceEnablePeerAccess(1 - d, 1), cudaErrorInvalidValue);
		EXPECT_ERROR(cudaDeviceEnablePeerAccess(99, 0), cudaErrorInvalidDevice);
		CHECK(cudaDeviceEnablePeerAccess(1 - d, 0));
		EXPECT_ERROR(cudaDeviceEnablePeerAccess(1 - d, 0), cudaErrorPeerAccessAlreadyEnabled);
	}
	cudaGetLastError();
}

/* Reads, writes and atomic operations over the link. */
static void kernels(unsigned salt)
{
	unsigned *counter[2];

	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaMalloc(&counter[d], 4));
		CHECK(cudaMemset(counter[d], 0, 4));
		fill<<<32, 128>>>(data[d], N, salt + d);
		CHECK(cudaMemset(copy[d], 0, N * 4));
		CHECK(cudaDeviceSynchronize());
	}
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		add<<<32, 128>>>(copy[d], data[1 - d], N);	/* reads its peer's memory */
		CHECK(cudaDeviceSynchronize());
		EXPECT(wrong_on(copy[d], N, salt + 1 - d) == 0);
		fill<<<32, 128>>>(data[1 - d], N / 2, salt + 7 + d);	/* writes it */
		count<<<8, 64>>>(counter[1 - d], 1000);
		CHECK(cudaDeviceSynchronize());
	}
	for (int d = 0; d < 2; d++) {
		unsigned value = 0;

		/* From the other device: the address says by itself where it is. */
		CHECK(cudaSetDevice(1 - d));
		EXPECT(wrong_on(data[d], N / 2, salt + 8 - d) == 0);
		CHECK(cudaMemcpy(&value, counter[d], 4, cudaMemcpyDefault));
		EXPECT(value == 1000);
		CHECK(cudaFree(counter[d]));
	}
}

static void copies(unsigned salt)
{
	size_t pitch[2];
	char *pitched[2];

	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		fill<<<32, 128>>>(data[d], N, salt + d);
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaMallocPitch(&pitched[d], &pitch[d], WIDTH * 4, HEIGHT * DEPTH));
		CHECK(cudaMemset(pitched[d], d, pitch[d] * HEIGHT * DEPTH));
	}
	for (int d = 0; d < 2; d++) {
		int p = 1 - d;

		CHECK(cudaSetDevice(d));
		CHECK(cudaMemset(copy[d], 0, N * 4));
		CHECK(cudaMemcpy(copy[d], data[p], N * 4, cudaMemcpyDeviceToDevice));
		EXPECT(wrong_on(copy[d], N, salt + p) == 0);
		CHECK(cudaMemset(copy[d], 0, N * 4));
		CHECK(cudaMemcpy(copy[d], data[p], N * 4, cudaMemcpyDefault));
		EXPECT(wrong_on(copy[d], N, salt + p) == 0);
		CHECK(cudaMemset(copy[d], 0, N * 4));
		CHECK(cudaMemcpyPeer(copy[d], d, data[p], p, N * 4));
		EXPECT(wrong_on(copy[d], N, salt + p) == 0);
		/* Neither side is the current device's. */
		CHECK(cudaMemcpyPeer(copy[p], p, data[p], p, N * 4));
		EXPECT(wrong_on(copy[p], N, salt + p) == 0);
		EXPECT_ERROR(cudaMemcpyPeer(copy[d], d, data[p], 99, 4), cudaErrorInvalidDevice);
		cudaGetLastError();
		/* Rows, and boxes of them. */
		CHECK(cudaMemcpy2D(pitched[d], pitch[d], data[p], WIDTH * 4, WIDTH * 4, HEIGHT, cudaMemcpyDefault));
		CHECK(cudaMemcpy2D(host, WIDTH * 4, pitched[d], pitch[d], WIDTH * 4, HEIGHT, cudaMemcpyDefault));
		EXPECT(wrong(host, WIDTH * HEIGHT, salt + p) == 0);
		cudaMemcpy3DPeerParms box = {};
		box.srcDevice = p;
		box.srcPtr = make_cudaPitchedPtr(data[p], WIDTH * 4, WIDTH * 4, HEIGHT);
		box.dstDevice = d;
		box.dstPtr = make_cudaPitchedPtr(pitched[d], pitch[d], WIDTH * 4, HEIGHT);
		box.extent = make_cudaExtent(WIDTH * 4, HEIGHT, DEPTH);
		CHECK(cudaMemset(pitched[d], 0, pitch[d] * HEIGHT * DEPTH));
		CHECK(cudaMemcpy3DPeer(&box));
		CHECK(cudaMemcpy2D(host, WIDTH * 4, pitched[d], pitch[d], WIDTH * 4, HEIGHT * DEPTH, cudaMemcpyDefault));
		EXPECT(wrong(host, WIDTH * HEIGHT * DEPTH, salt + p) == 0);
		CHECK(cudaMemset(pitched[d], 0, pitch[d] * HEIGHT * DEPTH));
		CHECK(cudaMemcpy3DPeerAsync(&box, NULL));
		CHECK(cudaMemcpy2D(host, WIDTH * 4, pitched[d], pitch[d], WIDTH * 4, HEIGHT * DEPTH, cudaMemcpyDefault));
		EXPECT(wrong(host, WIDTH * HEIGHT * DEPTH, salt + p) == 0);
		box.srcDevice = 99;
		EXPECT_ERROR(cudaMemcpy3DPeer(&box), cudaErrorInvalidDevice);
		cudaGetLastError();
	}
	for (int d = 0; d < 2; d++)
		CHECK(cudaFree(pitched[d]));
}

/* cudaMemcpyPeer comes behind what the default streams of both devices were given, and ahead of what they are given next. */
static void order(unsigned salt, unsigned rounds)
{
	for (int d = 0; d < 2; d++) {
		int p = 1 - d;

		CHECK(cudaSetDevice(p));
		fill<<<32, 128>>>(data[p], N, 1);
		CHECK(cudaDeviceSynchronize());
		fill_late<<<32, 128>>>(data[p], N, salt + p, rounds);
		CHECK(cudaSetDevice(d));
		CHECK(cudaMemcpyPeer(copy[d], d, data[p], p, N * 4));
		CHECK(cudaSetDevice(p));
		fill<<<32, 128>>>(data[p], N, 2);
		CHECK(cudaSetDevice(d));
		EXPECT(wrong_on(copy[d], N, salt + p) == 0);
		CHECK(cudaSetDevice(p));
		EXPECT(wrong_on(data[p], N, 2) == 0);
	}
}

/* Streams of two devices that hand work to each other through events, back and forth. */
static void relay(unsigned salt)
{
	enum { TURNS = 20 };
	cudaStream_t stream[2];
	cudaEvent_t event[2];
	float ms;

	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
		CHECK(cudaEventCreate(&event[d]));
	}
	CHECK(cudaSetDevice(0));
	fill<<<32, 128, 0, stream[0]>>>(data[0], N, salt);
	CHECK(cudaEventRecord(event[0], stream[0]));
	for (int turn = 0; turn < TURNS; turn++) {
		int d = (turn + 1) % 2, p = 1 - d;

		CHECK(cudaSetDevice(d));
		CHECK(cudaStreamWaitEvent(stream[d], event[p], 0));
		CHECK(cudaMemcpyPeerAsync(copy[d], d, data[p], p, N * 4, stream[d]));
		CHECK(cudaMemsetAsync(data[d], 0, N * 4, stream[d]));
		add<<<32, 128, 0, stream[d]>>>(data[d], copy[d], N);
		CHECK(cudaEventRecord(event[d], stream[d]));
	}
	CHECK(cudaStreamSynchronize(stream[TURNS % 2]));
	EXPECT(wrong_on(data[TURNS % 2], N, salt) == 0);
	/* An event belongs to its device; a kernel goes to the stream's, whichever is current. */
	CHECK(cudaSetDevice(0));
	EXPECT_ERROR(cudaEventRecord(event[1], stream[0]), cudaErrorInvalidResourceHandle);
	EXPECT_ERROR(cudaEventElapsedTime(&ms, event[0], event[1]), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
	fill<<<32, 128, 0, stream[1]>>>(data[1], N, salt + 5);
	CHECK(cudaGetLastError());
	CHECK(cudaStreamSynchronize(stream[1]));
	CHECK(cudaStreamQuery(stream[1]));
	EXPECT(wrong_on(data[1], N, salt + 5) == 0);
	CHECK(cudaEventQuery(event[1]));
	for (int d = 0; d < 2; d++) {
		CHECK(cudaStreamDestroy(stream[d]));
		CHECK(cudaEventDestroy(event[d]));
	}
}

int main(int argc, char **argv)
{
	unsigned factor = size_factor(argc, argv);
	int device;

	need_two_gpus();
	host = (unsigned *)malloc(N * 4);
	attributes();
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaMalloc(&data[d], N * 4));
		CHECK(cudaMalloc(&copy[d], N * 4));
	}
	copies(11);	/* needs no access */
	order(100, 200 * factor);
	enable();
	kernels(1000);
	copies(1100);
	order(1200, 200 * factor);
	relay(1300);
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		fill<<<32, 128>>>(data[d], N, 4711 + d);
		CHECK(cudaDeviceSynchronize());
	}
	phase();
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 1);
	for (int d = 0; d < 2; d++)
		EXPECT(wrong_on(data[d], N, 4711 + d) == 0);
	/* Who had access still has it. */
	EXPECT_ERROR(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
	cudaGetLastError();
	kernels(2000);
	copies(2100);
	order(2200, 200 * factor);
	relay(2300);
	for (int d = 0; d < 2; d++) {
		cudaPointerAttributes attributes;

		CHECK(cudaSetDevice(1 - d));
		CHECK(cudaPointerGetAttributes(&attributes, data[d]));
		EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == d && attributes.devicePointer == data[d]);
		CHECK(cudaFree(data[d]));	/* of the other device */
		CHECK(cudaDeviceDisablePeerAccess(d));
		EXPECT_ERROR(cudaDeviceDisablePeerAccess(d), cudaErrorPeerAccessNotEnabled);
		cudaGetLastError();
	}
	/* The end of one device's state is not the other's. */
	CHECK(cudaSetDevice(0));
	CHECK(cudaMemset(copy[0], 7, N * 4));
	CHECK(cudaSetDevice(1));
	CHECK(cudaDeviceReset());
	CHECK(cudaSetDevice(0));
	CHECK(cudaMemcpy(host, copy[0], N * 4, cudaMemcpyDefault));
	EXPECT(host[0] == 0x07070707 && host[N - 1] == 0x07070707);
	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&copy[1], N * 4));
	CHECK(cudaDeviceEnablePeerAccess(0, 0));
	fill<<<32, 128>>>(copy[0], N, 5);
	CHECK(cudaDeviceSynchronize());
	EXPECT(wrong_on(copy[0], N, 5) == 0);
	return finish();
}
