/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is not cudaMalloc's, of which little changes at a time: an array, memory that the program maps itself, and a module's
 * variable, so many MiB of each (the argument, 8 without; of the variable 8 at most).  A part of each is stirred in each round at the mid
 * point and put back after it; one array and one piece of mapped memory come and go in every round.
 */
#include <cuda.h>

#include "phase.h"

static const size_t VARIABLE_MIB = 8, ROW = 4096;

__device__ unsigned long long variable[8 << 17];

struct churn {
	unsigned long long *mapped, *wrong;
	size_t words, part, own;	/* own: of the variable */
	cudaArray_t array, passing;
	cudaSurfaceObject_t surface;
	CUmemGenericAllocationHandle extra;
	unsigned round;
};

/* The driver's own functions, as the runtime gives them: the program is linked with the runtime alone. */
static struct {
	CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
	CUresult (*release)(CUmemGenericAllocationHandle);
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
	CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
} cu;

static const size_t granule = 2 << 20;

static CUmemAllocationProp here()
{
	CUmemAllocationProp prop = {};

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

static void find(const char *name, void *slot)
{
	cudaDriverEntryPointQueryResult found;

	CHECK(cudaGetDriverEntryPointByVersion(name, (void **)slot, 12000, cudaEnableDefault, &found));
	EXPECT(found == cudaDriverEntryPointSuccess);
}

__device__ unsigned long long word(size_t i)
{
	unsigned long long x = i * 0x9e3779b97f4a7c15ull;

	return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
}

__global__ void fill(unsigned long long *data, size_t from, size_t count, unsigned long long salt)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
		data[from + i] = word(from + i) ^ salt;
}

__global__ void fill_array(cudaSurfaceObject_t surface, size_t from, size_t count, unsigned long long salt)
{
	for (size_t i = from + blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < from + count; i += gridDim.x * (size_t)blockDim.x) {
		unsigned long long x = word(i) ^ salt;

		surf2Dwrite(make_uint2((unsigned)x, (unsigned)(x >> 32)), surface, i % ROW * 8, i / ROW);
	}
}

__global__ void check(const unsigned long long *data, size_t count, unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
		if (data[i] != word(i))
			atomicAdd(wrong, 1ull);
}

__global__ void check_array(cudaSurfaceObject_t surface, size_t count, unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x) {
		uint2 x = surf2Dread<uint2>(surface, i % ROW * 8, i / ROW);

		if ((x.x | (unsigned long long)x.y << 32) != word(i))
			atomicAdd(wrong, 1ull);
	}
}

static void fill_parts(struct churn *c, size_t part, size_t own, unsigned long long salt)
{
	unsigned long long *address;

	CHECK(cudaGetSymbolAddress((void **)&address, variable));
	fill<<<16, 256>>>(c->mapped, 0, part, salt);
	fill<<<16, 256>>>(address, 0, own, salt);
	fill_array<<<16, 256>>>(c->surface, 0, part, salt);
	CHECK(cudaDeviceSynchronize());
}

static void come_and_go(struct churn *c)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	CUmemAllocationProp prop = here();

	if (c->passing)
		CHECK(cudaFreeArray(c->passing));
	CHECK(cudaMallocArray(&c->passing, &format, 64, 64));
	if (c->extra)
		EXPECT(cu.release(c->extra) == CUDA_SUCCESS);
	EXPECT(cu.create(&c->extra, granule, &prop, 0) == CUDA_SUCCESS);
}

static void stir(void *opaque)
{
	struct churn *c = (struct churn *)opaque;

	c->round++;
	fill_parts(c, c->part, c->own / 100, c->round);
	come_and_go(c);
}

static void map_memory(struct churn *c)
{
	const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemAllocationProp prop = here();
	size_t bytes = c->words * 8;
	CUdeviceptr address = 0;

	/* In pieces, as PyTorch's expandable segments are. */
	EXPECT(cu.reserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS);
	for (size_t at = 0; at < bytes; at += granule) {
		CUmemGenericAllocationHandle handle;

		EXPECT(cu.create(&handle, granule, &prop, 0) == CUDA_SUCCESS);
		EXPECT(cu.map(address + at, granule, 0, handle, 0) == CUDA_SUCCESS);
		EXPECT(cu.release(handle) == CUDA_SUCCESS);
	}
	EXPECT(cu.access(address, bytes, &access, 1) == CUDA_SUCCESS);
	c->mapped = (unsigned long long *)address;
}

static void make_array(struct churn *c)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<uint2>();
	cudaResourceDesc resource = {};

	CHECK(cudaMallocArray(&c->array, &format, ROW, c->words / ROW, cudaArraySurfaceLoadStore));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = c->array;
	CHECK(cudaCreateSurfaceObject(&c->surface, &resource));
}

int main(int argc, char **argv)
{
	struct churn c = {};
	unsigned long long wrong, *address;
	size_t mib = argc > 1 ? size_factor(argc, argv) : 8;

	find("cuMemAddressReserve", &cu.reserve);
	find("cuMemCreate", &cu.create);
	find("cuMemRelease", &cu.release);
	find("cuMemMap", &cu.map);
	find("cuMemSetAccess", &cu.access);
	c.words = mib << 17;
	c.part = c.words / 100;
	c.own = (mib < VARIABLE_MIB ? mib : VARIABLE_MIB) << 17;
	CHECK(cudaMalloc(&c.wrong, 8));
	CHECK(cudaMemset(c.wrong, 0, 8));
	map_memory(&c);
	make_array(&c);
	come_and_go(&c);
	fill_parts(&c, c.words, c.own, 0);
	phase_with(stir, &c);
	fill_parts(&c, c.part, c.own / 100, 0);
	CHECK(cudaGetSymbolAddress((void **)&address, variable));
	check<<<16, 256>>>(c.mapped, c.words, c.wrong);
	check<<<16, 256>>>(address, c.own, c.wrong);
	check_array<<<16, 256>>>(c.surface, c.words, c.wrong);
	CHECK(cudaMemcpy(&wrong, c.wrong, 8, cudaMemcpyDeviceToHost));
	EXPECT(wrong == 0);
	return finish();
}
