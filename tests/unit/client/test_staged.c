/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/staged.c: large copies of ordinary memory through pinned pieces that the
 * worker has as well.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "relay.h"

enum { MIB = 1 << 20, PIECE = 4 * MIB, LONG = 5 * PIECE + 12, SHORT = 700004 };

static uint32_t *numbers(size_t size, uint32_t first)
{
	uint32_t *memory = malloc(size);
	for (size_t i = 0; i < size / 4; i++)
		memory[i] = first + (uint32_t)i;
	return memory;
}

static void test_messages(void)
{
	CUdeviceptr device = memory_of(LONG, 0);
	uint32_t *from = numbers(LONG, 7), *to = malloc(LONG);
	IS(cuMemcpyHtoD(device, from, MIB), CUDA_SUCCESS); /* the pieces are made */
	/* A copy and a question for each piece; no bytes. */
	COST(cuMemcpyHtoD(device, from, MIB), CUDA_SUCCESS, 1, 1);
	IS(relay_count("memcpy_htod"), 0);
	COST(cuMemcpyHtoD(device, from, LONG), CUDA_SUCCESS, 6, 6);
	COST(cuMemcpyDtoH(to, device, LONG), CUDA_SUCCESS, 6, 6);
	IS(relay_count("memcpy_dtoh"), 0);
	IS(memcmp(from, to, LONG), 0);
	/* What is written to the source afterwards is too late. */
	IS(cuMemcpyHtoDAsync(device, from, LONG, NULL), CUDA_SUCCESS);
	memset(from, 0, LONG);
	memset(to, 0, LONG);
	IS(cuMemcpyDtoHAsync(to, device, LONG, NULL), CUDA_SUCCESS);
	IS(to[0], 7);
	IS(to[LONG / 4 - 1], 7 + LONG / 4 - 1);
	/* Small copies have their bytes in the message. */
	COST(cuMemcpyHtoD(device, from, 4096), CUDA_SUCCESS, 0, 1);
	IS(relay_count("memcpy_htod"), 1);
	/* Into the middle, not a byte beside it. */
	IS(cuMemsetD32(device, 1, LONG / 4), CUDA_SUCCESS);
	IS(cuMemcpyHtoD(device + 4, from, PIECE + MIB), CUDA_SUCCESS);
	IS(word_at(device), 1);
	IS(word_at(device + 4), 0);
	IS(word_at(device + PIECE + MIB), 0);
	IS(word_at(device + PIECE + MIB + 4), 1);
	LOCAL(cuMemcpyHtoD(device + 16, from, LONG), BAD);
	LOCAL(cuMemcpyHtoD(device, NULL, LONG), BAD);
	IS(cuMemFree(device), CUDA_SUCCESS);
	free(from);
	free(to);
}

static void *copy_again(void *opaque)
{
	uint32_t first = (uint32_t)(uintptr_t)opaque;
	CUstream stream;
	unsigned wrong = 0;
	MUST(cuCtxSetCurrent(primary), CUDA_SUCCESS);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	CUdeviceptr device = memory_of(SHORT, 0);
	MUST(cuCtxSynchronize(), CUDA_SUCCESS); /* the fill was on another stream */
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t *from = numbers(SHORT, first + round), *to = calloc(1, SHORT);
		wrong += cuMemcpyHtoDAsync(device, from, SHORT, stream) != CUDA_SUCCESS;
		wrong += cuMemcpyDtoHAsync(to, device, SHORT, stream) != CUDA_SUCCESS;
		wrong += cuStreamSynchronize(stream) != CUDA_SUCCESS;
		wrong += memcmp(from, to, SHORT) != 0;
		free(from);
		free(to);
	}
	IS(wrong, 0);
	IS(cuMemFree(device), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	return NULL;
}

/* Whoever finds the pieces taken goes by the connection. */
static void test_threads(void)
{
	pthread_t threads[3];
	for (uintptr_t i = 0; i < COUNT(threads); i++)
		MUST(pthread_create(&threads[i], NULL, copy_again, (void *)(i * 1000)), 0);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
}

UNIT_SUITE(staged, {"messages", test_messages}, {"threads", test_threads})
