/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/system_call_buffers.c: what the preloaded library is offered: memory that
 * system calls cannot use as it is, open for one of them, and what the kernel wrote while the GPU
 * had it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/preload/system_call_buffers.h"
#include "relay.h"

enum { MIB = 1 << 20, CHUNK = 64 << 10 };

/* In place of the preloaded library's. */
__attribute__((visibility("default"))) const struct ckt_buffers *_Atomic cricket_buffers;

static void add(CUdeviceptr out, uint32_t n)
{
	void *params[] = {&out, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
}

static void test_open(void)
{
	CUdeviceptr memory;
	MUST(cuMemAllocManaged(&memory, 4 * MIB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	const struct ckt_buffers *b = cricket_buffers;
	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	uint32_t *words = (uint32_t *)(uintptr_t)memory;
	YES(b->holds(words, 4));
	YES(b->holds((char *)words - 4, 8));
	YES(b->holds((char *)words - 16 * MIB, 17 * MIB));
	NO(b->holds(words, 0));
	NO(b->holds((char *)words - 8, 8));
	NO(b->holds(&memory, sizeof memory));
	NO(b->holds((void *)~(uintptr_t)15, 64));
	YES(b->open(&memory, 8, true) == &memory);

	/* A plain read of the file into closed memory is what fails without all this. */
	int file = memfd_create("file", 0), zero = open("/dev/zero", O_RDONLY);
	add(memory, 5);
	errno = 0;
	IS(read(zero, words, 4), -1);
	IS(errno, EFAULT);
	/* Three chunks, two of them in part; the kernel writes elsewhere. */
	relay_mark();
	char *place = b->open((char *)words + CHUNK - 8, CHUNK + 16, true);
	relay_settle();
	IS(errno, EFAULT);
	YES(place != (char *)words + CHUNK - 8);
	IS(relay_count("memcpy_dtoh"), 1);
	memset(place, 1, CHUNK + 16);
	b->written((char *)words + CHUNK - 8, CHUNK + 16);
	IS(word_at(memory + CHUNK), 0x01010101);
	IS(words[0], 5);
	IS(words[CHUNK / 4 - 3], 0);
	IS(words[CHUNK / 4 - 2], 0x01010101);
	IS(words[2 * CHUNK / 4 + 1], 0x01010101);
	IS(words[2 * CHUNK / 4 + 2], 0);

	/* Given to the GPU in between: what the kernel wrote goes after it, and nothing else. */
	place = b->open(words, 4, true);
	add(memory + 4, 3);
	*(uint32_t *)(void *)place = 77;
	b->written(words, 4);
	IS(word_at(memory), 77);
	IS(word_at(memory + 4), 3);
	IS(words[0], 77);
	IS(words[1], 3);
	/* The same, read by the GPU alone. */
	place = b->open(words, 4, true);
	IS(word_at(memory), 77);
	*(uint32_t *)(void *)place = 78;
	b->written(words, 4);
	IS(word_at(memory), 78);

	/* To be read: fetched, and it stays the device's. */
	add(memory, 2);
	place = (char *)b->open(words, 4, false);
	IS(*(uint32_t *)(void *)place, 80);
	IS(write(file, words, 4), 4);
	relay_mark();
	add(memory, 1);
	relay_settle();
	IS(relay_count("memcpy_htod"), 0);
	/* Partly the program's own: open where it is. */
	YES(b->open((char *)words - 4, 8, false) == (char *)words - 4);
	IS(words[0], 81);
	close(file);
	close(zero);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	NO(b->holds(words, 4));
}

/* Pinned memory is the program's own until the device has it as well. */
static void test_pinned(void)
{
	uint32_t *memory;
	CUdeviceptr pointer;
	MUST(cuMemHostAlloc((void **)&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
	const struct ckt_buffers *b = cricket_buffers;
	NO(b && b->holds(memory, 4096));
	IS(cuMemHostGetDevicePointer(&pointer, memory, 0), CUDA_SUCCESS);
	b = cricket_buffers;
	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	YES(b->holds(memory, 4096));
	add(pointer, 2);
	IS(*(uint32_t *)b->open(memory, 4, false), 2);
	IS(cuMemFreeHost(memory), CUDA_SUCCESS);
	NO(b->holds(memory, 4096));
}

UNIT_SUITE(buffers, {"open", test_open}, {"pinned", test_pinned})
