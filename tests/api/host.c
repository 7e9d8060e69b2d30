/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the driver knows, and what it tells of pointers. */
#include "driver.h"

CASE(alloc)
{
	unsigned flags = 77;
	void *p = NULL, *q = NULL;
	CUdeviceptr d = 1;
	start();
	CALL(cuMemAllocHost_v2, &p, 1000);
	YES("some", p != NULL);
	memset(p, 3, 1000);
	CALL(cuMemHostGetFlags, &flags, p);
	HEX("flags", flags);
	CALL(cuMemHostGetDevicePointer_v2, &d, p, 0);
	YES("the same address", d == (CUdeviceptr)(uintptr_t)p);
	CALL(cuMemHostAlloc, &q, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	CALL(cuMemHostGetFlags, &flags, q);
	HEX("flags", flags);
	CALL(cuMemHostGetDevicePointer_v2, &d, (char *)q + 16, 0);
	YES("the same address", d == (CUdeviceptr)(uintptr_t)q + 16);
	CALL(cuMemFreeHost, p);
	CALL(cuMemFreeHost, q);
	CALL(cuMemHostAlloc, &q, 4096, CU_MEMHOSTALLOC_WRITECOMBINED);
	CALL(cuMemHostGetFlags, &flags, q);
	HEX("flags", flags);
	CALL(cuMemFreeHost, q);
}

CASE(alloc_wrong)
{
	unsigned flags = 77;
	static int plain[4];
	void *p = (void *)8;
	CUdeviceptr d = 1;
	start();
	CALL(cuMemAllocHost_v2, NULL, 100);
	CALL(cuMemAllocHost_v2, &p, 0);
	CALL(cuMemHostAlloc, &p, 100, 0x80);
	CALL(cuMemHostAlloc, NULL, 100, 0);
	CALL(cuMemHostAlloc, &p, 0, 0);
	CALL(cuMemFreeHost, plain);
	CALL(cuMemFreeHost, NULL);
	CALL(cuMemHostGetFlags, &flags, plain);
	NUMBER("flags", flags);
	CALL(cuMemHostGetFlags, NULL, plain);
	CALL(cuMemHostGetDevicePointer_v2, &d, plain, 0);
	QUIET(cuMemAllocHost_v2, &p, 100);
	CALL(cuMemHostGetDevicePointer_v2, &d, p, 1);
	CALL(cuMemHostGetDevicePointer_v2, NULL, p, 0);
}

CASE(registered)
{
	char *p = (char *)aligned_alloc(4096, 16384);
	unsigned flags = 77;
	CUdeviceptr d;
	memset(p, 1, 16384);
	start();
	d = memory(64);
	CALL(cuMemHostRegister_v2, p, 8192, CU_MEMHOSTREGISTER_PORTABLE);
	CALL(cuMemHostGetFlags, &flags, p);
	HEX("flags", flags);
	CALL(cuMemcpyHtoDAsync_v2, d, p, 16, NULL);
	CONTENT("bytes", d, 20);
	CALL(cuMemHostRegister_v2, p, 8192, 0);
	CALL(cuMemHostRegister_v2, p + 4096, 8192, 0);
	CALL(cuMemHostUnregister, p + 4096);
	CALL(cuMemHostUnregister, p);
	CALL(cuMemHostUnregister, p);
	CALL(cuMemHostRegister, p, 4096, 0);
	CALL(cuMemHostUnregister, p);
	CALL(cuMemHostRegister_v2, NULL, 4096, 0);
	CALL(cuMemHostRegister_v2, p, 0, 0);
	CALL(cuMemHostRegister_v2, p, 4096, 0x80);
	CALL(cuMemHostUnregister, NULL);
}

/* The address at which the device has registered memory. */
CASE(registered_address)
{
	char *p = (char *)aligned_alloc(4096, 8192);
	CUdeviceptr d = 1;
	int can = -7;
	start();
	CALL(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0);
	NUMBER("can", can);
	CALL(cuMemHostRegister_v2, p, 8192, CU_MEMHOSTREGISTER_DEVICEMAP);
	CALL(cuMemHostGetDevicePointer_v2, &d, p, 0);
	YES("the same address", d == (CUdeviceptr)(uintptr_t)p);
	CALL(cuMemHostUnregister, p);
}

static void range(CUdeviceptr p, CUdeviceptr begin)
{
	CUdeviceptr base = 1;
	size_t size = 77;
	CALL(cuMemGetAddressRange_v2, &base, &size, p);
	YES("the beginning", base == begin);
	NUMBER("size", size);
}

/* Memory of the host has a range as the device's has: its beginning and how much was asked for. */
CASE(address_range)
{
	char *plain = (char *)aligned_alloc(4096, 16384);
	void *p = NULL, *q = NULL;
	start();
	CALL(cuMemAllocHost_v2, &p, 1000);
	range((CUdeviceptr)(uintptr_t)p, (CUdeviceptr)(uintptr_t)p);
	range((CUdeviceptr)(uintptr_t)p + 999, (CUdeviceptr)(uintptr_t)p);
	range((CUdeviceptr)(uintptr_t)p + 1000, (CUdeviceptr)(uintptr_t)p);
	CALL(cuMemHostAlloc, &q, 40, CU_MEMHOSTALLOC_DEVICEMAP);
	range((CUdeviceptr)(uintptr_t)q + 4, (CUdeviceptr)(uintptr_t)q);
	CALL(cuMemFreeHost, q);
	range((CUdeviceptr)(uintptr_t)q, (CUdeviceptr)(uintptr_t)q);
	range((CUdeviceptr)(uintptr_t)plain, (CUdeviceptr)(uintptr_t)plain);
	CALL(cuMemHostRegister_v2, plain + 4096, 8192, CU_MEMHOSTREGISTER_PORTABLE);
	range((CUdeviceptr)(uintptr_t)plain + 5000, (CUdeviceptr)(uintptr_t)plain + 4096);
	range((CUdeviceptr)(uintptr_t)plain, (CUdeviceptr)(uintptr_t)plain);
	CALL(cuMemHostUnregister, plain + 4096);
	range((CUdeviceptr)(uintptr_t)plain + 5000, (CUdeviceptr)(uintptr_t)plain + 4096);
}

static void pointer(CUdeviceptr p, CUcontext context)
{
	CUcontext got = (CUcontext)8;
	CUmemorytype type = (CUmemorytype)77;
	CUdeviceptr device = 1, start_address = 1;
	void *host = (void *)8;
	unsigned managed = 77, sync = 77, mapped = 77;
	int ordinal = -7;
	size_t size = 77;
	unsigned long long id = 77;
	CALL(cuPointerGetAttribute, &got, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	YES("the current one", got == context);
	YES("null", got == NULL);
	CALL(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	NUMBER("type", type);
	CALL(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p);
	YES("the same", device == p);
	CALL(cuPointerGetAttribute, &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p);
	YES("the same", (CUdeviceptr)(uintptr_t)host == p);
	CALL(cuPointerGetAttribute, &sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	NUMBER("sync", sync);
	CALL(cuPointerGetAttribute, &id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
	YES("changed", id != 77);
	CALL(cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
	NUMBER("managed", managed);
	CALL(cuPointerGetAttribute, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	NUMBER("device", ordinal);
	CALL(cuPointerGetAttribute, &start_address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p);
	YES("below", start_address != 1 && start_address <= p);
	CALL(cuPointerGetAttribute, &size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
	NUMBER("size", (long long)size);
	CALL(cuPointerGetAttribute, &mapped, CU_POINTER_ATTRIBUTE_MAPPED, p);
	NUMBER("mapped", mapped & 0xff);
}

CASE(pointer_device)
{
	CUcontext context = start();
	CUdeviceptr p = memory(1000);
	pointer(p + 10, context);
	QUIET(cuMemFree_v2, p);
	pointer(p + 10, context);
}

CASE(pointer_host)
{
	CUcontext context = start();
	void *p = NULL;
	static int plain[4];
	QUIET(cuMemAllocHost_v2, &p, 1000);
	pointer((CUdeviceptr)(uintptr_t)p + 8, context);
	pointer((CUdeviceptr)(uintptr_t)plain, context);
}

CASE(pointer_managed)
{
	CUcontext context = start();
	CUdeviceptr p = 0;
	QUIET(cuMemAllocManaged, &p, 4096, CU_MEM_ATTACH_GLOBAL);
	pointer(p, context);
}

CASE(pointer_several)
{
	CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
	unsigned type = 77, managed = 77;
	int ordinal = -7;
	CUdeviceptr device = 1, p;
	void *data[] = {&type, &ordinal, &managed, &device};
	static int plain[4];
	start();
	p = memory(64);
	CALL(cuPointerGetAttributes, 4, attributes, data, p);
	NUMBER("type", type);
	NUMBER("device", ordinal);
	NUMBER("managed", managed);
	YES("the same", device == p);
	CALL(cuPointerGetAttributes, 4, attributes, data, (CUdeviceptr)(uintptr_t)plain);
	NUMBER("type", type);
	NUMBER("device", ordinal);
	NUMBER("managed", managed);
	CALL(cuPointerGetAttributes, 0, attributes, data, p);
	CALL(cuPointerGetAttributes, 4, NULL, data, p);
	CALL(cuPointerGetAttributes, 4, attributes, NULL, p);
}

CASE(pointer_set)
{
	unsigned value = 1, got = 77;
	CUdeviceptr p;
	start();
	p = memory(64);
	CALL(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	CALL(cuPointerGetAttribute, &got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	NUMBER("sync", got);
	CALL(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	CALL(cuPointerSetAttribute, NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	CALL(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1234);
	CALL(cuPointerGetAttribute, NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	CALL(cuPointerGetAttribute, &value, (CUpointer_attribute)99, p);
}

/* What was advised. */
CASE(ranges)
{
	CUdeviceptr p = 0;
	int mostly = -7, preferred = -77, last = -77, by[2] = {-77, -77};
	void *data[] = {&mostly, &preferred, by, &last};
	size_t sizes[] = {4, 4, 8, 4};
	CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
		CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
		CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
	start();
	QUIET(cuMemAllocManaged, &p, 1 << 20, CU_MEM_ATTACH_GLOBAL);
	CALL(cuMemRangeGetAttributes, data, sizes, attributes, 4, p, 1 << 20);
	NUMBER("read mostly", mostly);
	NUMBER("preferred", preferred);
	NUMBER("by", by[0]);
	NUMBER("by", by[1]);
	NUMBER("last", last);
	QUIET(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	CALL(cuMemRangeGetAttribute, &mostly, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 1 << 20);
	NUMBER("read mostly", mostly);
	QUIET(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0);
	CALL(cuMemRangeGetAttribute, &mostly, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 1 << 20);
	NUMBER("read mostly", mostly);
	QUIET(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
	CALL(cuMemRangeGetAttribute, &preferred, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p,
		1 << 20);
	NUMBER("preferred", preferred);
	QUIET(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0);
	CALL(cuMemRangeGetAttribute, &preferred, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p,
		1 << 20);
	NUMBER("preferred", preferred);
	QUIET(cuMemAdvise, p, 1 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU);
	CALL(cuMemRangeGetAttribute, by, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 1 << 20);
	NUMBER("by", by[0]);
	NUMBER("by", by[1]);
	CALL(cuMemRangeGetAttribute, &mostly, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 1 << 20);
	CALL(cuMemRangeGetAttribute, NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 1 << 20);
	CALL(cuMemRangeGetAttribute, &mostly, 4, (CUmem_range_attribute)99, p, 1 << 20);
	CALL(cuMemRangeGetAttribute, &mostly, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0x1000, 4096);
	CALL(cuMemRangeGetAttribute, &mostly, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 0);
	CALL(cuMemRangeGetAttributes, data, sizes, attributes, 0, p, 1 << 20);
	CALL(cuMemRangeGetAttributes, NULL, sizes, attributes, 4, p, 1 << 20);
}

CASE(batches)
{
	CUdeviceptr p[2] = {0, 0};
	size_t sizes[2] = {1 << 20, 4096}, at[1] = {0};
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUstream stream;
	start();
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuMemAllocManaged, &p[0], 1 << 20, CU_MEM_ATTACH_GLOBAL);
	QUIET(cuMemAllocManaged, &p[1], 4096, CU_MEM_ATTACH_GLOBAL);
	memset((void *)p[0], 1, 1 << 20);
	CALL(cuMemPrefetchBatchAsync, p, sizes, 2, &location, at, 1, 0, stream);
	CALL(cuMemPrefetchBatchAsync_ptsz, p, sizes, 2, &location, at, 1, 0, stream);
	CONTENT("bytes", p[0], 16);
	CALL(cuMemDiscardBatchAsync, p, sizes, 2, 0, stream);
	CALL(cuMemDiscardBatchAsync_ptsz, p, sizes, 2, 0, stream);
	CALL(cuMemDiscardAndPrefetchBatchAsync, p, sizes, 2, &location, at, 1, 0, stream);
	CALL(cuMemDiscardAndPrefetchBatchAsync_ptsz, p, sizes, 2, &location, at, 1, 0, stream);
	CALL(cuStreamSynchronize, stream);
	CALL(cuMemPrefetchBatchAsync, p, sizes, 0, &location, at, 1, 0, stream);
	CALL(cuMemPrefetchBatchAsync, p, sizes, 2, &location, at, 1, 1, stream);
	CALL(cuMemPrefetchBatchAsync, NULL, sizes, 2, &location, at, 1, 0, stream);
	CALL(cuMemDiscardBatchAsync, p, sizes, 0, 0, stream);
	CALL(cuMemDiscardBatchAsync, p, sizes, 2, 1, stream);
}

CASE(flags)
{
	unsigned flags = 77;
	void *p = NULL;
	start();
	QUIET(cuMemAllocHost_v2, &p, 1000);
	CALL(cuMemHostGetFlags, &flags, p);
	HEX("flags", flags);
	QUIET(cuMemHostAlloc, &p, 4096, CU_MEMHOSTALLOC_WRITECOMBINED);
	CALL(cuMemHostGetFlags, &flags, p);
	HEX("flags", flags);
}
