/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/module/jit.c: what the soft GPU makes of options. */
#include "cudacommon/jit.h"
#include "files.h"
#include "softgpu/module/jit.h"

/* What was compiled for another device does not load. */
static void test_targets(void)
{
	static const struct {
		CUjit_option option;
		unsigned value;
		CUresult on_90, on_89;
	} targets[] = {{CU_JIT_TARGET, 90, CUDA_SUCCESS, CUDA_ERROR_INVALID_SOURCE},
		{CU_JIT_TARGET, 0x1005a, CUDA_SUCCESS, CUDA_ERROR_INVALID_SOURCE},
		{CU_JIT_TARGET, 80, CUDA_ERROR_INVALID_SOURCE, CUDA_SUCCESS},
		{CU_JIT_TARGET, 70, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX},
		{CU_JIT_TARGET, 0, CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE},
		{CU_JIT_TARGET, 91, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{CU_JIT_NEW_SM3X_OPT, 0, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX},
		{CU_JIT_OPTIMIZATION_LEVEL, 4, CUDA_SUCCESS, CUDA_SUCCESS},
		{CU_JIT_OPTIMIZATION_LEVEL, ~0u, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX}};
	struct ckt_cudacommon_jit jit;
	for (size_t k = 0; k < sizeof(targets) / sizeof(targets[0]); k++) {
		CUjit_option option = targets[k].option;
		void *value = (void *)(uintptr_t)targets[k].value;
		IS(ckt_jit_read(&jit, 1, &option, &value), CUDA_SUCCESS);
		IS(ckt_soft_jit_check(&jit, 90), targets[k].on_90);
		IS(ckt_soft_jit_check(&jit, 89), targets[k].on_89);
		unsigned target = 77;
		IS(ckt_soft_jit_target(&jit, &target), option == CU_JIT_TARGET);
		IS(target, option == CU_JIT_TARGET ? targets[k].value & 0xffff : 0);
	}
}

/*
 * Who takes the log of errors is told there that nothing is for the device, and of nothing else
 * there alone.
 */
static void test_tells(void)
{
	char log[16];
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)}, *none[] = {log, (void *)0};
	struct ckt_cudacommon_jit jit;
	IS(ckt_jit_read(&jit, 2, options, values), CUDA_SUCCESS);
	YES(ckt_soft_jit_tells(&jit, CUDA_ERROR_NO_BINARY_FOR_GPU));
	YES(!ckt_soft_jit_tells(&jit, CUDA_ERROR_INVALID_PTX));
	IS(ckt_jit_read(&jit, 2, options, none), CUDA_SUCCESS);
	YES(!ckt_soft_jit_tells(&jit, CUDA_ERROR_NO_BINARY_FOR_GPU));
	IS(ckt_jit_read(&jit, 0, NULL, NULL), CUDA_SUCCESS);
	YES(!ckt_soft_jit_tells(&jit, CUDA_ERROR_NO_BINARY_FOR_GPU));
}

UNIT_SUITE(softgpu / module / jit, {"targets", test_targets}, {"tells", test_tells})
