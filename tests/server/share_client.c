/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares memory with other programs, or opens what another shared.
 *
 *	share_client give FILE		exports 4096 bytes of 7 to FILE, and lives until stdin ends
 *	share_client take FILE		prints the result of cuIpcOpenMemHandle_v2, and the first byte
 *	share_client own FILE		exports 4096 bytes of 0 to FILE, and does what stdin says:
 *	share_client use FILE		the same with those that another owns; opens them before the first line
 *		set N	all bytes become N; prints the result
 *		send N	the same, and waits for nothing
 *		get	prints the result, the first byte and the last
 *		give N	the owner's bytes are others from here on, with an event beside them, exported to FILE.N
 *		take N	the same of who uses them
 *		mark N	all bytes become N on the GPU's own time, and the event is recorded behind that
 *		await	waits on the GPU for the event, and prints as get
 *	share_client join FILE RANK	prints the result of ncclCommInitRank for a rank of two; rank 0 writes
 *					the unique id to FILE first
 *
 * test_shared.py says who may take.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaded.h"

/* name is CUDA's macro, so its versions are resolved. */
#define TEXT_OF(name) #name
#define CALL(name, ...) (((__typeof__(&name))function(TEXT_OF(name)))(__VA_ARGS__))

#define MUST(call)                                          \
	do {                                                \
		int result_ = (int)(call);                  \
		if (result_) {                              \
			printf("%s: %d\n", #call, result_); \
			exit(2);                            \
		}                                           \
	} while (0)

enum { BYTES = 4096 };

static void write_to(const char *path, const void *data, size_t size)
{
	char part[4096];
	snprintf(part, sizeof part, "%.4000s.part", path);
	FILE *file = fopen(part, "w");
	if (!file || fwrite(data, size, 1, file) != 1 || fclose(file) || rename(part, path))
		exit(2);
}

static void read_from(const char *path, void *data, size_t size)
{
	FILE *file = fopen(path, "r");
	if (!file || fread(data, size, 1, file) != 1)
		exit(2);
	fclose(file);
}

static void give(const char *path)
{
	CUdeviceptr memory;
	CUipcMemHandle handle;
	MUST(CALL(cuMemAlloc, &memory, BYTES));
	MUST(CALL(cuMemsetD8, memory, 7, BYTES));
	MUST(CALL(cuIpcGetMemHandle, &handle, memory));
	write_to(path, &handle, sizeof handle);
	while (getchar() != EOF)
		continue;
}

static void take(const char *path)
{
	CUdeviceptr memory;
	CUipcMemHandle handle;
	unsigned char byte = 0;
	read_from(path, &handle, sizeof handle);
	CUresult result =
		CALL(cuIpcOpenMemHandle, &memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (!result)
		MUST(CALL(cuMemcpyDtoH, &byte, memory, 1));
	printf("%d %d\n", (int)result, byte);
}

static CUdeviceptr share(const char *path, int owns)
{
	CUdeviceptr memory;
	CUipcMemHandle handle;
	if (owns) {
		MUST(CALL(cuMemAlloc, &memory, BYTES));
		MUST(CALL(cuMemsetD8, memory, 0, BYTES));
		MUST(CALL(cuIpcGetMemHandle, &handle, memory));
		write_to(path, &handle, sizeof handle);
	} else {
		read_from(path, &handle, sizeof handle);
		MUST(CALL(cuIpcOpenMemHandle, &memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	}
	return memory;
}

static CUevent share_event(const char *path, int owns)
{
	CUevent event;
	CUipcEventHandle handle;
	char name[4096];
	snprintf(name, sizeof name, "%.4000s.event", path);
	if (owns) {
		MUST(CALL(cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
		MUST(CALL(cuIpcGetEventHandle, &handle, event));
		write_to(name, &handle, sizeof handle);
	} else {
		read_from(name, &handle, sizeof handle);
		MUST(CALL(cuIpcOpenEventHandle, &event, handle));
	}
	return event;
}

static void print_ends(CUdeviceptr memory, CUresult result)
{
	char bytes[2] = {0};
	if (!result)
		result = CALL(cuMemcpyDtoH, &bytes[0], memory, 1);
	if (!result)
		result = CALL(cuMemcpyDtoH, &bytes[1], memory + BYTES - 1, 1);
	printf("%d %d %d\n", (int)result, bytes[0], bytes[1]);
}

static void obey(const char *path, int owns)
{
	CUdeviceptr memory = share(path, owns);
	CUevent event = NULL;
	char word[16], name[4096];
	int value = 0;
	printf("ready\n");
	fflush(stdout);
	while (scanf("%15s", word) == 1) {
		CUresult result = CUDA_ERROR_INVALID_VALUE;
		if (strcmp(word, "set") == 0 && scanf("%d", &value) == 1) {
			result = CALL(cuMemsetD8, memory, (unsigned char)value, BYTES);
			if (!result)
				result = CALL(cuCtxSynchronize);
			printf("%d\n", (int)result);
		} else if (strcmp(word, "send") == 0 && scanf("%d", &value) == 1) {
			result = CALL(cuMemsetD8, memory, (unsigned char)value, BYTES);
			printf("%d\n", (int)result);
		} else if (strcmp(word, owns ? "give" : "take") == 0 && scanf("%d", &value) == 1) {
			snprintf(name, sizeof name, "%.4000s.%d", path, value);
			memory = share(name, owns);
			event = share_event(name, owns);
			printf("0\n");
		} else if (strcmp(word, "mark") == 0 && scanf("%d", &value) == 1) {
			result = CALL(cuMemsetD8Async, memory, (unsigned char)value, BYTES, NULL);
			if (!result)
				result = CALL(cuEventRecord, event, NULL);
			printf("%d\n", (int)result);
		} else if (strcmp(word, "await") == 0) {
			print_ends(memory, CALL(cuStreamWaitEvent, NULL, event, 0));
		} else {
			print_ends(memory, CUDA_SUCCESS);
		}
		fflush(stdout);
	}
}

/* As nccl.h has it, which a build may lack. */
struct unique_id {
	char internal[128];
};

static void join(const char *path, int rank)
{
	struct unique_id id;
	void *comm = NULL;
	library = dlopen("libnccl.so.2", RTLD_NOW);
	if (!library)
		exit(2);
	int (*make)(struct unique_id *) = function("ncclGetUniqueId");
	int (*init)(void **, int, struct unique_id, int) = function("ncclCommInitRank");
	if (rank == 0) {
		MUST(make(&id));
		write_to(path, &id, sizeof id);
	} else {
		read_from(path, &id, sizeof id);
	}
	printf("%d\n", init(&comm, 2, id, rank));
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdevice device;
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (argc < 3 || !library)
		return 2;
	MUST(CALL(cuInit, 0));
	MUST(CALL(cuDeviceGet, &device, 0));
	MUST(CALL(cuDevicePrimaryCtxRetain, &context, device));
	MUST(CALL(cuCtxSetCurrent, context));
	if (strcmp(argv[1], "give") == 0)
		give(argv[2]);
	else if (strcmp(argv[1], "own") == 0 || strcmp(argv[1], "use") == 0)
		obey(argv[2], argv[1][0] == 'o');
	else if (strcmp(argv[1], "join") == 0 && argc == 4)
		join(argv[2], atoi(argv[3]));
	else
		take(argv[2]);
	return 0;
}
