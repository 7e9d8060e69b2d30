/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the program's own that it registers, and kernels that reach it by its device pointer: at synchronisation points of every kind
 * each side has what the other wrote, and copies keep their place among the kernels of a stream.
 */
#include <string.h>

#include "phase.h"

static const size_t n = 300001;

__global__ void bump(unsigned *p, size_t n, unsigned what)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += what;
}

/* Takes a while. */
__global__ void slowly(unsigned *p, unsigned rounds)
{
	unsigned x = *p;
	for (unsigned i = 0; i < rounds; i++)
		x = x * 3 + 1;
	*p = x | 1;
}

static size_t differ(const unsigned *p, size_t n, unsigned offset)
{
	size_t wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += p[i] != (unsigned)i + offset;
	return wrong;
}

static void CUDART_CB look(void *data)
{
	unsigned *p = (unsigned *)data;
	p[1] = p[0] + 5;
}

static void streams_and_events(unsigned *memory, unsigned *address, cudaStream_t stream)
{
	cudaEvent_t event;
	CHECK(cudaEventCreate(&event));
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaEventSynchronize(event));
	EXPECT(differ(memory, n, 1) == 0);
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaEventRecord(event, stream));
	while (cudaEventQuery(event) == cudaErrorNotReady)
		;
	EXPECT(differ(memory, n, 2) == 0);
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	while (cudaStreamQuery(stream) == cudaErrorNotReady)
		;
	EXPECT(differ(memory, n, 3) == 0);
	bump<<<64, 256>>>(address, n, 1);
	CHECK(cudaDeviceSynchronize());
	EXPECT(differ(memory, n, 4) == 0);
	CHECK(cudaEventDestroy(event));
}

/* What the CPU changes while the GPU is at other words of the same memory is in neither's way. */
static void side_by_side(unsigned *memory, unsigned *address, cudaStream_t stream, cudaStream_t other)
{
	slowly<<<1, 1, 0, stream>>>(address + 10, 300000);
	for (size_t i = 100; i < 2000; i += 2)
		memory[i] += 7;
	memory[11] = 1;
	bump<<<64, 256, 0, other>>>(address + 11, 1, 41);
	CHECK(cudaStreamSynchronize(other));
	EXPECT(memory[11] == 42);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT((memory[10] & 1) == 1);
	/* Scattered, and many. */
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned)i;
	slowly<<<1, 1, 0, stream>>>(address, 1000);
	for (size_t i = 2; i < n; i += 2)
		memory[i]++;
	bump<<<64, 256, 0, stream>>>(address + 1, n - 1, 1);
	CHECK(cudaDeviceSynchronize());
	size_t wrong = 0;
	for (size_t i = 1; i < n; i++)
		wrong += memory[i] != (unsigned)i + 1 + (i % 2 == 0);
	EXPECT(wrong == 0);
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned)i;
}

static void copies(unsigned *memory, unsigned *address, unsigned *device, cudaStream_t stream)
{
	unsigned *back = (unsigned *)malloc(n * 4), word = 0;
	/* A copy from it comes behind the kernel before. */
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaMemcpyAsync(device, memory, n * 4, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(back, device, n * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(back, n, 1) == 0 && differ(memory, n, 1) == 0);
	/* A copy to it before the kernel behind. */
	bump<<<64, 256, 0, stream>>>(device, n, 1);
	CHECK(cudaMemcpyAsync(memory, device, n * 4, cudaMemcpyDeviceToHost, stream));
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(memory, n, 3) == 0);
	/* What is done when it returns is done. */
	slowly<<<1, 1>>>(address + 5, 100000);
	CHECK(cudaMemcpy(&word, memory + 5, 4, cudaMemcpyDefault));
	EXPECT(word == memory[5] && (word & 1));
	memory[5] = 8;
	CHECK(cudaMemcpy(device, memory, n * 4, cudaMemcpyHostToDevice));
	memory[5] = 9;
	CHECK(cudaMemcpy(back, device, n * 4, cudaMemcpyDeviceToHost));
	EXPECT(differ(back, n, 3) == 0);
	CHECK(cudaMemcpy(memory + 4, back + 3, 8, cudaMemcpyHostToHost));
	EXPECT(memory[4] == 6 && memory[5] == 7);
	CHECK(cudaMemcpy2D(memory + 4, 12, back + 4, 8, 8, 5, cudaMemcpyHostToHost));
	EXPECT(memory[4] == 7 && memory[5] == 8 && memory[6] == 9 && memory[7] == 9);
	/* A fill is done when it returns, by either address. */
	CHECK(cudaMemset(address, 0, 8));
	EXPECT(memory[0] == 0 && memory[1] == 0 && memory[2] == 5);
	CHECK(cudaMemset(memory + 2, 0, 8));
	EXPECT(memory[2] == 0 && memory[3] == 0 && memory[4] == 7);
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned)i;
	free(back);
}

static void host_function(unsigned *memory, unsigned *address, cudaStream_t stream)
{
	memory[0] = 10;
	bump<<<1, 1, 0, stream>>>(address, 1, 1);
	CHECK(cudaLaunchHostFunc(stream, look, memory));
	bump<<<1, 1, 0, stream>>>(address + 1, 1, 100);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(memory[0] == 11 && memory[1] == 116);
	memory[0] = 0;
	memory[1] = 1;
}

static void graph(unsigned *memory, unsigned *address, unsigned *device, cudaStream_t stream)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemcpyAsync(device, memory, n * 4, cudaMemcpyHostToDevice, stream));
	bump<<<64, 256, 0, stream>>>(device, n, 1);
	CHECK(cudaMemcpyAsync(memory, device, n * 4, cudaMemcpyDeviceToHost, stream));
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned i = 1; i < 4; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		EXPECT(differ(memory, n, 2 * i) == 0);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned)i;
}

int main(void)
{
	unsigned *block = (unsigned *)malloc(n * 4 + 64), *memory = block + 4, *address, *inside, *device;
	unsigned flags = 0, guard = 0xabcdef01;
	cudaStream_t stream, other;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&device, n * 4));
	memory[-1] = memory[n] = guard;
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned)i;
	CHECK(cudaHostRegister(memory, n * 4, cudaHostRegisterMapped | cudaHostRegisterPortable));
	CHECK(cudaHostGetFlags(&flags, memory));
	EXPECT(flags == (cudaHostRegisterMapped | cudaHostRegisterPortable));
	CHECK(cudaHostGetDevicePointer(&address, memory, 0));
	CHECK(cudaHostGetDevicePointer(&inside, memory + 1000, 0));
	EXPECT(inside == address + 1000);

	streams_and_events(memory, address, stream);
	for (size_t i = 0; i < n; i++)
		memory[i] -= 4;
	side_by_side(memory, address, stream, other);
	copies(memory, address, device, stream);
	host_function(memory, address, stream);
	phase();
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	phase();
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(memory, n, 1) == 0);
	memory[7]++;
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(memory[7] == 10);
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned)i;
	graph(memory, address, device, stream);

	/* It has what the GPU wrote when it is not registered any more, and what lies beside it is what it was. */
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaHostUnregister(memory));
	EXPECT(differ(memory, n, 1) == 0);
	EXPECT(memory[-1] == guard && memory[n] == guard);
	EXPECT_ERROR(cudaHostGetDevicePointer(&address, memory, 0), cudaErrorInvalidValue);
	CHECK(cudaHostRegister(memory, n * 4, cudaHostRegisterDefault));
	CHECK(cudaHostGetDevicePointer(&address, memory, 0));
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(memory, n, 2) == 0);
	CHECK(cudaHostUnregister(memory));
	return finish();
}
