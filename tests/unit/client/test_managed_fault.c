/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/managed_fault.c: touches of managed memory: what is gone through in order
 * costs few of them, and what is not is left where it is.
 */
#include "relay.h"

enum { MIB = 1 << 20, CHUNK = 64 << 10, SIZE = 16 * MIB };

static void add(CUdeviceptr out, uint32_t n)
{
	void *params[] = {&out, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Pieces that are fetched (of a MiB at most) when the program reads up to there, after a kernel. */
static unsigned fetched(CUdeviceptr memory, size_t size)
{
	const volatile char *bytes = (const volatile char *)(uintptr_t)memory;
	add(memory, 1);
	relay_mark();
	for (size_t i = 0; i < size; i += CHUNK)
		(void)bytes[i];
	relay_settle();
	return relay_count("memcpy_dtoh");
}

static void test_walk(void)
{
	CUdeviceptr memory;
	MUST(cuMemAllocManaged(&memory, SIZE, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	/* One chunk, two, four ... and the last: 5 + 2 + 4 + 8 + 1 pieces. */
	IS(fetched(memory, SIZE), 20);
	/* From then on half of it at once, and the other half. */
	IS(fetched(memory, SIZE), 16);
	IS(fetched(memory, SIZE), 16);
	/* It is not gone through any more: what is taken halves. */
	IS(fetched(memory, 1), 8);
	IS(fetched(memory, 1), 4);
	IS(fetched(memory, 1), 2);
	for (int i = 0; i < 5; i++)
		IS(fetched(memory, 1), 1);
	IS(fetched(memory, SIZE), 20);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* What is fetched ahead and not written does not go back. */
static void test_write(void)
{
	CUdeviceptr memory;
	MUST(cuMemAllocManaged(&memory, SIZE, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	fetched(memory, SIZE);
	add(memory, 1);
	volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)memory;
	words[0] = 9;
	relay_mark();
	add(memory, 1);
	relay_settle();
	IS(relay_count("memcpy_htod"), 1);
	size_t size;
	const uint8_t *args = relay_args("memcpy_htod", &size);
	CU_ASSERT_PTR_NOT_NULL(args);
	IS(words[0], 10);
	/* Written in order: 1 + 2 + 4 ... chunks are opened, and all of them go. */
	for (size_t i = 0; i < 7; i++)
		words[i * (CHUNK / 4)] = (uint32_t)i;
	add(memory, 1);
	for (size_t i = 0; i < 7; i++)
		IS(word_at(memory + i * CHUNK), i + !i);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(managed_fault, {"walk", test_walk}, {"write", test_write})
