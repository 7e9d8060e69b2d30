/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks for what is refused, over and over and from several threads, as libraries do that try every
 * table and every kernel of theirs.
 *
 *	said_client [TABLES]		with TABLES, for undocumented tables alone
 *
 * test_said.py counts what that prints.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaded.h"

enum { THREADS = 6, ROUNDS = 20, TABLES = 40 };

static CUcontext context;
static int tables_only, wrong;

#define CALL(name, ...) (((__typeof__(&name))function(#name))(__VA_ARGS__))

static void expect(const char *what, CUresult result, CUresult wanted)
{
	if (result != wanted) {
		printf("%s: %d instead of %d\n", what, (int)result, (int)wanted);
		__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
	}
}

static void ask_tables(void)
{
	for (int i = 0; i < TABLES; i++) {
		const void *table = &library;
		CUuuid id = {{(char)i, 1, 2, 3}};
		expect("cuGetExportTable", CALL(cuGetExportTable, &table, &id),
			CUDA_ERROR_NOT_SUPPORTED);
	}
}

/*
 * Two calls that are not supported, a text that is no PTX, a kernel that cannot run, and a fat
 * binary of machine code alone.
 */
static void ask_all(void)
{
	static const char nonsense[] = ".version 8.0\n.target sm_75\n.address_size 64\nnonsense";
	static const char strange[] =
		".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry strange()\n{\nfrobnicate.b32 1;\nret;\n}\n";
	static const unsigned char code[80] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 64, 0, 0, 0, 0,
		0, 0, 0, 2, 0, 1, 1, 64, 0, 0, 0};
	CUgreenCtx green;
	CUmemoryPool pool;
	CUmemPoolProps host = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_HOST};
	CUmodule module;
	CUfunction kernel;
	expect("cuGreenCtxCreate",
		CALL(cuGreenCtxCreate, &green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM),
		CUDA_ERROR_NOT_SUPPORTED);
	expect("cuMemPoolCreate", CALL(cuMemPoolCreate, &pool, &host), CUDA_ERROR_NOT_SUPPORTED);
	expect("nonsense", CALL(cuModuleLoadData, &module, nonsense), CUDA_ERROR_INVALID_PTX);
	expect("machine code", CALL(cuModuleLoadData, &module, code), CUDA_ERROR_NO_BINARY_FOR_GPU);
	expect("strange", CALL(cuModuleLoadData, &module, strange), CUDA_SUCCESS);
	expect("its kernel", CALL(cuModuleGetFunction, &kernel, module, "strange"),
		CUDA_ERROR_INVALID_PTX);
	expect("unload", CALL(cuModuleUnload, module), CUDA_SUCCESS);
}

static void *run(void *unused)
{
	expect("cuCtxSetCurrent", CALL(cuCtxSetCurrent, context), CUDA_SUCCESS);
	for (int i = 0; i < ROUNDS; i++) {
		ask_tables();
		if (!tables_only)
			ask_all();
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	CUdevice device;
	tables_only = argc > 1 && strcmp(argv[1], "TABLES") == 0;
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		return 2;
	}
	expect("cuInit", CALL(cuInit, 0), CUDA_SUCCESS);
	expect("cuDeviceGet", CALL(cuDeviceGet, &device, 0), CUDA_SUCCESS);
	expect("cuDevicePrimaryCtxRetain", CALL(cuDevicePrimaryCtxRetain, &context, device),
		CUDA_SUCCESS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("asked\n");
	return wrong;
}
