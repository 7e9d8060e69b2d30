/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools, stream-ordered allocation, virtual memory management. */
#include "driver.h"

CASE(async)
{
	CUdeviceptr p = 0, q = 0;
	CUstream stream;
	start();
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuMemAllocAsync, &p, 1000, stream);
	YES("aligned", p && p % 256 == 0);
	CALL(cuMemsetD8Async, p, 5, 1000, stream);
	CALL(cuMemAllocAsync_ptsz, &q, 1000, NULL);
	YES("apart", p != q);
	CONTENT("bytes", p, 16);
	CALL(cuMemFreeAsync, p, stream);
	CALL(cuMemFreeAsync_ptsz, q, NULL);
	CALL(cuStreamSynchronize, stream);
	CALL(cuMemAllocAsync, &p, 0, stream);
	CALL(cuMemAllocAsync, NULL, 100, stream);
	CALL(cuMemAllocAsync, &p, (size_t)1 << 50, stream);
	CALL(cuMemFreeAsync, 0x1234, stream);
	CALL(cuMemFreeAsync, 0, stream);
	QUIET(cuMemAllocAsync, &p, 1000, stream);
	CALL(cuMemFree_v2, p);
}

static CUmemPoolProps props(void)
{
	CUmemPoolProps p;
	memset(&p, 0, sizeof(p));
	p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return p;
}

CASE(pools)
{
	CUmemoryPool pool = NULL, got = NULL, standard = NULL;
	CUmemPoolProps p = props();
	CUdeviceptr d = 0;
	CUmemAccessDesc access;
	CUmemAccess_flags flags = (CUmemAccess_flags)77;
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	start();
	CALL(cuDeviceGetDefaultMemPool, &standard, 0);
	YES("some", standard != NULL);
	CALL(cuDeviceGetMemPool, &got, 0);
	YES("the same", got == standard);
	CALL(cuMemPoolCreate, &pool, &p);
	YES("another", pool && pool != standard);
	CALL(cuMemAllocFromPoolAsync, &d, 1000, pool, NULL);
	CALL(cuMemFreeAsync, d, NULL);
	CALL(cuMemAllocFromPoolAsync_ptsz, &d, 1000, pool, NULL);
	CALL(cuMemFreeAsync_ptsz, d, NULL);
	CALL(cuMemPoolGetAccess, &flags, pool, &location);
	NUMBER("access", flags);
	memset(&access, 0, sizeof(access));
	access.location = location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CALL(cuMemPoolSetAccess, pool, &access, 1);
	CALL(cuMemPoolSetAccess, pool, NULL, 1);
	CALL(cuMemPoolTrimTo, pool, 0);
	CALL(cuDeviceSetMemPool, 0, pool);
	CALL(cuDeviceGetMemPool, &got, 0);
	YES("the new one", got == pool);
	CALL(cuDeviceSetMemPool, 0, standard);
	CALL(cuMemPoolDestroy, pool);
	CALL(cuMemPoolDestroy, standard);
	CALL(cuMemPoolDestroy, NULL);
	CALL(cuMemPoolCreate, NULL, &p);
	CALL(cuMemPoolCreate, &pool, NULL);
	p.location.id = 999;
	CALL(cuMemPoolCreate, &pool, &p);
	CALL(cuDeviceGetDefaultMemPool, NULL, 0);
	CALL(cuDeviceGetDefaultMemPool, &got, 999);
	CALL(cuDeviceGetMemPool, NULL, 0);
	CALL(cuDeviceSetMemPool, 0, NULL);
}

CASE(by_location)
{
	CUmemoryPool pool = NULL, got = NULL, standard = NULL;
	CUmemPoolProps p = props();
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	start();
	QUIET(cuDeviceGetDefaultMemPool, &standard, 0);
	QUIET(cuMemPoolCreate, &pool, &p);
	CALL(cuMemGetDefaultMemPool, &got, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	YES("the default one", got == standard);
	CALL(cuMemGetMemPool, &got, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	YES("the default one", got == standard);
	CALL(cuMemSetMemPool, &location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
	CALL(cuMemGetMemPool, &got, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	YES("the new one", got == pool);
	CALL(cuMemGetMemPool, NULL, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	CALL(cuMemGetDefaultMemPool, &got, NULL, CU_MEM_ALLOCATION_TYPE_PINNED);
}

CASE(pool_attributes)
{
	static const struct {
		CUmemPool_attribute attribute;
		const char *name;
	} all[] = {
		{CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, "follow events"},
		{CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, "opportunistic"},
		{CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, "internal dependencies"},
	};
	CUmemoryPool pool = NULL;
	CUmemPoolProps p = props();
	CUdeviceptr d = 0;
	cuuint64_t value = 77;
	int flag;
	start();
	QUIET(cuMemPoolCreate, &pool, &p);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		flag = 77;
		CALL(cuMemPoolGetAttribute, pool, all[i].attribute, &flag);
		NUMBER(all[i].name, flag);
		flag = 0;
		CALL(cuMemPoolSetAttribute, pool, all[i].attribute, &flag);
		flag = 77;
		CALL(cuMemPoolGetAttribute, pool, all[i].attribute, &flag);
		NUMBER(all[i].name, flag);
	}
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	NUMBER("threshold", (long long)value);
	value = 1 << 30;
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	value = 77;
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	NUMBER("threshold", (long long)value);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	NUMBER("used", (long long)value);
	QUIET(cuMemAllocFromPoolAsync, &d, 1 << 20, pool, NULL);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	NUMBER("used", (long long)value);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
	YES("at least", value >= 1 << 20);
	QUIET(cuMemFreeAsync, d, NULL);
	QUIET(cuCtxSynchronize);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	NUMBER("used", (long long)value);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
	NUMBER("most", (long long)value);
	value = 0;
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
	NUMBER("most", (long long)value);
	CALL(cuMemPoolTrimTo, pool, 0);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
	NUMBER("reserved", (long long)value);
	value = 5;
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	CALL(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)99, &value);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL);
}

static CUmemAllocationProp prop(void)
{
	CUmemAllocationProp p;
	memset(&p, 0, sizeof(p));
	p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return p;
}

CASE(virtual)
{
	const size_t unit = 2 << 20;
	CUmemAllocationProp p = prop(), got;
	CUmemGenericAllocationHandle handle = 0, again = 0;
	CUdeviceptr d = 0;
	CUmemAccessDesc access;
	unsigned long long flags = 77;
	size_t size = 77;
	start();
	CALL(cuMemGetAllocationGranularity, &size, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	NUMBER("size", (long long)size);
	CALL(cuMemGetAllocationGranularity, &size, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	NUMBER("size", (long long)size);
	CALL(cuMemAddressReserve, &d, 4 * unit, 0, 0, 0);
	YES("aligned", d % unit == 0);
	CALL(cuMemCreate, &handle, 2 * unit, &p, 0);
	memset(&got, 0xee, sizeof(got));
	CALL(cuMemGetAllocationPropertiesFromHandle, &got, handle);
	NUMBER("type", got.type);
	NUMBER("location", got.location.type);
	NUMBER("device", got.location.id);
	CALL(cuMemMap, d, 2 * unit, 0, handle, 0);
	memset(&access, 0, sizeof(access));
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CALL(cuMemSetAccess, d, 2 * unit, &access, 1);
	CALL(cuMemGetAccess, &flags, &access.location, d);
	NUMBER("access", (long long)flags);
	CALL(cuMemsetD8_v2, d + unit - 4, 7, 8);
	CONTENT("bytes", d + unit - 4, 8);
	CALL(cuMemRetainAllocationHandle, &again, (void *)d);
	YES("the same", again == handle);
	CALL(cuMemRelease, again);
	CALL(cuMemRelease, handle);
	CONTENT("bytes", d + unit - 4, 8);
	CALL(cuMemUnmap, d, 2 * unit);
	CALL(cuMemsetD8_v2, d, 7, 8);
	CALL(cuMemAddressFree, d, 4 * unit);
}

CASE(virtual_wrong)
{
	const size_t unit = 2 << 20;
	CUmemAllocationProp p = prop();
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr d = 0;
	CUmemAccessDesc access;
	unsigned long long flags = 77;
	size_t size = 77;
	start();
	CALL(cuMemAddressReserve, &d, 100, 0, 0, 0);
	CALL(cuMemAddressReserve, &d, 0, 0, 0, 0);
	CALL(cuMemAddressReserve, NULL, unit, 0, 0, 0);
	CALL(cuMemAddressReserve, &d, unit, 3, 0, 0);
	CALL(cuMemCreate, &handle, 100, &p, 0);
	CALL(cuMemCreate, &handle, 0, &p, 0);
	CALL(cuMemCreate, NULL, unit, &p, 0);
	CALL(cuMemCreate, &handle, unit, NULL, 0);
	CALL(cuMemCreate, &handle, unit, &p, 1);
	p.location.id = 999;
	CALL(cuMemCreate, &handle, unit, &p, 0);
	p.location.id = 0;
	CALL(cuMemGetAllocationGranularity, NULL, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	CALL(cuMemGetAllocationGranularity, &size, &p, (CUmemAllocationGranularity_flags)9);
	QUIET(cuMemAddressReserve, &d, 2 * unit, 0, 0, 0);
	QUIET(cuMemCreate, &handle, unit, &p, 0);
	CALL(cuMemMap, d, unit, 4096, handle, 0);
	CALL(cuMemMap, d, 2 * unit, 0, handle, 0);
	CALL(cuMemMap, d + 4096, unit, 0, handle, 0);
	CALL(cuMemMap, d, unit, 0, handle, 1);
	CALL(cuMemMap, d, unit, 0, handle, 0);
	CALL(cuMemMap, d, unit, 0, handle, 0);
	memset(&access, 0, sizeof(access));
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CALL(cuMemGetAccess, &flags, &access.location, d);
	NUMBER("access", (long long)flags);
	CALL(cuMemSetAccess, d, 2 * unit, &access, 1);
	CALL(cuMemSetAccess, d, unit, &access, 0);
	CALL(cuMemUnmap, d, 4096);
	CALL(cuMemAddressFree, d, 2 * unit);
	CALL(cuMemUnmap, d, unit);
	CALL(cuMemUnmap, d, unit);
	CALL(cuMemAddressFree, d, unit);
	CALL(cuMemAddressFree, d, 2 * unit);
	CALL(cuMemRelease, handle);
	CALL(cuMemRelease, handle);
}

CASE(pool_created)
{
	CUmemoryPool pool = NULL, other = NULL;
	CUmemPoolProps p = props();
	CUdeviceptr d = 0;
	start();
	CALL(cuMemPoolCreate, &pool, &p);
	YES("some", pool != NULL);
	CALL(cuMemPoolCreate, &other, &p);
	YES("another", other && other != pool);
	CALL(cuMemAllocFromPoolAsync, &d, 1000, pool, NULL);
	CALL(cuMemPoolDestroy, pool);
	QUIET(cuMemsetD8Async, d, 3, 1000, NULL);
	CONTENT("bytes", d, 16);
	CALL(cuMemFreeAsync, d, NULL);
	CALL(cuCtxSynchronize);
	p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	CALL(cuMemPoolCreate, &pool, &p);
	CALL(cuMemPoolCreate, NULL, &p);
}

CASE(pool_attribute)
{
	CUmemoryPool pool = NULL;
	CUmemPoolProps p = props();
	cuuint64_t value = 1 << 20;
	int flag = 0;
	start();
	QUIET(cuMemPoolCreate, &pool, &p);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	value = 77;
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	NUMBER("threshold", (long long)value);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag);
	flag = 77;
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag);
	NUMBER("opportunistic", flag);
	value = 5;
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
	CALL(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)99, &value);
}

CASE(virtual_parts)
{
	const size_t unit = 2 << 20;
	CUmemAllocationProp p = prop();
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr d = 0;
	start();
	QUIET(cuMemAddressReserve, &d, 4 * unit, 0, 0, 0);
	QUIET(cuMemCreate, &handle, 2 * unit, &p, 0);
	CALL(cuMemMap, d, unit, 0, handle, 0);
	CALL(cuMemMap, d, unit, unit, handle, 0);
	CALL(cuMemMap, d, 3 * unit, 0, handle, 0);
	CALL(cuMemMap, d, 2 * unit, 0, handle, 0);
	CALL(cuMemUnmap, d, 2 * unit);
	CALL(cuMemUnmap, d, 2 * unit);
	CALL(cuMemUnmap, d + unit, unit);
	CALL(cuMemUnmap, d, 4 * unit);
	CALL(cuMemUnmap, d, 5 * unit);
	CALL(cuMemUnmap, d + 4096, unit);
	CALL(cuMemUnmap, 0, unit);
	CALL(cuMemRelease, handle);
	CALL(cuMemAddressFree, d, 4 * unit);
	CALL(cuMemUnmap, d, 2 * unit);
}

CASE(nothing)
{
	CUmemoryPool pool = NULL;
	CUmemPoolProps p = props();
	CUdeviceptr d = 8;
	start();
	QUIET(cuMemPoolCreate, &pool, &p);
	CALL(cuMemAllocAsync, &d, 0, NULL);
	YES("null", d == 0);
	d = 8;
	CALL(cuMemAllocFromPoolAsync, &d, 0, pool, NULL);
	YES("null", d == 0);
	CALL(cuMemFreeAsync, 0, NULL);
}

CASE(places_wrong)
{
	CUmemoryPool pool = NULL;
	CUmemPoolProps p = props();
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 999};
	start();
	CALL(cuMemGetMemPool, &pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	CALL(cuMemGetDefaultMemPool, &pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	location.type = (CUmemLocationType)77;
	CALL(cuMemGetMemPool, &pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
	location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	location.id = 0;
	CALL(cuMemGetMemPool, &pool, &location, (CUmemAllocationType)77);
	p.location.id = -1;
	CALL(cuMemPoolCreate, &pool, &p);
	p = props();
	p.location.type = (CUmemLocationType)77;
	CALL(cuMemPoolCreate, &pool, &p);
}
