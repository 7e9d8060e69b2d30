/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that kernels use directly: by its device pointer, by its own address among the parameters, within a structure, as the
 * target of fills and copies; before and after it was an ordinary pinned buffer.
 */
#include "phase.h"

struct job {
	unsigned pad;
	unsigned *words;
	size_t count;
};

__global__ void bump(unsigned *p, size_t n, unsigned what)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += what;
}

__global__ void work(job j)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < j.count; i += gridDim.x * blockDim.x)
		j.words[i] = j.words[i] * 3 + 1;
}

__global__ void gather(const unsigned *const *tables, unsigned *out)
{
	*out = tables[0][5] + tables[1][7];
}

static size_t differ(const unsigned *p, size_t n, unsigned factor, unsigned offset)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += p[i] != (unsigned)i * factor + offset;
	return wrong;
}

int main(void)
{
	size_t n = 300001;
	unsigned *mapped, *plain, *late, *device, *address, *small, *tables_out;
	unsigned **tables;
	int can = 0;
	cudaStream_t stream;
	cudaPointerAttributes attributes;

	CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrCanMapHostMemory, 0));
	EXPECT(can == 1);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaHostAlloc(&mapped, n * 4, cudaHostAllocMapped | cudaHostAllocPortable));
	CHECK(cudaMallocHost(&plain, n * 4));
	CHECK(cudaMallocHost(&late, n * 4));
	CHECK(cudaHostAlloc(&small, 8, cudaHostAllocPortable));
	CHECK(cudaMalloc(&device, n * 4));
	CHECK(cudaMalloc(&tables_out, 4));

	/* By its device pointer: the CPU writes, the GPU adds, the CPU reads and writes again. */
	for (size_t i = 0; i < n; i++)
		mapped[i] = (unsigned)i;
	CHECK(cudaHostGetDevicePointer(&address, mapped, 0));
	EXPECT(address == mapped);
	bump<<<64, 256, 0, stream>>>(address, n, 7);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(mapped, n, 1, 7) == 0);
	mapped[3] += 1000;
	bump<<<64, 256, 0, stream>>>(address + 3, 1, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(mapped[3] == 1011);
	mapped[3] = 10;
	phase();
	bump<<<64, 256, 0, stream>>>(address, n, 1);
	phase();
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(mapped, n, 1, 8) == 0);

	/* Its own address is enough, in a structure as well; what a copy brought is there. */
	for (size_t i = 0; i < n; i++)
		plain[i] = (unsigned)i * 2;
	CHECK(cudaMemcpyAsync(device, plain, n * 4, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(late, device, n * 4, cudaMemcpyDeviceToHost, stream));
	work<<<64, 256, 0, stream>>>(job{1, late, n});
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(late, n, 6, 1) == 0);
	EXPECT(differ(plain, n, 2, 0) == 0);

	/* Copies with mapped memory on either side, and into the middle of it. */
	CHECK(cudaMemcpyAsync(device, late, n * 4, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(mapped, device, n * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(differ(mapped, n, 6, 1) == 0);
	CHECK(cudaMemcpy(mapped + 100, plain, 400, cudaMemcpyDefault));
	EXPECT(differ(mapped + 100, 100, 2, 0) == 0);
	EXPECT(mapped[99] == 595 && mapped[200] == 1201);
	CHECK(cudaMemcpy(plain, mapped + 200, 400, cudaMemcpyHostToHost));
	EXPECT(differ(plain, 100, 6, 1201) == 0);

	/* A fill of eight bytes, a kernel, a look after the stream: what XLA does. */
	small[0] = small[1] = 99;
	CHECK(cudaMemsetAsync(small, 0, 8, stream));
	bump<<<1, 1, 0, stream>>>(small + 1, 1, 5);
	CHECK(cudaStreamSynchronize(stream));
	printf("small %u %u\n", small[0], small[1]);
	EXPECT(small[0] == 0 && small[1] == 5);

	/* Pointers that only device memory holds. */
	CHECK(cudaHostGetDevicePointer(&address, plain, 0));
	CHECK(cudaHostAlloc(&tables, 2 * sizeof *tables, cudaHostAllocMapped));
	tables[0] = mapped;
	tables[1] = plain;
	gather<<<1, 1, 0, stream>>>(tables, tables_out);
	unsigned sum = 0;
	CHECK(cudaMemcpyAsync(&sum, tables_out, 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(sum == mapped[5] + plain[7]);
	CHECK(cudaPointerGetAttributes(&attributes, mapped + 1));
	printf("type %d\n", attributes.type);
	EXPECT(attributes.devicePointer == mapped + 1 && attributes.hostPointer == mapped + 1);

	/* A graph that was made of copies with ordinary pinned memory, which is mapped before it runs. */
	unsigned *from, *to;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CHECK(cudaMallocHost(&from, n * 4));
	CHECK(cudaMallocHost(&to, n * 4));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(device, from, n * 4, cudaMemcpyHostToDevice, stream));
	bump<<<64, 256, 0, stream>>>(device, n, 9);
	bump<<<64, 256, 0, stream>>>(mapped, n, 1);
	CHECK(cudaMemcpyAsync(to, device, n * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (size_t i = 0; i < n; i++)
		from[i] = (unsigned)i;
	CHECK(cudaHostGetDevicePointer(&address, from, 0));
	CHECK(cudaHostGetDevicePointer(&address, to, 0));
	for (int round = 0; round < 3; round++) {
		bump<<<64, 256, 0, stream>>>(from, n, 1);
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		EXPECT(differ(to, n, 1, 10 + round) == 0);
	}
	EXPECT(mapped[5] == 34);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFreeHost(from));
	CHECK(cudaFreeHost(to));

	/* Freed addresses come again and begin as ordinary memory. */
	for (int round = 0; round < 80; round++) {
		unsigned *p;
		CHECK(cudaMallocHost(&p, 4096 + round));
		p[0] = round;
		bump<<<1, 1>>>(p, 1, 1);
		CHECK(cudaDeviceSynchronize());
		EXPECT(p[0] == (unsigned)round + 1);
		CHECK(cudaFreeHost(p));
	}
	CHECK(cudaFreeHost(tables));
	CHECK(cudaFreeHost(small));
	CHECK(cudaFreeHost(mapped));
	CHECK(cudaFreeHost(plain));
	CHECK(cudaFreeHost(late));
	CHECK(cudaFree(device));
	CHECK(cudaStreamDestroy(stream));
	return finish();
}
