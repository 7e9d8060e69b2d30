/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a blocking copy from the host promises: its source may be written at once, and it comes behind what its stream was given before.
 * From pinned memory its bytes are on the device when it returns, also for streams that wait for no other.  From pageable memory CUDA
 * promises only that they are staged ("API synchronization behavior" in its reference; an H200 leaves more than 64 KiB of them under way):
 * they are there when the legacy default stream is done.
 */
#include "phase.h"

static const size_t n = 1 << 21;	/* words */

__device__ unsigned symbol[4];

__global__ void ends(const unsigned *p, size_t n, unsigned *out)
{
	*out = p[0] + p[n - 1];
}

__global__ void symbol_sum(unsigned *out)
{
	*out = symbol[0] + symbol[3];
}

__global__ void texel(cudaTextureObject_t texture, unsigned *out)
{
	*out = tex2D<unsigned>(texture, 63, 63);
}

/* Takes a while; leaves the value. */
__global__ void slowly(unsigned *p, unsigned value)
{
	unsigned x = *p;
	for (unsigned i = 0; i < 100000; i++)
		x = x * 3 + 1;
	*p = x == 123 ? 0 : value;
}

static unsigned result(const unsigned *out, cudaStream_t stream)
{
	unsigned word = 0;
	CHECK(cudaMemcpyAsync(&word, out, 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	return word;
}

enum memory { PAGEABLE, PINNED };

static void arrive(enum memory memory)
{
	if (memory == PAGEABLE)
		CHECK(cudaStreamSynchronize(cudaStreamLegacy));
}

/* The stream waits for nobody: only that the copy has returned brings it the bytes. */
static void seen_at_once(unsigned *host, enum memory memory, unsigned *device, unsigned *out, cudaStream_t stream)
{
	for (size_t size = 2; size <= n; size *= 32)
		for (unsigned round = 1; round <= 6; round++) {
			host[0] = round;
			host[size - 1] = 1000 * round;
			CHECK(cudaMemcpy(device, host, size * 4, cudaMemcpyHostToDevice));
			arrive(memory);
			ends<<<1, 1, 0, stream>>>(device, size, out);
			EXPECT(result(out, stream) == 1001 * round);
			CHECK(cudaMemset(device, 0xee, size * 4));
		}
}

static void symbols_and_arrays(unsigned *host, enum memory memory, unsigned *out, cudaStream_t stream)
{
	cudaArray_t array;
	cudaTextureObject_t texture;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};

	CHECK(cudaMallocArray(&array, &format, 64, 64));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	for (unsigned round = 1; round <= 6; round++) {
		for (unsigned i = 0; i < 64 * 64; i++)
			host[i] = i * round;
		CHECK(cudaMemcpyToSymbol(symbol, host, 16));
		arrive(memory);
		symbol_sum<<<1, 1, 0, stream>>>(out);
		EXPECT(result(out, stream) == 3 * round);
		CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 256, 256, 64, cudaMemcpyHostToDevice));
		arrive(memory);
		texel<<<1, 1, 0, stream>>>(texture, out);
		EXPECT(result(out, stream) == 4095 * round);
	}
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
}

/* Its source is the program's again, wherever the copy goes from. */
static void source_is_free(unsigned *host, enum memory memory, unsigned *device, unsigned *out, bool kernels_use_it, cudaStream_t stream)
{
	unsigned *address;
	if (kernels_use_it)
		CHECK(cudaHostGetDevicePointer(&address, host, 0));
	for (unsigned round = 1; round <= 4; round++) {
		slowly<<<1, 1>>>(out, 5);
		host[0] = round;
		host[n - 1] = 7;
		CHECK(cudaMemcpy(device, host, n * 4, cudaMemcpyHostToDevice));
		host[0] = host[n - 1] = 12345;
		arrive(memory);
		/* Whatever makes what was just written reach the device does not reach the copy. */
		slowly<<<1, 1, 0, stream>>>(out + 1, 6);
		ends<<<1, 1, 0, stream>>>(device, n, out + 2);
		EXPECT(result(out + 2, stream) == round + 7);
	}
}

/* Behind a kernel of its stream that writes its source: small and large. */
static void behind(unsigned *pinned, unsigned *device, unsigned *out)
{
	unsigned *address;
	CHECK(cudaHostGetDevicePointer(&address, pinned, 0));
	for (size_t size = 1; size <= n; size *= 512) {
		pinned[0] = 1;
		slowly<<<1, 1>>>(address, 77);
		CHECK(cudaMemcpy(device, pinned, size * 4, cudaMemcpyHostToDevice));
		ends<<<1, 1>>>(device, 1, out);
		EXPECT(result(out, NULL) == 154);
	}
}

int main(void)
{
	unsigned *pageable = (unsigned *)malloc(n * 4), *pinned, *mapped, *registered = (unsigned *)malloc(n * 4), *device, *out;
	cudaStream_t stream;

	CHECK(cudaMalloc(&device, n * 4));
	CHECK(cudaMalloc(&out, 64));
	CHECK(cudaMemset(out, 0, 64));
	CHECK(cudaMallocHost(&pinned, n * 4));
	CHECK(cudaHostAlloc(&mapped, n * 4, cudaHostAllocMapped));
	CHECK(cudaHostRegister(registered, n * 4, cudaHostRegisterDefault));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	seen_at_once(pageable, PAGEABLE, device, out, stream);
	seen_at_once(pinned, PINNED, device, out, stream);
	symbols_and_arrays(pageable, PAGEABLE, out, stream);
	symbols_and_arrays(pinned, PINNED, out, stream);
	phase();
	source_is_free(pageable, PAGEABLE, device, out, false, stream);
	source_is_free(pinned, PINNED, device, out, false, stream);
	source_is_free(mapped, PINNED, device, out, true, stream);
	source_is_free(registered, PINNED, device, out, true, stream);
	seen_at_once(mapped, PINNED, device, out, stream);
	seen_at_once(registered, PINNED, device, out, stream);
	behind(mapped, device, out);
	behind(registered, device, out);
	return finish();
}
