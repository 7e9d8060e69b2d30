/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/registered.c: registered memory that kernels use: what either side changed
 * goes to the other at synchronisation points.
 */
#include <stdlib.h>
#include <string.h>

#include "relay.h"

enum { WORDS = 3000 };

static uint32_t *memory;
static CUdeviceptr there;

static void registered(void)
{
	memory = malloc(WORDS * 4);
	for (uint32_t i = 0; i < WORDS; i++)
		memory[i] = i;
	MUST(cuMemHostRegister(memory, WORDS * 4, 0), CUDA_SUCCESS);
	MUST(cuMemHostGetDevicePointer(&there, memory, 0), CUDA_SUCCESS);
}

static void unregistered(void)
{
	IS(cuMemHostUnregister(memory), CUDA_SUCCESS);
	free(memory);
}

static void add(uint32_t word, uint32_t n)
{
	CUdeviceptr address = there + 4 * word;
	void *params[] = {&address, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
}

/* Of what changed since, and of nothing else, at the cost of what that takes. */
static void test_changes(void)
{
	relay_add();
	registered();
	relay_mark();
	add(5, 2);
	relay_settle();
	IS(relay_count("memcpy_htod"), 0); /* nothing did */
	IS(memory[5], 7);
	memory[0] = 100;
	memory[1] = 101;
	memory[2999] = 1;
	relay_mark();
	add(2999, 3);
	IS(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	IS(memory[2999], 4);
	IS(memory[0], 100);
	relay_settle();
	IS(relay_count("memcpy_htod"), 2); /* the two ends */
	IS(relay_count("memcpy_dtoh"), 2); /* other streams might still have been at it */
	relay_mark();
	relay_settle();
	IS(relay_count("memcpy_dtoh"), 0);
	unregistered();
}

/*
 * While the GPU may write, bytes that the program did not change are not sent; where that would
 * take a message each, the GPU is waited for.
 */
static void test_in_flight(void)
{
	registered();
	relay_mark();
	add(10, 1);
	memory[9] = 90000;
	memory[11] = 110000;
	add(11, 1);
	relay_settle();
	YES(relay_count("memcpy_htod") >= 2);
	IS(relay_count("ctx_synchronize"), 1); /* our own */
	relay_mark();
	add(10, 1);
	for (uint32_t i = 100; i < 2900; i += 2)
		memory[i]++;
	add(100, 1);
	relay_settle();
	IS(relay_count("ctx_synchronize"), 2);
	IS(relay_count("memcpy_htod"), 1);
	IS(memory[9], 90000);
	IS(memory[10], 12);
	IS(memory[11], 110001);
	IS(memory[100], 102);
	IS(memory[102], 103);
	IS(memory[103], 103);
	unregistered();
}

/* Copies from and to it lead to the device's side, in the order of their stream. */
static void test_copies(void)
{
	CUdeviceptr device = memory_of(64, 11);
	registered();
	add(3, 5);
	relay_mark();
	IS(cuMemcpyHtoDAsync(device, memory + 3, 8, NULL), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("memcpy_dtod"), 1);
	IS(relay_count("memcpy_htod"), 0);
	IS(word_at(device), 8);
	IS(cuMemcpyDtoHAsync(memory + 20, device, 4, NULL), CUDA_SUCCESS);
	add(20, 1);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(memory[20], 9);
	IS(memory[21], 21);
	/* What ends outside is not all of it. */
	uint32_t two[2] = {1, 2};
	IS(cuMemcpyDtoH(two, there + 4 * 20, 8), CUDA_SUCCESS);
	IS(two[0], 9);
	IS(cuMemFree(device), CUDA_SUCCESS);
	unregistered();
}

static void test_addresses(void)
{
	CUdeviceptr pointer = 0;
	unsigned mapped = 7, flags = 0;
	memory = malloc(WORDS * 4);
	MUST(cuMemHostRegister(memory, WORDS * 4, CU_MEMHOSTREGISTER_PORTABLE), CUDA_SUCCESS);
	LOCAL(cuMemHostGetFlags(&flags, memory), CUDA_SUCCESS);
	IS(flags, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	/* To be asked what it is makes nothing of it. */
	CUpointer_attribute attributes[] = {
		CU_POINTER_ATTRIBUTE_MAPPED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
	void *values[] = {&mapped, &pointer};
	LOCAL(cuPointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)memory),
		CUDA_SUCCESS);
	IS(mapped, 0);
	IS(pointer, 0);
	IS(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		   (CUdeviceptr)(uintptr_t)(memory + 2)),
		CUDA_SUCCESS);
	LOCAL(cuMemHostGetDevicePointer(&there, memory, 0), CUDA_SUCCESS);
	IS(pointer, there + 8);
	LOCAL(cuPointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)(memory + 1)),
		CUDA_SUCCESS);
	IS(mapped, 1);
	IS(pointer, there + 4);
	LOCAL(cuMemHostGetDevicePointer(&pointer, memory + WORDS, 0), BAD);
	unregistered();
	LOCAL(cuMemHostGetDevicePointer(&pointer, memory, 0), BAD);
	LOCAL(cuMemsetD32(there, 0, 1), BAD);
}

/* With a context goes what the device had of it; the program's memory stays. */
static void test_context(void)
{
	CUcontext context;
	MUST(cuCtxCreate(&context, NULL, 0, 0), CUDA_SUCCESS);
	registered();
	memory[0] = 8;
	IS(cuMemsetD32(there, 9, 1), CUDA_SUCCESS);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(memory[0], 9);
	MUST(cuCtxDestroy(context), CUDA_SUCCESS);
	MUST(cuCtxSetCurrent(primary), CUDA_SUCCESS);
	memory[0] = 10;
	IS(cuMemFree(memory_of(64, 1)), CUDA_SUCCESS);
	IS(cuMemHostUnregister(memory), CUDA_SUCCESS);
	IS(memory[0], 10);
	free(memory);
}

UNIT_SUITE(registered, {"changes", test_changes}, {"in flight", test_in_flight},
	{"copies", test_copies}, {"addresses", test_addresses}, {"context", test_context})
