/* client/cuda/ipc.c: handles of memory for other processes; a process's own are refused as CUDA does, and what is none does not travel. */
#include <string.h>

#include "relay.h"
#include "rpc/ipc.h"

static void test_handles(void)
{
	CUdeviceptr memory = memory_of(4096, 1), opened = 0, other = 0, pooled = 0;
	CUipcMemHandle handle, again;
	struct ckt_ipc_handle *inside = (struct ckt_ipc_handle *)&handle;
	COST(cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS, 1, 0);
	IS(memcmp(inside->magic, CKT_IPC_MAGIC, sizeof inside->magic), 0);
	IS(inside->kind, CKT_IPC_BLOCK);
	IS(cuIpcGetMemHandle(&again, memory + 100), CUDA_SUCCESS);	/* of the whole block */
	IS(memcmp(&again, &handle, sizeof handle), 0);
	LOCAL(cuIpcGetMemHandle(NULL, memory), BAD);
	LOCAL(cuIpcGetMemHandle(&again, 0x1234), BAD);
	MUST(cuMemAllocAsync(&pooled, 4096, NULL), CUDA_SUCCESS);
	LOCAL(cuIpcGetMemHandle(&again, pooled), BAD);
	IS(cuMemFreeAsync(pooled, NULL), CUDA_SUCCESS);
	LOCAL(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);	/* our own */
	LOCAL(cuIpcOpenMemHandle(&opened, handle, 0), BAD);
	LOCAL(cuIpcOpenMemHandle(NULL, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), BAD);
	inside->kind++;
	LOCAL(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), BAD);
	inside->kind--;
	inside->magic[0] ^= 1;
	LOCAL(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), BAD);
	inside->magic[0] ^= 1;
	/* As if of another session; who knows the secret gets the memory. */
	inside->session[0] ^= 1;
	inside->secret[0] ^= 1;
	relay_mark();
	YES(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("ipc_mem_open"), 1);
	inside->secret[0] ^= 1;
	COST(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS, 1, 0);
	LOCAL(cuIpcOpenMemHandle(&other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_ALREADY_MAPPED);
	IS(word_at(opened), 1);
	LOCAL(cuMemFree(opened), BAD);	/* it is not ours to free */
	LOCAL(cuIpcGetMemHandle(&again, opened), BAD);
	COST(cuIpcCloseMemHandle(opened), CUDA_SUCCESS, 2, 0);	/* what uses it is waited for */
	LOCAL(cuIpcCloseMemHandle(opened), BAD);
	LOCAL(cuIpcCloseMemHandle(memory), BAD);	/* never opened */
	LOCAL(cuIpcCloseMemHandle(0), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(ipc, {"handles", test_handles})
