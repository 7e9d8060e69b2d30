/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation: the order between streams, reuse, pools with a threshold and their counts, memory that survives in
 * a pool that is destroyed, frees of either kind, errors.
 */
#include "phase.h"

__global__ void fill(unsigned *p, unsigned n, unsigned value)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = value ^ i;
}

__global__ void check(const unsigned *p, unsigned n, unsigned value, unsigned *wrong)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		if (p[i] != (value ^ i))
			atomicAdd(wrong, 1);
}

static unsigned *wrong;

/* Allocates, fills, checks and frees again and again on one stream without ever waiting. */
static void churn(cudaStream_t stream, unsigned rounds, unsigned seed)
{
	uint32_t state = seed;
	unsigned *held[8] = {}, words[8], value[8];

	for (unsigned r = 0; r < rounds; r++) {
		int slot = random_u32(&state) % 8;

		if (held[slot]) {
			check<<<4, 64, 0, stream>>>(held[slot], words[slot], value[slot], wrong);
			CHECK(cudaFreeAsync(held[slot], stream));
		}
		words[slot] = 1 + random_u32(&state) % (r % 9 ? 700 : 400000);
		value[slot] = random_u32(&state);
		CHECK(cudaMallocAsync(&held[slot], words[slot] * 4ul, stream));
		fill<<<4, 64, 0, stream>>>(held[slot], words[slot], value[slot]);
	}
	for (int i = 0; i < 8; i++)
		if (held[i]) {
			check<<<4, 64, 0, stream>>>(held[i], words[i], value[i], wrong);
			CHECK(cudaFreeAsync(held[i], stream));
		}
}

static uint64_t get(cudaMemPool_t pool, cudaMemPoolAttr attribute)
{
	uint64_t value = ~0ull;

	CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void set(cudaMemPool_t pool, cudaMemPoolAttr attribute, uint64_t value)
{
	CHECK(cudaMemPoolSetAttribute(pool, attribute, &value));
}

int main(void)
{
	cudaStream_t a, b;
	cudaMemPool_t standard, current, own;
	cudaEvent_t event;
	unsigned *p, *q, *kept, *last, host_wrong;
	int supported = 0, flag = -1;
	size_t mib = 1 << 20;

	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	EXPECT(supported == 1);
	CHECK(cudaStreamCreate(&a));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CHECK(cudaMalloc(&wrong, 4));
	CHECK(cudaMemset(wrong, 0, 4));
	CHECK(cudaDeviceSynchronize());

	CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
	CHECK(cudaDeviceGetMemPool(&current, 0));
	EXPECT(standard == current);
	EXPECT(get(standard, cudaMemPoolAttrReleaseThreshold) == 0);
	CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &flag));
	EXPECT(flag == 1);

	churn(a, 120, 1);
	churn(b, 120, 2);
	churn(NULL, 60, 3);

	/* Made on one stream, used on another behind an event, freed there. */
	CHECK(cudaMallocAsync(&p, 3 * mib, a));
	fill<<<8, 64, 0, a>>>(p, 3 * mib / 4, 77);
	CHECK(cudaEventRecord(event, a));
	CHECK(cudaStreamWaitEvent(b, event, 0));
	check<<<8, 64, 0, b>>>(p, 3 * mib / 4, 77, wrong);
	CHECK(cudaFreeAsync(p, b));
	CHECK(cudaDeviceSynchronize());
	EXPECT(get(standard, cudaMemPoolAttrUsedMemCurrent) == 0);
	EXPECT(get(standard, cudaMemPoolAttrUsedMemHigh) >= 3 * mib);
	EXPECT(get(standard, cudaMemPoolAttrReservedMemHigh) >= get(standard, cudaMemPoolAttrUsedMemHigh));

	/* A pool of our own keeps what its threshold allows. */
	cudaMemPoolProps props = {};

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = 0;
	CHECK(cudaMemPoolCreate(&own, &props));
	set(own, cudaMemPoolAttrReleaseThreshold, ~0ull);
	EXPECT(get(own, cudaMemPoolAttrReleaseThreshold) == ~0ull);
	CHECK(cudaMallocFromPoolAsync(&kept, 5 * mib, own, a));
	fill<<<8, 64, 0, a>>>(kept, 5 * mib / 4, 99);
	CHECK(cudaMallocFromPoolAsync(&q, 10 * mib, own, a));
	fill<<<8, 64, 0, a>>>(q, 10 * mib / 4, 3);
	check<<<8, 64, 0, a>>>(q, 10 * mib / 4, 3, wrong);
	CHECK(cudaFreeAsync(q, a));
	CHECK(cudaStreamSynchronize(a));
	uint64_t used = get(own, cudaMemPoolAttrUsedMemCurrent), reserved = get(own, cudaMemPoolAttrReservedMemCurrent);

	EXPECT(used >= 5 * mib && used < 10 * mib);
	EXPECT(reserved >= 15 * mib);
	phase();
	EXPECT(get(own, cudaMemPoolAttrUsedMemCurrent) == used);
	EXPECT(get(own, cudaMemPoolAttrReservedMemCurrent) == reserved);
	EXPECT(get(own, cudaMemPoolAttrReleaseThreshold) == ~0ull);
	check<<<8, 64, 0, a>>>(kept, 5 * mib / 4, 99, wrong);
	/* What the pool kept is given again. */
	CHECK(cudaMallocFromPoolAsync(&p, 10 * mib, own, b));
	EXPECT(get(own, cudaMemPoolAttrReservedMemCurrent) == reserved);
	fill<<<8, 64, 0, b>>>(p, 10 * mib / 4, 5);
	check<<<8, 64, 0, b>>>(p, 10 * mib / 4, 5, wrong);
	CHECK(cudaFreeAsync(p, b));
	CHECK(cudaStreamSynchronize(b));
	CHECK(cudaMemPoolTrimTo(own, 0));
	/* A driver that reserves in large pieces may have nothing to give back here. */
	EXPECT(get(own, cudaMemPoolAttrReservedMemCurrent) <= reserved);
	EXPECT(get(own, cudaMemPoolAttrReservedMemHigh) >= reserved);
	set(own, cudaMemPoolAttrReservedMemHigh, 0);
	EXPECT(get(own, cudaMemPoolAttrReservedMemHigh) == get(own, cudaMemPoolAttrReservedMemCurrent));
	flag = 0;
	CHECK(cudaMemPoolSetAttribute(own, cudaMemPoolReuseAllowInternalDependencies, &flag));
	flag = -1;
	CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolReuseAllowInternalDependencies, &flag));
	EXPECT(flag == 0);

	/* The device's current pool; what is allocated from a pool outlives it. */
	CHECK(cudaDeviceSetMemPool(0, own));
	CHECK(cudaDeviceGetMemPool(&current, 0));
	EXPECT(current == own);
	CHECK(cudaMallocAsync(&last, mib, a));
	fill<<<8, 64, 0, a>>>(last, mib / 4, 123);
	CHECK(cudaStreamSynchronize(a));
	EXPECT(get(own, cudaMemPoolAttrUsedMemCurrent) >= used + mib);
	CHECK(cudaMemPoolDestroy(own));
	CHECK(cudaDeviceGetMemPool(&current, 0));
	EXPECT(current == standard);
	check<<<8, 64, 0, a>>>(last, mib / 4, 123, wrong);

	/* Either kind of memory may be freed either way. */
	CHECK(cudaStreamSynchronize(a));
	CHECK(cudaFree(last));
	CHECK(cudaMalloc(&p, mib));
	CHECK(cudaFreeAsync(p, a));
	CHECK(cudaFreeAsync(kept, a));
	CHECK(cudaDeviceSynchronize());

	cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
	cudaMemLocation location = {};

	location.type = cudaMemLocationTypeDevice;
	location.id = 0;
	CHECK(cudaMemPoolGetAccess(&access, standard, &location));
	EXPECT(access == cudaMemAccessFlagsProtReadWrite);

	/* More than there is, again and again: every time the last one's memory is there. */
	size_t free_bytes, total;

	CHECK(cudaMemGetInfo(&free_bytes, &total));
	EXPECT_ERROR(cudaMallocAsync(&p, total * 2, a), cudaErrorMemoryAllocation);
	(void)cudaGetLastError();
	EXPECT_ERROR(cudaFreeAsync((void *)0x1234500, a), cudaErrorInvalidValue);
	EXPECT(cudaMemPoolDestroy(standard) != cudaSuccess);
	(void)cudaGetLastError();

	CHECK(cudaMemcpy(&host_wrong, wrong, 4, cudaMemcpyDeviceToHost));
	EXPECT(host_wrong == 0);
	printf("wrong words: %u\n", host_wrong);
	return finish();
}
