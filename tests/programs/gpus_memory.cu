/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that two GPUs share: mapped by the program for both, of pools opened to the peer, managed, pinned; and reservations side by
 * side with memory of different GPUs behind them.
 */
#include "gpus.h"
#include "words.h"

DRIVER(cuMemAddressReserve);
DRIVER(cuMemAddressFree);
DRIVER(cuMemCreate);
DRIVER(cuMemRelease);
DRIVER(cuMemMap);
DRIVER(cuMemUnmap);
DRIVER(cuMemSetAccess);
DRIVER(cuMemGetAccess);

static const size_t PIECE = 4 << 20;

static unsigned *counter[2];

/* How many words are wrong, as a kernel on that device sees it. */
static unsigned seen_by(int device, const void *p, size_t size, unsigned value)
{
	unsigned n = 0;

	CHECK(cudaSetDevice(device));
	CHECK(cudaMemset(counter[device], 0, 4));
	check<<<64, 256>>>((const unsigned *)p, size / 4, value, counter[device]);
	CHECK(cudaMemcpy(&n, counter[device], 4, cudaMemcpyDeviceToHost));
	return n;
}

static void filled_by(int device, void *p, size_t size, unsigned value)
{
	CHECK(cudaSetDevice(device));
	fill<<<64, 256>>>((unsigned *)p, size / 4, value);
	CHECK(cudaDeviceSynchronize());
}

static CUmemAccessDesc access_of(int device, CUmemAccess_flags flags)
{
	CUmemAccessDesc desc = {};

	desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.location.id = device;
	desc.flags = flags;
	return desc;
}

static unsigned long long flags_of(int device, CUdeviceptr address)
{
	CUmemLocation location = {};
	unsigned long long flags = 99;

	location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	location.id = device;
	CU(p_cuMemGetAccess(&flags, &location, address));
	return flags;
}

int main(void)
{
	CUmemGenericAllocationHandle handle[2];
	CUmemAllocationProp prop = {};
	CUmemAccessDesc both[2] = {access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), access_of(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)}, one;
	CUdeviceptr address;
	cudaMemPool_t pool[2];
	cudaMemAccessFlags flags;
	cudaMemLocation location = {};
	cudaMemAccessDesc open = {};
	unsigned *block[2], *managed, *pinned;

	need_two_gpus();
	LOOK_UP(cuMemAddressReserve);
	LOOK_UP(cuMemAddressFree);
	LOOK_UP(cuMemCreate);
	LOOK_UP(cuMemRelease);
	LOOK_UP(cuMemMap);
	LOOK_UP(cuMemUnmap);
	LOOK_UP(cuMemSetAccess);
	LOOK_UP(cuMemGetAccess);
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaMalloc(&counter[d], 4));
	}

	/* One reservation, half of it device 0's memory and half device 1's, both open to both. */
	CU(p_cuMemAddressReserve(&address, 2 * PIECE, 0, 0, 0));
	for (int d = 0; d < 2; d++) {
		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		prop.location.id = d;
		CU(p_cuMemCreate(&handle[d], PIECE, &prop, 0));
		CU(p_cuMemMap(address + d * PIECE, PIECE, 0, handle[d], 0));
		EXPECT(flags_of(d, address + d * PIECE) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	}
	CU(p_cuMemSetAccess(address, 2 * PIECE, both, 2));
	for (int d = 0; d < 2; d++)
		for (int by = 0; by < 2; by++)
			EXPECT(flags_of(by, address + d * PIECE) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	filled_by(0, (void *)address, 2 * PIECE, 1);
	EXPECT(seen_by(1, (void *)address, 2 * PIECE, 1) == 0);
	filled_by(1, (void *)address, 2 * PIECE, 2);
	EXPECT(seen_by(0, (void *)address, 2 * PIECE, 2) == 0);
	/* Taken back from one, kept by the other; and no other device can be named. */
	one = access_of(1, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CU(p_cuMemSetAccess(address, PIECE, &one, 1));
	EXPECT(flags_of(1, address) == CU_MEM_ACCESS_FLAGS_PROT_NONE && flags_of(0, address) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	EXPECT(flags_of(1, address + PIECE) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && flags_of(0, address + PIECE) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	one = access_of(99, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CU_ERROR(p_cuMemSetAccess(address, PIECE, &one, 1), CUDA_ERROR_INVALID_VALUE);
	CU(p_cuMemSetAccess(address, 2 * PIECE, both, 2));

	/* Pools: the peer's access is the pool's, whatever peer access is enabled. */
	for (int d = 0; d < 2; d++) {
		cudaMemPoolProps props = {};

		props.allocType = cudaMemAllocationTypePinned;
		props.location.type = cudaMemLocationTypeDevice;
		props.location.id = d;
		CHECK(cudaMemPoolCreate(&pool[d], &props));
		location.type = cudaMemLocationTypeDevice;
		location.id = 1 - d;
		CHECK(cudaMemPoolGetAccess(&flags, pool[d], &location));
		EXPECT(flags == cudaMemAccessFlagsProtNone);
		open.location = location;
		open.flags = cudaMemAccessFlagsProtReadWrite;
		CHECK(cudaMemPoolSetAccess(pool[d], &open, 1));
		CHECK(cudaMemPoolGetAccess(&flags, pool[d], &location));
		EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
		location.id = d;
		CHECK(cudaMemPoolGetAccess(&flags, pool[d], &location));
		EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
		open.location.id = d;
		open.flags = cudaMemAccessFlagsProtNone;
		EXPECT(cudaMemPoolSetAccess(pool[d], &open, 1) != cudaSuccess);
		cudaGetLastError();
		CHECK(cudaSetDevice(d));
		CHECK(cudaMallocFromPoolAsync(&block[d], PIECE, pool[d], NULL));
		CHECK(cudaStreamSynchronize(NULL));
	}
	for (int d = 0; d < 2; d++)
		filled_by(1 - d, block[d], PIECE, 10 + d);

	/* Managed memory goes where it is needed, pinned memory is everybody's. */
	CHECK(cudaMallocManaged(&managed, PIECE));
	for (unsigned i = 0; i < PIECE / 4; i++)
		managed[i] = 20 ^ i;
	EXPECT(seen_by(1, managed, PIECE, 20) == 0);
	EXPECT(seen_by(0, managed, PIECE, 20) == 0);
	filled_by(1, managed, PIECE, 21);
	EXPECT(managed[5] == (21 ^ 5));
	EXPECT(seen_by(0, managed, PIECE, 21) == 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaMallocHost(&pinned, PIECE));
	filled_by(0, (void *)address, 2 * PIECE, 3);

	phase();

	for (int d = 0; d < 2; d++) {
		EXPECT(seen_by(d, (void *)address, 2 * PIECE, 3) == 0);
		EXPECT(seen_by(d, managed, PIECE, 21) == 0);
		EXPECT(seen_by(d, block[d], PIECE, 10 + d) == 0);
		EXPECT(seen_by(1 - d, block[d], PIECE, 10 + d) == 0);
		CHECK(cudaSetDevice(1 - d));
		CHECK(cudaMemcpyAsync(pinned, block[d], PIECE, cudaMemcpyDefault, NULL));
		CHECK(cudaStreamSynchronize(NULL));
		EXPECT(pinned[9] == ((10 + d) ^ 9u));
		location.id = 1 - d;
		CHECK(cudaMemPoolGetAccess(&flags, pool[d], &location));
		EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
	}
	filled_by(1, (void *)address, 2 * PIECE, 4);
	EXPECT(seen_by(0, (void *)address, 2 * PIECE, 4) == 0);
	CU(p_cuMemUnmap(address, 2 * PIECE));
	/* Mapped again, changed over, it is what it was. */
	for (int d = 0; d < 2; d++)
		CU(p_cuMemMap(address + (1 - d) * PIECE, PIECE, 0, handle[d], 0));
	CU(p_cuMemSetAccess(address, 2 * PIECE, both, 2));
	CHECK(cudaSetDevice(0));
	CHECK(cudaMemcpy(pinned, (void *)(address + PIECE), PIECE, cudaMemcpyDefault));
	EXPECT(pinned[7] == (4 ^ 7u));
	CU(p_cuMemUnmap(address, 2 * PIECE));
	CU(p_cuMemAddressFree(address, 2 * PIECE));
	for (int d = 0; d < 2; d++) {
		CU(p_cuMemRelease(handle[d]));
		CHECK(cudaSetDevice(d));
		CHECK(cudaFreeAsync(block[d], NULL));
		CHECK(cudaStreamSynchronize(NULL));
		CHECK(cudaMemPoolDestroy(pool[d]));
	}
	CHECK(cudaFree(managed));
	CHECK(cudaFreeHost(pinned));
	return finish();
}
