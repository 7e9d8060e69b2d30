/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions: order on a stream, other streams that go on meanwhile, callbacks with a status, CUDA forbidden inside. */
#include "phase.h"

#include <atomic>

__global__ void add(unsigned *p, unsigned v)
{
	*p += v;
}

__global__ void copy(const unsigned *from, unsigned *to)
{
	*to = *from;
}

struct seen {
	unsigned *host;
	unsigned value[8];
	int count;
};

static void note(void *data)
{
	struct seen *s = (struct seen *)data;

	s->value[s->count++] = *s->host;
}

static std::atomic<int> released, entered;

static void block(void *data)
{
	entered = 1;
	while (!released)
		usleep(1000);
	*(unsigned *)data += 1000;
}

static cudaError_t inside;

static void forbidden(void *data)
{
	inside = cudaMalloc((void **)data, 16);
}

static void callback(cudaStream_t stream, cudaError_t status, void *data)
{
	printf("callback: %s\n", cudaGetErrorName(status));
	*(cudaStream_t *)data = stream;
}

int main()
{
	unsigned *host, *device, *device2, value = 0;
	void *dummy = NULL;
	cudaStream_t a, b, told = 0;
	struct seen seen = {};

	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&host, 64));
	CHECK(cudaMalloc(&device, 4));
	CHECK(cudaMalloc(&device2, 4));
	memset(host, 0, 64);
	CHECK(cudaMemset(device, 0, 4));
	CHECK(cudaMemset(device2, 0, 4));
	CHECK(cudaDeviceSynchronize());

	/* What was copied before is there when the function runs. */
	seen.host = host;
	for (unsigned i = 0; i < 4; i++) {
		add<<<1, 1, 0, a>>>(device, i + 1);
		CHECK(cudaMemcpyAsync(host, device, 4, cudaMemcpyDeviceToHost, a));
		CHECK(cudaLaunchHostFunc(a, note, &seen));
	}
	phase();
	CHECK(cudaStreamSynchronize(a));
	for (int i = 0; i < seen.count; i++)
		printf("%u ", seen.value[i]);
	printf("(%d calls)\n", seen.count);
	EXPECT(seen.count == 4 && seen.value[0] == 1 && seen.value[3] == 10);

	/* A function that waits stops its stream and no other. */
	host[1] = 7;
	CHECK(cudaLaunchHostFunc(a, block, &host[1]));
	add<<<1, 1, 0, a>>>(device, 100);
	while (!entered)
		usleep(1000);
	add<<<1, 1, 0, b>>>(device2, 5);
	CHECK(cudaStreamSynchronize(b));
	EXPECT_ERROR(cudaStreamQuery(a), cudaErrorNotReady);
	released = 1;
	/* What the function writes is what a copy behind it reads. */
	CHECK(cudaMemcpyAsync(device2, &host[1], 4, cudaMemcpyHostToDevice, a));
	CHECK(cudaMemcpyAsync(&value, device2, 4, cudaMemcpyDeviceToHost, a));
	CHECK(cudaStreamSynchronize(a));
	printf("after the function: %u\n", value);
	EXPECT(value == 1007);

	CHECK(cudaStreamAddCallback(a, callback, &told, 0));
	CHECK(cudaStreamSynchronize(a));
	EXPECT(told == a);
	CHECK(cudaLaunchHostFunc(b, forbidden, &dummy));
	CHECK(cudaStreamSynchronize(b));
	printf("cudaMalloc inside: %s\n", cudaGetErrorName(inside));
	EXPECT_ERROR(cudaLaunchHostFunc(b, NULL, NULL), cudaErrorInvalidValue);
	(void)cudaGetLastError();

	/* On the default streams too. */
	seen.count = 0;
	CHECK(cudaLaunchHostFunc(0, note, &seen));
	CHECK(cudaLaunchHostFunc(cudaStreamPerThread, note, &seen));
	CHECK(cudaDeviceSynchronize());
	EXPECT(seen.count == 2);
	copy<<<1, 1>>>(device, device2);
	CHECK(cudaMemcpy(&value, device2, 4, cudaMemcpyDeviceToHost));
	EXPECT(value == 110);
	return finish();
}
