/* softgpu/jit.c: which options there are, and what is written back where. */
#include "files.h"

static void test_parse(void)
{
	char info[8], error[8];
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
				  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME, CU_JIT_TARGET, CU_JIT_OPTIMIZATION_LEVEL};
	void *values[] = {info, (void *)8, error, (void *)(uintptr_t)0x700000008, NULL, (void *)90, (void *)4};
	struct ckt_soft_jit jit;
	IS(ckt_soft_jit_parse(7, options, values, &jit), CUDA_SUCCESS);
	YES(jit.info_log == info && jit.error_log == error && jit.wall_time_slot == &values[4]);
	YES(jit.info_size_slot == &values[1] && jit.error_size_slot == &values[3]);
	IS(jit.info_size, 8);
	IS(jit.error_size, 8);	/* an unsigned int in a pointer's place: the rest is not looked at */
	IS(jit.target, 90);
	/* A text too long is cut, ends in NUL, and its length is told. */
	ckt_soft_jit_finish(&jit, "0123456789", 0.5);
	TEXT(error, "0123456");
	IS((uintptr_t)values[3], 7);
	TEXT(info, "");
	IS((uintptr_t)values[1], 0);
	float ms;
	memcpy(&ms, &values[4], 4);
	YES(ms == 500);
	/* Without buffers only the lengths. */
	IS(ckt_soft_jit_parse(1, (CUjit_option[]){CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}, (void *[]){(void *)100}, &jit), CUDA_SUCCESS);
	IS(ckt_soft_jit_parse(0, NULL, NULL, &jit), CUDA_SUCCESS);
	ckt_soft_jit_finish(&jit, "unheard", 1);
	YES(jit.error_log == NULL && jit.target == 0);
}

static void test_refused(void)
{
	struct ckt_soft_jit jit;
	CUjit_option option = CU_JIT_NUM_OPTIONS;
	void *value = NULL;
	IS(ckt_soft_jit_parse(1, &option, &value, &jit), CUDA_ERROR_INVALID_VALUE);
	option = (CUjit_option)-1;
	IS(ckt_soft_jit_parse(1, &option, &value, &jit), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_soft_jit_parse(1, NULL, &value, &jit), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_soft_jit_parse(1, &option, NULL, &jit), CUDA_ERROR_INVALID_VALUE);
	unsigned taken = 0;
	for (option = CU_JIT_MAX_REGISTERS; option < CU_JIT_NUM_OPTIONS; option++)
		taken += ckt_soft_jit_parse(1, &option, &value, &jit) == CUDA_SUCCESS;
	IS(taken, CU_JIT_NUM_OPTIONS);
	CUmodule module;
	test_context();
	option = CU_JIT_NUM_OPTIONS;
	CHECK_RESULT(cuModuleLoadDataEx(&module, test_ptx, 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(softgpu/jit, {"parse", test_parse}, {"refused", test_refused})
