/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/early_writes.c: pinned memory written while the GPU may work: the write waits
 * for nothing, and the bytes that changed, no others, are sent before the program waits.
 */
#include "relay.h"

static void launch(CUdeviceptr out, uint32_t n)
{
	void *params[] = {&out, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
}

static void test_write(void)
{
	uint32_t *memory;
	CUdeviceptr pointer;
	size_t size;
	MUST(cuMemHostAlloc((void **)&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
	memory[0] = 40;
	IS(cuMemHostGetDevicePointer(&pointer, memory, 0), CUDA_SUCCESS);
	launch(pointer, 2);
	relay_mark();
	memory[9] = 0x01020304;
	memory[7] = 0; /* as it was */
	relay_settle();
	/* The wait is relay_settle's own, and what was written went ahead of it. */
	IS(relay_count("ctx_synchronize"), 1);
	IS(relay_count("memcpy_dtoh"), 1);
	IS(relay_count("memcpy_htod"), 1);
	const uint8_t *args = relay_args("memcpy_htod", &size);
	CU_ASSERT_PTR_NOT_NULL(args);
	/* The kernel's word is the kernel's. */
	IS(memory[0], 42);
	IS(memory[9], 0x01020304);
	IS(word_at(pointer + 36), 0x01020304);
	/* Written and given to the next kernel. */
	launch(pointer, 1);
	memory[9] = 5;
	launch(pointer + 36, 1);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(memory[9], 6);
	IS(memory[0], 43);
	/* And freed. */
	launch(pointer, 1);
	memory[8] = 1;
	IS(cuMemFreeHost(memory), CUDA_SUCCESS);
}

UNIT_SUITE(managed_early, {"write", test_write})
