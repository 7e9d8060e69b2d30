/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares memory with other programs, or opens what another shared.
 *
 *	share_client give FILE		exports 4096 bytes of 7 to FILE, and lives until stdin ends
 *	share_client take FILE		prints the result of cuIpcOpenMemHandle_v2, and the first byte
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

#define MUST(call)                                               \
	do {                                                     \
		CUresult result_ = (call);                       \
		if (result_) {                                   \
			printf("%s: %d\n", #call, (int)result_); \
			exit(2);                                 \
		}                                                \
	} while (0)

enum { BYTES = 4096 };

static void give(const char *path)
{
	CUdeviceptr memory;
	CUipcMemHandle handle;
	char part[4096];
	MUST(CALL(cuMemAlloc, &memory, BYTES));
	MUST(CALL(cuMemsetD8, memory, 7, BYTES));
	MUST(CALL(cuIpcGetMemHandle, &handle, memory));
	snprintf(part, sizeof part, "%.4000s.part", path);
	FILE *file = fopen(part, "w");
	if (!file || fwrite(&handle, sizeof handle, 1, file) != 1 || fclose(file) ||
		rename(part, path))
		exit(2);
	while (getchar() != EOF)
		continue;
}

static void take(const char *path)
{
	CUdeviceptr memory;
	CUipcMemHandle handle;
	unsigned char byte = 0;
	FILE *file = fopen(path, "r");
	if (!file || fread(&handle, sizeof handle, 1, file) != 1)
		exit(2);
	fclose(file);
	CUresult result =
		CALL(cuIpcOpenMemHandle, &memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (!result)
		MUST(CALL(cuMemcpyDtoH, &byte, memory, 1));
	printf("%d %d\n", (int)result, byte);
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdevice device;
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (argc != 3 || !library)
		return 2;
	MUST(CALL(cuInit, 0));
	MUST(CALL(cuDeviceGet, &device, 0));
	MUST(CALL(cuDevicePrimaryCtxRetain, &context, device));
	MUST(CALL(cuCtxSetCurrent, context));
	if (strcmp(argv[1], "give") == 0)
		give(argv[2]);
	else
		take(argv[2]);
	return 0;
}
