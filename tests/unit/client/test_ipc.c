/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/ipc.c: handles of memory for other processes; a process's own are refused as
 * CUDA does, and what is none does not travel.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "relay.h"
#include "rpc/ipc.h"

/* Asked for at the server, and refused there. */
#define FAILS(call)                                 \
	do {                                        \
		relay_mark();                       \
		YES((call) != CUDA_SUCCESS);        \
		relay_settle();                     \
		IS(relay_count("ipc_mem_open"), 1); \
	} while (0)

/*
 * ---- Another process, with a session of its own: this program once more, which ends in the
 * constructor below.
 */

enum { OTHER_INPUT = 3, OTHER_OUTPUT = 4 };

__attribute__((constructor)) static void be_the_other(void)
{
	CUcontext context;
	CUdeviceptr memory;
	CUipcMemHandle handle;
	char end;
	if (!getenv("UNIT_IPC_OTHER"))
		return;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuMemAlloc(&memory, 4096) || cuMemsetD32(memory, 1, 1024) ||
		cuIpcGetMemHandle(&handle, memory) ||
		write(OTHER_OUTPUT, &handle, sizeof handle) != sizeof handle)
		_exit(1);
	_exit(read(OTHER_INPUT, &end, 1) ? 1 : 0);
}

struct other {
	pid_t pid;
	int input;
};

/* Its memory holds ones. */
static struct other other_begin(CUipcMemHandle *ret_handle)
{
	struct other other = {.pid = -1};
	int input[2], output[2];
	posix_spawn_file_actions_t actions;
	setenv("UNIT_IPC_OTHER", "1", 1);
	IS(pipe2(input, O_CLOEXEC) | pipe2(output, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	/* Neither end may lie where the other goes. */
	posix_spawn_file_actions_adddup2(&actions, input[0], 100);
	posix_spawn_file_actions_adddup2(&actions, output[1], OTHER_OUTPUT);
	posix_spawn_file_actions_adddup2(&actions, 100, OTHER_INPUT);
	posix_spawn_file_actions_addclose(&actions, 100);
	IS(posix_spawn(&other.pid, "/proc/self/exe", &actions, NULL, (char *[]){"other", NULL},
		   environ),
		0);
	posix_spawn_file_actions_destroy(&actions);
	unsetenv("UNIT_IPC_OTHER");
	close(input[0]);
	close(output[1]);
	other.input = input[1];
	IS(read(output[0], ret_handle, sizeof *ret_handle), sizeof *ret_handle);
	close(output[0]);
	return other;
}

static void other_end(struct other other)
{
	int status = -1;
	close(other.input);
	IS(waitpid(other.pid, &status, 0), other.pid);
	IS(status, 0);
}

static void test_handles(void)
{
	CUdeviceptr memory = memory_of(4096, 1), opened = 0, other = 0, pooled = 0;
	CUipcMemHandle handle, again;
	struct ckt_ipc_handle *inside = (struct ckt_ipc_handle *)&handle;
	COST(cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS, 1, 0);
	IS(memcmp(inside->magic, CKT_IPC_MAGIC, sizeof inside->magic), 0);
	IS(inside->kind, CKT_IPC_BLOCK);
	IS(cuIpcGetMemHandle(&again, memory + 100), CUDA_SUCCESS); /* of the whole block */
	IS(memcmp(&again, &handle, sizeof handle), 0);
	LOCAL(cuIpcGetMemHandle(NULL, memory), BAD);
	LOCAL(cuIpcGetMemHandle(&again, 0x1234), BAD);
	MUST(cuMemAllocAsync(&pooled, 4096, NULL), CUDA_SUCCESS);
	LOCAL(cuIpcGetMemHandle(&again, pooled), BAD);
	IS(cuMemFreeAsync(pooled, NULL), CUDA_SUCCESS);
	/* our own */
	LOCAL(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		CUDA_ERROR_INVALID_CONTEXT);
	LOCAL(cuIpcOpenMemHandle(&opened, handle, 0), BAD);
	LOCAL(cuIpcOpenMemHandle(NULL, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), BAD);
	inside->kind++;
	LOCAL(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), BAD);
	inside->kind--;
	inside->magic[0] ^= 1;
	LOCAL(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), BAD);
	inside->magic[0] ^= 1;
	/* Another session's, of which there is none: the worker that is asked is not it. */
	inside->session[0] ^= 1;
	FAILS(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	inside->session[0] ^= 1;
	struct other process = other_begin(&handle);
	inside->secret[0] ^= 1;
	FAILS(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	inside->secret[0] ^= 1;
	COST(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS,
		1, 0);
	LOCAL(cuIpcOpenMemHandle(&other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		CUDA_ERROR_ALREADY_MAPPED);
	IS(word_at(opened), 1);
	LOCAL(cuMemFree(opened), BAD); /* it is not ours to free */
	LOCAL(cuIpcGetMemHandle(&again, opened), BAD);
	/* What uses it is waited for; nothing does here. */
	COST(cuIpcCloseMemHandle(opened), CUDA_SUCCESS, 1, 0);
	LOCAL(cuIpcCloseMemHandle(opened), BAD);
	LOCAL(cuIpcCloseMemHandle(memory), BAD); /* never opened */
	LOCAL(cuIpcCloseMemHandle(0), BAD);
	other_end(process);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(ipc, {"handles", test_handles})
