/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, events and pools shared with another process, by the runtime. */
#include "runtime.h"
#include "other.h"

static void starts(void)
{
	MUST(cudaFree, NULL);
}

static void owns_memory(void)
{
	cudaIpcMemHandle_t handle;
	char *p = memory(5000);
	MUST(cudaMemset, p, 0x5c, 5000);
	MUST(cudaIpcGetMemHandle, &handle, p);
	MUST(cudaDeviceSynchronize);
	tell(&handle, sizeof(handle));
	await();
}

CASE(memory)
{
	cudaIpcMemHandle_t handle, own, again;
	void *p = NULL, *q = NULL;
	char *mine;
	with_owner(starts, owns_memory);
	mine = memory(100);
	CALL(cudaIpcGetMemHandle, &own, mine);
	CALL(cudaIpcGetMemHandle, &again, mine);
	YES("the same", memcmp(&own, &again, sizeof(own)) == 0);
	CALL(cudaIpcGetMemHandle, NULL, mine);
	CALL(cudaIpcGetMemHandle, &again, &own);
	CALL(cudaIpcOpenMemHandle, &q, own, cudaIpcMemLazyEnablePeerAccess);
	hear(&handle, sizeof(handle));
	CALL(cudaIpcOpenMemHandle, &p, handle, cudaIpcMemLazyEnablePeerAccess);
	CONTENT("bytes", p, 20);
	CALL(cudaIpcOpenMemHandle, &q, handle, cudaIpcMemLazyEnablePeerAccess);
	CALL(cudaIpcOpenMemHandle, &q, handle, 0);
	CALL(cudaMemset, p, 7, 10);
	CONTENT("bytes", p, 20);
	CALL(cudaFree, p);
	CALL(cudaIpcCloseMemHandle, p);
	CALL(cudaIpcCloseMemHandle, mine);
	go();
	owner_ends();
	CALL(cudaGetLastError);
}

static void owns_event(void)
{
	cudaEvent_t event = NULL;
	cudaIpcEventHandle_t handle;
	MUST(cudaEventCreateWithFlags, &event, cudaEventInterprocess | cudaEventDisableTiming);
	MUST(cudaIpcGetEventHandle, &handle, event);
	tell(&handle, sizeof(handle));
	await();
	MUST(cudaEventRecord, event, NULL);
	MUST(cudaDeviceSynchronize);
	go();
	await();
	MUST(cudaEventSynchronize, event);
}

CASE(event)
{
	cudaEvent_t event = NULL, own = NULL, plain = NULL;
	cudaIpcEventHandle_t handle;
	with_owner(starts, owns_event);
	QUIET(cudaFree, NULL);
	hear(&handle, sizeof(handle));
	CALL(cudaIpcOpenEventHandle, &event, handle);
	CALL(cudaEventQuery, event);
	CALL(cudaStreamWaitEvent, NULL, event, 0);
	go();
	await();
	CALL(cudaEventQuery, event);
	CALL(cudaStreamWaitEvent, NULL, event, 0);
	CALL(cudaEventRecord, event, NULL);
	CALL(cudaEventSynchronize, event);
	CALL(cudaEventDestroy, event);
	go();
	owner_ends();
	CALL(cudaEventCreateWithFlags, &own, cudaEventInterprocess);
	CALL(cudaEventCreateWithFlags, &own, cudaEventInterprocess | cudaEventDisableTiming);
	CALL(cudaIpcGetEventHandle, &handle, own);
	CALL(cudaIpcGetEventHandle, NULL, own);
	CALL(cudaIpcOpenEventHandle, &event, handle);
	QUIET(cudaEventCreateWithFlags, &plain, cudaEventDisableTiming);
	CALL(cudaIpcGetEventHandle, &handle, plain);
	CALL(cudaGetLastError);
}

static struct cudaMemPoolProps shared_props(void)
{
	struct cudaMemPoolProps props;
	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeDevice;
	return props;
}

static void owns_pool(void)
{
	struct cudaMemPoolProps props = shared_props();
	struct cudaMemPoolPtrExportData data;
	cudaMemPool_t pool = NULL;
	void *p = NULL;
	char host[16];
	int fd = -1;
	MUST(cudaMemPoolCreate, &pool, &props);
	MUST(cudaMemPoolExportToShareableHandle, &fd, pool, cudaMemHandleTypePosixFileDescriptor,
		0);
	MUST(cudaMallocFromPoolAsync, &p, 1000, pool, NULL);
	MUST(cudaMemset, p, 0x31, 1000);
	MUST(cudaMemPoolExportPointer, &data, p);
	MUST(cudaDeviceSynchronize);
	tell_fd(fd);
	tell(&data, sizeof(data));
	await();
	MUST(cudaMemcpy, host, p, 16, cudaMemcpyDeviceToHost);
	tell(host, 16);
	await();
}

CASE(pool)
{
	struct cudaMemPoolProps props = shared_props();
	struct cudaMemPoolPtrExportData data;
	cudaMemPool_t pool = NULL, own = NULL;
	void *p = NULL, *q = NULL;
	char host[16];
	int fd;
	with_owner(starts, owns_pool);
	QUIET(cudaFree, NULL);
	fd = hear_fd();
	hear(&data, sizeof(data));
	CALL(cudaMemPoolImportFromShareableHandle, &pool, (void *)(intptr_t)fd,
		cudaMemHandleTypePosixFileDescriptor, 0);
	CALL(cudaMemPoolImportPointer, &p, pool, &data);
	CONTENT("p", p, 16);
	CALL(cudaMemset, p, 0x45, 8);
	CALL(cudaMallocFromPoolAsync, &q, 100, pool, NULL);
	QUIET(cudaDeviceSynchronize);
	go();
	hear(host, 16);
	BYTES("the other reads", host, 16);
	CALL(cudaFreeAsync, p, NULL);
	CALL(cudaDeviceSynchronize);
	CALL(cudaMemPoolDestroy, pool);
	go();
	owner_ends();
	CALL(cudaMemPoolCreate, &own, &props);
	CALL(cudaMemPoolExportToShareableHandle, &fd, own, cudaMemHandleTypePosixFileDescriptor, 0);
	CALL(cudaMemPoolExportToShareableHandle, &fd, own, cudaMemHandleTypeNone, 0);
	CALL(cudaMemPoolExportPointer, &data, memory(64));
	CALL(cudaMemPoolImportPointer, &p, own, &data);
	CALL(cudaGetLastError);
}
