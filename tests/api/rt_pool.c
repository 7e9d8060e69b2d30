/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's memory pools and stream-ordered allocation. */
#include "runtime.h"

static struct cudaMemPoolProps props(void)
{
	struct cudaMemPoolProps p;
	memset(&p, 0, sizeof(p));
	p.allocType = cudaMemAllocationTypePinned;
	p.location.type = cudaMemLocationTypeDevice;
	return p;
}

static cudaMemPool_t new_pool(void)
{
	struct cudaMemPoolProps p = props();
	cudaMemPool_t pool = NULL;
	QUIET(cudaMemPoolCreate, &pool, &p);
	return pool;
}

CASE(async)
{
	void *p = NULL, *q = NULL;
	cudaStream_t s = new_stream();
	CALL(cudaMallocAsync, &p, 1000, s);
	YES("aligned", p && (uintptr_t)p % 256 == 0);
	QUIET(cudaMemsetAsync, p, 5, 1000, s);
	CALL_AS(cudaMallocAsync, cudaMallocAsync_ptsz, &q, 1000, NULL);
	YES("apart", q && p != q);
	CONTENT("bytes", p, 16);
	CALL(cudaFreeAsync, p, s);
	CALL_AS(cudaFreeAsync, cudaFreeAsync_ptsz, q, NULL);
	CALL(cudaStreamSynchronize, s);
	CALL(cudaMallocAsync, &p, (size_t)1 << 50, s);
	CALL(cudaFreeAsync, (void *)0x1234, s);
	CALL(cudaGetLastError);
	QUIET(cudaMallocAsync, &p, 1000, s);
	CALL(cudaFree, p);
}

CASE(async_nothing)
{
	void *p = (void *)8;
	cudaStream_t s = new_stream();
	CALL(cudaMallocAsync, NULL, 100, s);
	CALL(cudaFreeAsync, NULL, s);
	CALL(cudaMallocAsync, &p, 0, s);
	YES("null", p == NULL);
	CALL(cudaGetLastError);
}

CASE(pool)
{
	cudaMemPool_t pool = NULL, got = NULL, standard = NULL;
	struct cudaMemPoolProps p = props();
	void *d = NULL;
	struct cudaMemAccessDesc access;
	enum cudaMemAccessFlags flags = (enum cudaMemAccessFlags)77;
	struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice};
	CALL(cudaDeviceGetDefaultMemPool, &standard, 0);
	YES("some", standard != NULL);
	CALL(cudaDeviceGetMemPool, &got, 0);
	YES("the same", got == standard);
	CALL(cudaMemPoolCreate, &pool, &p);
	YES("another", pool && pool != standard);
	CALL(cudaMallocFromPoolAsync, &d, 1000, pool, NULL);
	YES("aligned", d && (uintptr_t)d % 256 == 0);
	QUIET(cudaMemset, d, 3, 1000);
	CONTENT("bytes", d, 16);
	CALL(cudaFreeAsync, d, NULL);
	CALL_AS(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz, &d, 1000, pool, NULL);
	YES("aligned", d && (uintptr_t)d % 256 == 0);
	CALL_AS(cudaFreeAsync, cudaFreeAsync_ptsz, d, NULL);
	CALL(cudaMemPoolGetAccess, &flags, pool, &location);
	NUMBER("access", flags);
	memset(&access, 0, sizeof(access));
	access.location = location;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CALL(cudaMemPoolSetAccess, pool, &access, 1);
	CALL(cudaMemPoolTrimTo, pool, 0);
	CALL(cudaDeviceSetMemPool, 0, pool);
	CALL(cudaDeviceGetMemPool, &got, 0);
	YES("the new one", got == pool);
	CALL(cudaMallocAsync, &d, 1000, NULL);
	CALL(cudaFreeAsync, d, NULL);
	CALL(cudaDeviceSetMemPool, 0, standard);
	CALL(cudaMemPoolDestroy, pool);
	CALL(cudaGetLastError);
}

CASE(pool_wrong)
{
	cudaMemPool_t pool = new_pool(), got = NULL, standard = NULL;
	struct cudaMemPoolProps p = props();
	void *d = NULL;
	struct cudaMemAccessDesc access;
	QUIET(cudaDeviceGetDefaultMemPool, &standard, 0);
	memset(&access, 0, sizeof(access));
	access.location = p.location;
	access.flags = cudaMemAccessFlagsProtNone;
	CALL(cudaMemPoolSetAccess, pool, &access, 1);
	access.location.id = 999;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CALL(cudaMemPoolSetAccess, pool, &access, 1);
	CALL(cudaMallocFromPoolAsync, &d, (size_t)1 << 50, pool, NULL);
	CALL(cudaMallocFromPoolAsync, NULL, 100, pool, NULL);
	CALL(cudaMemPoolDestroy, standard);
	CALL(cudaDeviceGetDefaultMemPool, &got, 999);
	CALL(cudaDeviceGetDefaultMemPool, &got, -1);
	CALL(cudaDeviceGetDefaultMemPool, NULL, 0);
	CALL(cudaDeviceGetMemPool, &got, 999);
	CALL(cudaDeviceGetMemPool, NULL, 0);
	CALL(cudaDeviceSetMemPool, 999, pool);
	CALL(cudaMemPoolCreate, NULL, &p);
	p.maxSize = (size_t)1 << 20;
	CALL(cudaMemPoolCreate, &got, &p);
	p = props();
	p.allocType = cudaMemAllocationTypeInvalid;
	CALL(cudaMemPoolCreate, &got, &p);
	CALL(cudaGetLastError);
}

CASE(pool_device)
{
	cudaMemPool_t pool = NULL;
	struct cudaMemPoolProps p = props();
	p.location.id = 999;
	CALL(cudaMemPoolCreate, &pool, &p);
	CALL(cudaGetLastError);
}

CASE(pool_null)
{
	cudaMemPool_t pool = NULL;
	CALL(cudaFree, NULL);
	CALL(cudaMemPoolDestroy, NULL);
	CALL(cudaDeviceSetMemPool, 0, NULL);
	CALL(cudaMemPoolTrimTo, NULL, 0);
	CALL(cudaMemPoolCreate, &pool, NULL);
}

CASE(by_location)
{
	cudaMemPool_t pool = new_pool(), got = NULL, standard = NULL;
	struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice};
	QUIET(cudaDeviceGetDefaultMemPool, &standard, 0);
	CALL(cudaMemGetDefaultMemPool, &got, &location, cudaMemAllocationTypePinned);
	YES("the default one", got == standard);
	CALL(cudaMemGetMemPool, &got, &location, cudaMemAllocationTypePinned);
	YES("the default one", got == standard);
	CALL(cudaMemSetMemPool, &location, cudaMemAllocationTypePinned, pool);
	CALL(cudaMemGetMemPool, &got, &location, cudaMemAllocationTypePinned);
	YES("the new one", got == pool);
	CALL(cudaDeviceGetMemPool, &got, 0);
	YES("the new one", got == pool);
	location.id = 999;
	CALL(cudaMemGetMemPool, &got, &location, cudaMemAllocationTypePinned);
	CALL(cudaMemGetDefaultMemPool, &got, &location, cudaMemAllocationTypePinned);
	CALL(cudaMemSetMemPool, &location, cudaMemAllocationTypePinned, pool);
	CALL(cudaGetLastError);
}

CASE(attributes)
{
	static const struct {
		enum cudaMemPoolAttr attribute;
		const char *name;
	} all[] = {
		{cudaMemPoolReuseFollowEventDependencies, "follow events"},
		{cudaMemPoolReuseAllowOpportunistic, "opportunistic"},
		{cudaMemPoolReuseAllowInternalDependencies, "internal dependencies"},
	};
	cudaMemPool_t pool = new_pool();
	void *d = NULL;
	unsigned long long value = 77;
	int flag;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		flag = 77;
		CALL(cudaMemPoolGetAttribute, pool, all[i].attribute, &flag);
		NUMBER(all[i].name, flag);
		flag = 0;
		CALL(cudaMemPoolSetAttribute, pool, all[i].attribute, &flag);
		flag = 77;
		CALL(cudaMemPoolGetAttribute, pool, all[i].attribute, &flag);
		NUMBER(all[i].name, flag);
	}
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrReleaseThreshold, &value);
	NUMBER("threshold", (long long)value);
	value = 1 << 30;
	CALL(cudaMemPoolSetAttribute, pool, cudaMemPoolAttrReleaseThreshold, &value);
	value = 77;
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrReleaseThreshold, &value);
	NUMBER("threshold", (long long)value);
	QUIET(cudaMallocFromPoolAsync, &d, 1 << 20, pool, NULL);
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrUsedMemCurrent, &value);
	NUMBER("used", (long long)value);
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrReservedMemCurrent, &value);
	YES("at least", value >= 1 << 20);
	QUIET(cudaFreeAsync, d, NULL);
	QUIET(cudaDeviceSynchronize);
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrUsedMemCurrent, &value);
	NUMBER("used", (long long)value);
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrUsedMemHigh, &value);
	NUMBER("most", (long long)value);
	value = 0;
	CALL(cudaMemPoolSetAttribute, pool, cudaMemPoolAttrUsedMemHigh, &value);
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrUsedMemHigh, &value);
	NUMBER("most", (long long)value);
	CALL(cudaMemPoolTrimTo, pool, 0);
	CALL(cudaMemPoolGetAttribute, pool, cudaMemPoolAttrReservedMemCurrent, &value);
	NUMBER("reserved", (long long)value);
	value = 5;
	CALL(cudaMemPoolSetAttribute, pool, cudaMemPoolAttrUsedMemHigh, &value);
	CALL(cudaMemPoolSetAttribute, pool, cudaMemPoolAttrUsedMemCurrent, &value);
	CALL(cudaMemPoolGetAttribute, pool, (enum cudaMemPoolAttr)99, &value);
	CALL(cudaMemPoolSetAttribute, pool, (enum cudaMemPoolAttr)99, &value);
	CALL(cudaGetLastError);
}
