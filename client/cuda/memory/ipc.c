/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory shared with other processes, whose sessions belong to the same owner at the same server.
 * The program passes on a handle (rpc/ipc.h): for memory of cudaMalloc the handle itself, for
 * memory that the program maps (vmm.c) a file that holds the handle.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/cuda/memory/ipc.h"
#include "base/fork.h"
#include "client/conn/conn.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/interface.h"
#include "rpc/ipc.h"

_Static_assert(sizeof(CUipcMemHandle) == CKT_IPC_HANDLE, "a handle fits");

/* Memory that this process opened.  A context can open the same memory once. */
struct opened {
	struct opened *next;
	uint64_t address, context;
	struct ckt_ipc_handle handle;
};

static CKT_LOCK(lock);
static struct opened *opened;

bool ckt_client_ipc_own(const struct ckt_ipc_handle *handle)
{
	for (unsigned i = 0; i < ckt_conn_count; i++)
		if (strncmp(handle->session, ckt_conns[i]->session, sizeof handle->session) == 0)
			return true;
	return false;
}

CKT_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
	struct ckt_client_range range;
	struct ckt_reply reply;
	struct ckt_ipc_mem_get_res res;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ckt_range_find(address, &range) || range.kind != CKT_RANGE_DEVICE || range.pool)
		return CUDA_ERROR_INVALID_VALUE;
	ckt_stream_beside = true;
	CKT_ROUTE_CONTEXT(range.context);
	CUresult result = CKT_WAITED(
		ipc_mem_get, IPC_MEM_GET, CKT_CALL_F_NUMBERED, &reply, .address = range.base);
	if (result)
		return result;
	if (ckt_ipc_mem_get_res_get(&reply.results, &res) && res.handle_len == sizeof *handle)
		memcpy(handle, res.handle, sizeof *handle);
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

/* Precondition: lock held. */
static CUresult open_new(struct opened *entry)
{
	struct ckt_context *context;
	struct ckt_reply reply;
	struct ckt_ipc_mem_open_res res;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_range_room();
	if (!result)
		result = CKT_WAITED(ipc_mem_open, IPC_MEM_OPEN, CKT_CALL_F_NUMBERED, &reply,
			.handle = (const uint8_t *)&entry->handle,
			.handle_len = sizeof entry->handle);
	if (result)
		return result;
	if (ckt_ipc_mem_open_res_get(&reply.results, &res)) {
		entry->address = res.address;
		entry->next = opened;
		opened = entry;
		ckt_range_add(&(struct ckt_client_range){.base = res.address,
			.size = res.size,
			.kind = CKT_RANGE_IMPORTED,
			.context = context->object.id,
			.device = context->device});
	} else {
		result = CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuIpcOpenMemHandle_v2(
	CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
	struct ckt_context *context;
	struct ckt_ipc_handle ours;
	memcpy(&ours, &handle, sizeof ours);
	if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	if (memcmp(ours.magic, CKT_IPC_MAGIC, sizeof ours.magic) != 0 || ours.kind != CKT_IPC_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA returns this error if a process opens its own memory. */
	if (ckt_client_ipc_own(&ours))
		return CUDA_ERROR_INVALID_CONTEXT;
	ckt_stream_beside = true;
	pthread_mutex_lock(&lock);
	struct opened *entry = opened;
	while (entry &&
		(entry->context != context->object.id ||
			memcmp(&entry->handle, &ours, sizeof ours) != 0))
		entry = entry->next;
	if (entry) {
		/*
		 * The driver refuses a second opening; the runtime counts them (measured on an
		 * H200).
		 */
		result = CUDA_ERROR_ALREADY_MAPPED;
	} else {
		entry = calloc(1, sizeof *entry);
		result = CUDA_ERROR_OUT_OF_MEMORY;
		if (entry) {
			*entry = (struct opened){.context = context->object.id, .handle = ours};
			result = open_new(entry);
		}
		if (!result)
			*address = entry->address;
		else
			free(entry);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Waits for work that may use the memory: a kernel would fault after the unmapping. */
static CUresult close_memory(struct opened *entry)
{
	uint64_t saved = ckt_call_context;
	ckt_client_context_use(entry->context);
	CUresult result = cuCtxSynchronize();
	if (!result)
		result = CKT_WAITED(ipc_mem_close, IPC_MEM_CLOSE, CKT_CALL_F_NUMBERED, NULL,
			.address = entry->address);
	ckt_client_context_use(saved);
	return result;
}

CKT_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	for (struct opened **place = &opened; *place; place = &(*place)->next) {
		struct opened *entry = *place;
		if (entry->address != address)
			continue;
		*place = entry->next;
		ckt_range_remove(address, CKT_RANGE_IMPORTED, NULL);
		result = close_memory(entry);
		free(entry);
		break;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void ckt_client_ipc_forget_context(uint64_t context)
{
	pthread_mutex_lock(&lock);
	for (struct opened **place = &opened; *place;) {
		struct opened *entry = *place;
		if (entry->context == context) {
			*place = entry->next;
			free(entry);
		} else {
			place = &entry->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Files that hold a handle */

CUresult ckt_client_ipc_file_make(const uint8_t *handle, int *ret_fd)
{
	int fd = memfd_create("cricket-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (write(fd, handle, CKT_IPC_HANDLE) != CKT_IPC_HANDLE ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(fd);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*ret_fd = fd;
	return CUDA_SUCCESS;
}

bool ckt_client_ipc_file_read(int fd, struct ckt_ipc_handle *ret)
{
	return pread(fd, ret, sizeof *ret, 0) == sizeof *ret &&
		memcmp(ret->magic, CKT_IPC_MAGIC, sizeof ret->magic) == 0 &&
		ret->kind == CKT_IPC_PHYSICAL;
}
