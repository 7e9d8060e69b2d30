/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/managed.c: managed memory: only what the program wrote travels, once, before
 * the GPU may look; what the GPU wrote comes when it is touched.
 */
#include "relay.h"

enum { MIB = 1 << 20, CHUNK = 64 << 10 };

static void add(CUdeviceptr out, uint32_t n)
{
	void *params[] = {&out, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
}

static void test_traffic(void)
{
	CUdeviceptr memory;
	LOCAL(cuMemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL), BAD);
	LOCAL(cuMemAllocManaged(&memory, 4, 0x80), BAD);
	MUST(cuMemAllocManaged(&memory, 2 * MIB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)memory;
	add(memory, 0);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	/* One word: its chunk goes, and no more of two MiB. */
	words[0] = 40;
	relay_mark();
	add(memory, 2);
	relay_settle();
	IS(relay_count("memcpy_htod"), 1);
	size_t size;
	const uint8_t *args = relay_args("memcpy_htod", &size);
	CU_ASSERT_PTR_NOT_NULL(args);
	IS(words[0], 42); /* a touch fetches */
	/* Nothing was written since: nothing goes. */
	relay_mark();
	add(memory, 1);
	relay_settle();
	IS(relay_count("memcpy_htod"), 0);
	IS(words[0], 43);
	/* The copies of the driver see the same memory. */
	words[1] = 7;
	IS(word_at(memory + 4), 7);
	IS(cuMemsetD32(memory + 8, 9, 1), CUDA_SUCCESS);
	IS(words[2], 9);
	IS(words[0], 43);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	LOCAL(cuMemFree(memory), BAD);
}

UNIT_SUITE(managed, {"traffic", test_traffic})
