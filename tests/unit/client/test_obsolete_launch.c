/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/obsolete_launch.c: launches of old: a function's state here, one command when
 * it is launched.
 */
#include "relay.h"

static void test_launch(void)
{
	CUfunction f = relay_add();
	CUdeviceptr memory = memory_of(64, 5);
	LOCAL(cuFuncSetBlockShape(f, 2, 1, 1), CUDA_SUCCESS);
	LOCAL(cuFuncSetBlockShape(f, 0, 1, 1), BAD);
	LOCAL(cuFuncSetSharedSize(f, 0), CUDA_SUCCESS);
	LOCAL(cuParamSetv(f, 0, &memory, 8), CUDA_SUCCESS);
	LOCAL(cuParamSeti(f, 8, 3), CUDA_SUCCESS);
	LOCAL(cuParamSetSize(f, 12), CUDA_SUCCESS);
	COST(cuLaunchGrid(f, 2, 1), CUDA_SUCCESS, 0, 1);
	IS(word_at(memory), 5 + 4 * 3);
	COST(cuLaunch(f), CUDA_SUCCESS, 0, 1);
	IS(word_at(memory), 5 + 6 * 3);
	LOCAL(cuLaunchGrid(f, 0, 1), BAD);
	LOCAL(cuParamSetv((CUfunction)0x1234, 0, &memory, 8), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuParamSetv(f, 5000, &memory, 8), BAD);
	LOCAL(cuParamSetv(f, 4092, &memory, 8), BAD);
	LOCAL(cuParamSetv(f, 4088, &memory, 8), CUDA_SUCCESS);
	LOCAL(cuLaunch((CUfunction)0x1234), CUDA_ERROR_INVALID_HANDLE);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(launch_old, {"launch", test_launch})
