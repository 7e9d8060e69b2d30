/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/profiler.c: accepted with a context, as a driver without a profiler does, and
 * refused without a good one.
 */
#include <cudaProfiler.h>

#include "files.h"

static void test_profiler(void)
{
	CUcontext none;
	test_context();
	OK(cuProfilerStart());
	OK(cuProfilerStart());
	OK(cuProfilerStop());
	OK(cuProfilerStop());
	/* All contexts of this thread off its stack. */
	while (cuCtxPopCurrent(&none) == CUDA_SUCCESS)
		;
	CHECK_RESULT(cuProfilerStart(), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuProfilerStop(), CUDA_ERROR_INVALID_CONTEXT);
	test_context();
	CUfunction trap = test_function("trap_now");
	files_catch(2);
	OK(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	CHECK_RESULT(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	CHECK_RESULT(cuProfilerStart(), CUDA_ERROR_LAUNCH_FAILED);
	files_caught();
	test_context();
}

UNIT_SUITE(softgpu / context / profiler, {"profiler", test_profiler})
