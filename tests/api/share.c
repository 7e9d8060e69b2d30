/* SPDX-License-Identifier: Apache-2.0 */
/* Events and pools shared with another process. */
#include "driver.h"
#include "other.h"

static void starts(void)
{
	start();
}

static CUevent shared_event(void)
{
	CUevent event = NULL;
	QUIET(cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	return event;
}

CASE(event_own)
{
	CUevent event = (CUevent)7, plain = NULL, opened = NULL;
	CUipcEventHandle handle, again;
	start();
	CALL(cuEventCreate, &event, CU_EVENT_INTERPROCESS);
	CALL(cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	QUIET(cuEventCreate, &plain, CU_EVENT_DISABLE_TIMING);
	CALL(cuIpcGetEventHandle, &handle, event);
	CALL(cuIpcGetEventHandle, &again, event);
	YES("the same", memcmp(&handle, &again, sizeof(handle)) == 0);
	CALL(cuIpcGetEventHandle, &again, plain);
	CALL(cuIpcGetEventHandle, NULL, event);
	CALL(cuIpcGetEventHandle, &again, NULL);
	CALL(cuIpcOpenEventHandle, &opened, handle);
	CALL(cuIpcOpenEventHandle, NULL, handle);
	CALL(cuEventRecord, event, NULL);
	CALL(cuEventSynchronize, event);
	CALL(cuEventDestroy_v2, event);
	CALL(cuIpcGetEventHandle, &again, event);
}

CASE(event_garbage)
{
	CUevent opened = NULL;
	CUipcEventHandle handle;
	start();
	memset(&handle, 0, sizeof(handle));
	CALL(cuIpcOpenEventHandle, &opened, handle);
}

static void owns_event(void)
{
	CUevent event = shared_event();
	CUipcEventHandle handle;
	MUST(cuIpcGetEventHandle, &handle, event);
	tell(&handle, sizeof(handle));
	await();
	MUST(cuEventRecord, event, NULL);
	MUST(cuCtxSynchronize);
	go();
	await();
	/* The other has recorded it. */
	MUST(cuStreamWaitEvent, NULL, event, 0);
	MUST(cuEventSynchronize, event);
	MUST(cuEventQuery, event);
	MUST(cuEventDestroy_v2, event);
	go();
	await();
}

CASE(event)
{
	CUipcEventHandle handle;
	CUevent event = NULL, again = NULL, plain = NULL;
	CUstream stream = NULL;
	float ms = 0;
	with_owner(starts, owns_event);
	start();
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuEventCreate, &plain, 0);
	hear(&handle, sizeof(handle));
	CALL(cuIpcOpenEventHandle, &event, handle);
	YES("some", event != NULL);
	CALL(cuIpcOpenEventHandle, &again, handle);
	YES("another", again != event);
	CALL(cuEventQuery, event);
	CALL(cuStreamWaitEvent, stream, event, 0);
	CALL(cuEventSynchronize, event);
	go();
	await();
	CALL(cuEventQuery, event);
	CALL(cuStreamWaitEvent, stream, event, 0);
	CALL(cuEventSynchronize, event);
	CALL(cuStreamSynchronize, stream);
	CALL(cuEventElapsedTime_v2, &ms, event, event);
	CALL(cuIpcGetEventHandle, &handle, event);
	CALL(cuEventRecord, event, stream);
	CALL(cuEventSynchronize, event);
	go();
	await();
	REMARK("the owner has destroyed it");
	CALL(cuEventQuery, event);
	CALL(cuEventRecord, event, stream);
	CALL(cuEventSynchronize, event);
	CALL(cuIpcOpenEventHandle, &again, handle);
	CALL(cuEventDestroy_v2, event);
	go();
	owner_ends();
}

/* Work of the owner's that is under way is waited for here. */
static void owns_work(void)
{
	static char host[4 << 20];
	CUevent event = shared_event();
	CUipcEventHandle events;
	CUipcMemHandle memories;
	CUdeviceptr p = memory(4 << 20);
	CUstream stream = NULL;
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	MUST(cuIpcGetEventHandle, &events, event);
	MUST(cuIpcGetMemHandle, &memories, p);
	memset(host, 0x5c, sizeof(host));
	for (int i = 0; i < 20; i++)
		MUST(cuMemcpyHtoDAsync_v2, p, host, sizeof(host), stream);
	MUST(cuMemsetD8Async, p, 0x66, 64, stream);
	MUST(cuEventRecord, event, stream);
	tell(&events, sizeof(events));
	tell(&memories, sizeof(memories));
	await();
	MUST(cuStreamWaitEvent, stream, event, 0);
	MUST(cuMemcpyDtoHAsync_v2, host, p, 64, stream);
	MUST(cuStreamSynchronize, stream);
	tell(host, 64);
	await();
}

CASE(event_orders)
{
	CUipcEventHandle events;
	CUipcMemHandle memories;
	CUevent event = NULL;
	CUdeviceptr p = 0;
	char host[64];
	with_owner(starts, owns_work);
	start();
	hear(&events, sizeof(events));
	hear(&memories, sizeof(memories));
	CALL(cuIpcOpenEventHandle, &event, events);
	CALL(cuIpcOpenMemHandle_v2, &p, memories, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	CALL(cuStreamWaitEvent, NULL, event, 0);
	CONTENT("p", p, 16);
	CALL(cuMemsetD8Async, p, 0x12, 32, NULL);
	CALL(cuEventRecord, event, NULL);
	go();
	hear(host, 64);
	BYTES("the other reads", host, 40);
	CALL(cuIpcCloseMemHandle, p);
	CALL(cuEventDestroy_v2, event);
	go();
	owner_ends();
}

static CUmemPoolProps shared_props(void)
{
	return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
}

CASE(pool_own)
{
	CUmemPoolProps props = shared_props(), local = shared_props();
	CUmemoryPool pool = NULL, plain = NULL, same = NULL;
	CUmemPoolPtrExportData data;
	CUdeviceptr p = 0, q = 0;
	int fd = -1, supported = -7;
	start();
	local.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
	CALL(cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
		0);
	YES("file descriptors", supported & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CALL(cuMemPoolCreate, &pool, &props);
	QUIET(cuMemPoolCreate, &plain, &local);
	CALL(cuMemPoolExportToShareableHandle, &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	YES("some", fd >= 0);
	CALL(cuMemPoolExportToShareableHandle, &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		1);
	CALL(cuMemPoolExportToShareableHandle, &fd, pool, CU_MEM_HANDLE_TYPE_NONE, 0);
	CALL(cuMemPoolExportToShareableHandle, NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	CALL(cuMemPoolExportToShareableHandle, &fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	CALL(cuMemPoolExportToShareableHandle, &fd, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	CALL(cuMemAllocFromPoolAsync, &p, 1000, pool, NULL);
	QUIET(cuMemAllocFromPoolAsync, &q, 1000, plain, NULL);
	CALL(cuMemPoolExportPointer, &data, p);
	CALL(cuMemPoolExportPointer, &data, p + 8);
	CALL(cuMemPoolExportPointer, &data, q);
	CALL(cuMemPoolExportPointer, NULL, p);
	CALL(cuMemPoolExportPointer, &data, memory(64));
	CALL(cuMemPoolImportFromShareableHandle, &same, (void *)(intptr_t)-1,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	CALL(cuMemFreeAsync, p, NULL);
	CALL(cuStreamSynchronize, NULL);
	CALL(cuMemPoolExportPointer, &data, p);
	CALL(cuMemPoolDestroy, pool);
}

/* In the process itself. */
CASE(pool_own_import)
{
	CUmemPoolProps props = shared_props();
	CUmemoryPool pool = NULL, same = NULL;
	CUmemPoolPtrExportData data;
	CUdeviceptr p = 0, q = 0;
	int fd = -1;
	start();
	QUIET(cuMemPoolCreate, &pool, &props);
	QUIET(cuMemPoolExportToShareableHandle, &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	CALL(cuMemPoolImportFromShareableHandle, &same, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	YES("another", same != pool);
	QUIET(cuMemAllocFromPoolAsync, &p, 1000, pool, NULL);
	QUIET(cuMemsetD8_v2, p, 0x21, 1000);
	QUIET(cuMemPoolExportPointer, &data, p);
	CALL(cuMemPoolImportPointer, &q, same, &data);
	if (q) {
		YES("another", p != q);
		CONTENT("p", q, 16);
		CALL(cuMemFreeAsync, q, NULL);
	}
	CALL(cuMemPoolImportPointer, &q, pool, &data);
}

static void owns_pool(void)
{
	CUmemPoolProps props = shared_props();
	CUmemoryPool pool = NULL;
	CUmemPoolPtrExportData data[3];
	CUdeviceptr p[3];
	size_t sizes[3] = {1000, 1 << 20, 40 << 20};
	uint64_t keep = UINT64_MAX;
	char host[16];
	int fd = -1;
	MUST(cuMemPoolCreate, &pool, &props);
	MUST(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
	MUST(cuMemPoolExportToShareableHandle, &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	for (int i = 0; i < 3; i++) {
		MUST(cuMemAllocFromPoolAsync, &p[i], sizes[i], pool, NULL);
		MUST(cuMemsetD8_v2, p[i], (unsigned char)(0x31 + i), sizes[i]);
		MUST(cuMemPoolExportPointer, &data[i], p[i]);
	}
	MUST(cuCtxSynchronize);
	tell_fd(fd);
	tell(data, sizeof(data));
	await();
	MUST(cuMemcpyDtoH_v2, host, p[0], 16);
	tell(host, 16);
	await();
	for (int i = 0; i < 3; i++)
		MUST(cuMemFreeAsync, p[i], NULL);
	MUST(cuStreamSynchronize, NULL);
	/* Memory that comes after the import. */
	MUST(cuMemAllocFromPoolAsync, &p[0], 2000, pool, NULL);
	MUST(cuMemsetD8_v2, p[0], 0x77, 2000);
	MUST(cuMemPoolExportPointer, &data[0], p[0]);
	MUST(cuCtxSynchronize);
	tell(data, sizeof(*data));
	await();
	MUST(cuMemFreeAsync, p[0], NULL);
	MUST(cuMemPoolDestroy, pool);
	MUST(cuCtxSynchronize);
	go();
	await();
}

CASE(pool)
{
	CUmemoryPool pool = NULL, second = NULL, of = NULL;
	CUmemPoolPtrExportData data[3], late, again;
	CUdeviceptr p[3] = {0, 0, 0}, q = 0;
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemAccess_flags flags = (CUmemAccess_flags)77;
	uint64_t value = 77;
	char host[16];
	int fd, again_fd = -1;
	with_owner(starts, owns_pool);
	start();
	fd = hear_fd();
	hear(data, sizeof(data));
	CALL(cuMemPoolImportFromShareableHandle, &pool, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	YES("some", pool != NULL);
	CALL(cuMemPoolImportFromShareableHandle, &second, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_NONE, 0);
	CALL(cuMemPoolImportFromShareableHandle, &second, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
	CALL(cuMemPoolImportFromShareableHandle, NULL, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	close(fd);
	CALL(cuMemAllocFromPoolAsync, &q, 100, pool, NULL);
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	CALL(cuMemPoolTrimTo, pool, 0);
	CALL(cuMemPoolGetAccess, &flags, pool, &location);
	NUMBER("flags", flags);
	CALL(cuMemPoolSetAccess, pool, &access, 1);
	CALL(cuMemPoolExportToShareableHandle, &again_fd, pool,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	for (int i = 0; i < 3; i++) {
		CALL(cuMemPoolImportPointer, &p[i], pool, &data[i]);
		if (p[i])
			CONTENT("p", p[i], 16);
	}
	CALL(cuMemPoolImportPointer, &q, pool, &data[0]);
	YES("the same", p[0] == q);
	CALL(cuMemPoolImportPointer, NULL, pool, &data[0]);
	CALL(cuMemPoolImportPointer, &q, pool, NULL);
	CALL(cuMemPoolExportPointer, &again, p[0]);
	CALL(cuPointerGetAttribute, &of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p[0]);
	YES("the pool", of == pool);
	CALL(cuMemsetD8_v2, p[0], 0x45, 8);
	QUIET(cuCtxSynchronize);
	go();
	hear(host, 16);
	BYTES("the other reads", host, 16);
	CALL(cuMemFreeAsync, p[0], NULL);
	CALL(cuMemFreeAsync, p[1], NULL);
	CALL(cuMemFree_v2, p[2]);
	CALL(cuMemFreeAsync, p[1], NULL);
	CALL(cuStreamSynchronize, NULL);
	go();
	hear(&late, sizeof(late));
	CALL(cuMemPoolImportPointer, &q, pool, &late);
	CONTENT("p", q, 16);
	CALL(cuMemFreeAsync, q, NULL);
	CALL(cuStreamSynchronize, NULL);
	go();
	await();
	REMARK("the owner has destroyed it");
	CALL(cuMemPoolImportPointer, &q, pool, &late);
	CALL(cuMemPoolDestroy, pool);
	CALL(cuMemPoolImportPointer, &q, pool, &late);
	go();
	owner_ends();
}

/* The importing side leaves its memory as it is. */
static void owns_pool_shortly(void)
{
	CUmemPoolProps props = shared_props();
	CUmemoryPool pool = NULL;
	CUmemPoolPtrExportData data;
	CUdeviceptr p;
	int fd = -1;
	MUST(cuMemPoolCreate, &pool, &props);
	MUST(cuMemPoolExportToShareableHandle, &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);
	MUST(cuMemAllocFromPoolAsync, &p, 1000, pool, NULL);
	MUST(cuMemsetD8_v2, p, 0x31, 1000);
	MUST(cuMemPoolExportPointer, &data, p);
	MUST(cuCtxSynchronize);
	tell_fd(fd);
	tell(&data, sizeof(data));
	await();
}

/* The owner ends while its memory is in use here. */
CASE(pool_outlives)
{
	CUmemoryPool pool = NULL;
	CUmemPoolPtrExportData data;
	CUdeviceptr p = 0;
	int fd;
	with_owner(starts, owns_pool_shortly);
	start();
	fd = hear_fd();
	hear(&data, sizeof(data));
	QUIET(cuMemPoolImportFromShareableHandle, &pool, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	QUIET(cuMemPoolImportPointer, &p, pool, &data);
	CONTENT("p", p, 16);
	go();
	owner_ends();
	CONTENT("p", p, 16);
	CALL(cuMemPoolDestroy, pool);
	CALL(cuMemFreeAsync, p, NULL);
	CALL(cuCtxSynchronize);
}
