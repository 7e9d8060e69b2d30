/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/shared.c: pinned memory that is the worker's as well: what it costs, that both
 * sides see it, and what it becomes without.
 */
#include <string.h>

#include "relay.h"

enum { LARGE = 1 << 20 };

static uint32_t *pinned(size_t size)
{
	uint32_t *memory = NULL;
	MUST(cuMemHostAlloc((void **)&memory, size, 0), CUDA_SUCCESS);
	return memory;
}

static void add(const void *where, uint32_t n, CUstream stream)
{
	CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)where;
	void *params[] = {&pointer, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL), CUDA_SUCCESS);
}

static void test_memory(void)
{
	uint32_t *first = pinned(16), *memory = NULL, *between, *after;
	CUdeviceptr pointer = 0;
	COST(cuMemHostAlloc((void **)&memory, LARGE, 0), CUDA_SUCCESS, 1, 0);
	IS(relay_count("host_map"), 1);
	IS(memory[0], 0);
	/* It has its address from the beginning: nobody need ask. */
	LOCAL(cuMemHostGetDevicePointer(&pointer, memory, 0), CUDA_SUCCESS);
	IS(pointer, (uintptr_t)memory);
	memory[3] = 40;
	add(&memory[3], 2, NULL);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(memory[3], 42);
	/* A fill is done when it returns, because the program can see it. */
	COST(cuMemsetD32((CUdeviceptr)(uintptr_t)memory, 7, LARGE / 4), CUDA_SUCCESS, 1, 1);
	IS(memory[LARGE / 4 - 1], 7);
	/* Addresses come again, the pages empty. */
	between = pinned(LARGE);
	COST(cuMemFreeHost(memory), CUDA_SUCCESS, 1, 1);
	IS(relay_count("host_unmap"), 1);
	after = pinned(LARGE);
	YES(after == memory);
	IS(after[5], 0);
	IS(cuMemFreeHost(after), CUDA_SUCCESS);
	IS(cuMemFreeHost(between), CUDA_SUCCESS);
	IS(cuMemFreeHost(first), CUDA_SUCCESS);
	IS(cuMemFreeHost(first), CUDA_ERROR_INVALID_VALUE);
}

/* No byte of a large copy passes through the connection. */
static void test_copies(void)
{
	uint32_t *from = pinned(LARGE), *to = pinned(LARGE);
	CUdeviceptr device = memory_of(LARGE, 1);
	for (unsigned i = 0; i < LARGE / 4; i++)
		from[i] = i;
	COST(cuMemcpyHtoDAsync(device, from, LARGE, NULL), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpyDtoHAsync(to, device, LARGE, NULL), CUDA_SUCCESS, 0, 1);
	IS(relay_count("memcpy_dtod"), 1);
	IS(memcmp(from, to, LARGE), 0);
	from[0] = 99;
	COST(cuMemcpyHtoD(device, from, LARGE), CUDA_SUCCESS, 1, 1);
	COST(cuMemcpyDtoH(to, device, LARGE), CUDA_SUCCESS, 1, 1);
	IS(to[0], 99);
	/*
	 * A small one that is waited for comes in the answer; the other way the stream has to be
	 * waited for, whose work may write its source.
	 */
	COST(cuMemcpyHtoD(device, to + 1, 4), CUDA_SUCCESS, 1, 1);
	COST(cuMemcpyDtoH(to, device, 4), CUDA_SUCCESS, 1, 0);
	IS(to[0], 1);
	/*
	 * A copy reads when it is its turn, not when it is asked for: the kernel's result, not what
	 * lay there before.
	 */
	from[8] = 5;
	add(&from[8], 1, NULL);
	IS(cuMemcpyHtoDAsync(device, &from[8], 4, NULL), CUDA_SUCCESS);
	IS(word_at(device), 6);
	IS(cuMemFree(device), CUDA_SUCCESS);
	IS(cuMemFreeHost(from), CUDA_SUCCESS);
	IS(cuMemFreeHost(to), CUDA_SUCCESS);
}

/* The session goes on where memory cannot be shared. */
static void test_lost(void)
{
	uint32_t *a = pinned(LARGE), *b = pinned(64), *later;
	CUdeviceptr device = memory_of(LARGE, 1);
	a[0] = 10;
	a[LARGE / 4 - 1] = 20;
	b[0] = 30;
	add(&a[0], 1, NULL);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	relay_break(false);
	/* What was there is there, on both sides. */
	add(&a[0], 1, NULL);
	add(&a[LARGE / 4 - 1], 1, NULL);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(a[0], 12);
	IS(a[LARGE / 4 - 1], 21);
	IS(b[0], 30);
	b[0]++;
	add(&b[0], 1, NULL);
	IS(cuMemcpyDtoH(&a[1], (CUdeviceptr)(uintptr_t)b, 4), CUDA_SUCCESS);
	IS(a[1], 32);
	IS(cuMemcpyHtoD(device, a, LARGE), CUDA_SUCCESS);
	IS(word_at(device), 12);
	/* A connection that could pass it on comes too late for this session. */
	relay_break(true);
	add(&a[0], 1, NULL);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(a[0], 13);
	relay_mark();
	later = pinned(LARGE);
	relay_settle();
	IS(relay_count("host_map"), 0);
	/* Nor do other copies go through what was shared. */
	IS(cuMemcpyHtoD(device, a, LARGE), CUDA_SUCCESS);
	IS(word_at(device), 13);
	later[0] = 1;
	add(later, 1, NULL);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(later[0], 2);
	IS(cuMemFree(device), CUDA_SUCCESS);
	IS(cuMemFreeHost(later), CUDA_SUCCESS);
	IS(cuMemFreeHost(a), CUDA_SUCCESS);
	IS(cuMemFreeHost(b), CUDA_SUCCESS);
}

UNIT_SUITE(shared, {"memory", test_memory}, {"copies", test_copies}, {"lost", test_lost})
