/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory from cudaHostAlloc and cudaHostRegister, asynchronous copies with it, and what cudaPointerGetAttributes says. */
#include "phase.h"

__device__ int global_word;

__global__ void negate(int *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = -p[i];
}

static void kind_of(const char *name, const void *p, cudaMemoryType expected)
{
	cudaPointerAttributes a;

	CHECK(cudaPointerGetAttributes(&a, p));
	printf("%s: type %d device %d\n", name, a.type, a.device);
	EXPECT(a.type == expected);
	if (expected == cudaMemoryTypeDevice)
		EXPECT(a.devicePointer == p);
	if (expected == cudaMemoryTypeHost)
		EXPECT(a.hostPointer == p);
	if (expected == cudaMemoryTypeUnregistered)
		EXPECT(a.devicePointer == NULL);
}

int main(int argc, char **argv)
{
	int n = 70001 * (int)size_factor(argc, argv), *pinned, *portable, *registered, *d, wrong = 0;
	size_t bytes = n * sizeof(int);
	unsigned flags;
	cudaStream_t stream;
	void *symbol;

	CHECK(cudaMallocHost(&pinned, bytes));
	CHECK(cudaHostAlloc(&portable, bytes, cudaHostAllocPortable));
	registered = (int *)aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	for (int i = 0; i < n; i++)
		registered[i] = i;
	kind_of("malloc", registered, cudaMemoryTypeUnregistered);
	CHECK(cudaHostRegister(registered, bytes, cudaHostRegisterDefault));
	EXPECT_ERROR(cudaHostRegister(registered, bytes, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorHostMemoryAlreadyRegistered);
	CHECK(cudaHostGetFlags(&flags, portable));
	EXPECT(flags & cudaHostAllocPortable);
	CHECK(cudaMalloc(&d, bytes));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	kind_of("cudaMallocHost", pinned, cudaMemoryTypeHost);
	kind_of("registered", registered + 1000, cudaMemoryTypeHost);
	kind_of("cudaMalloc", d + 1000, cudaMemoryTypeDevice);
	CHECK(cudaGetSymbolAddress(&symbol, global_word));
	kind_of("symbol", symbol, cudaMemoryTypeDevice);
	CHECK(cudaMemcpyAsync(d, registered, bytes, cudaMemcpyHostToDevice, stream));
	negate<<<(n + 255) / 256, 256, 0, stream>>>(d, n);
	CHECK(cudaMemcpyAsync(pinned, d, bytes, cudaMemcpyDeviceToHost, stream));
	phase();
	/* The source of this copy is written by the copy before it: the order of the stream decides. */
	CHECK(cudaMemcpyAsync(d, pinned, bytes / 2, cudaMemcpyDefault, stream));
	negate<<<(n + 255) / 256, 256, 0, stream>>>(d, n / 2);
	CHECK(cudaMemcpyAsync(portable, d, bytes, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++) {
		wrong += pinned[i] != -i;
		wrong += portable[i] != (i < n / 2 ? i : -i);
	}
	EXPECT(wrong == 0);
	CHECK(cudaHostUnregister(registered));
	EXPECT_ERROR(cudaHostUnregister(registered), cudaErrorHostMemoryNotRegistered);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorHostMemoryNotRegistered);
	kind_of("unregistered", registered, cudaMemoryTypeUnregistered);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(portable));
	CHECK(cudaFree(d));
	CHECK(cudaStreamDestroy(stream));
	return finish();
}
