/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/stream/hostfunc.c: host functions: in the order of their stream, with what the GPU
 * did before them to be seen, and the stream waits.
 */
#include <stdatomic.h>
#include <string.h>

#include "relay.h"

static _Atomic unsigned step, wrong;
static uint32_t *pinned;

static void first(void *data)
{
	wrong += step++ != 0 || data != &step || pinned[0] != 7;
	pinned[0] = 8;
}

static void second(CUstream stream, CUresult status, void *data)
{
	wrong += step++ != 1 || status != CUDA_SUCCESS || data != &wrong;
	(void)stream;
}

static void test_order(void)
{
	CUstream stream;
	CUdeviceptr memory = memory_of(64, 7);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuMemHostAlloc((void **)&pinned, 64, 0), CUDA_SUCCESS);
	IS(cuMemcpyDtoHAsync(pinned, memory, 4, stream), CUDA_SUCCESS);
	IS(cuLaunchHostFunc(stream, first, &step), CUDA_SUCCESS);
	IS(cuMemcpyHtoDAsync(memory, pinned, 4, stream), CUDA_SUCCESS); /* what it wrote */
	IS(cuStreamAddCallback(stream, second, &wrong, 0), CUDA_SUCCESS);
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	IS(step, 2);
	IS(wrong, 0);
	IS(word_at(memory), 8);
	LOCAL(cuLaunchHostFunc(stream, NULL, NULL), BAD);
	LOCAL(cuStreamAddCallback(stream, second, NULL, 1), BAD);
	LOCAL(cuLaunchHostFunc((CUstream)0x1234, first, NULL), CUDA_ERROR_INVALID_HANDLE);
	IS(cuMemFreeHost(pinned), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

UNIT_SUITE(hostfunc, {"order", test_order})
