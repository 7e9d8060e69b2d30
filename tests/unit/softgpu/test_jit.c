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
	/* A text too long is cut and ends in NUL; told is how much of the buffer it fills, in the value's lower half. */
	ckt_soft_jit_finish(&jit, "0123456789", 0.5);
	TEXT(error, "0123456");
	IS((uintptr_t)values[3], 0x700000008);
	ckt_soft_jit_finish(&jit, "0123456", 0.5);
	TEXT(error, "0123456");
	IS((uintptr_t)values[3], 0x700000007);
	TEXT(info, "");
	IS((uintptr_t)values[1], 0);
	float ms;
	memcpy(&ms, &values[4], 4);
	YES(ms == 500);
	/* A buffer and its size go together. */
	IS(ckt_soft_jit_parse(1, (CUjit_option[]){CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}, (void *[]){(void *)100}, &jit), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_soft_jit_parse(1, (CUjit_option[]){CU_JIT_INFO_LOG_BUFFER}, (void *[]){info}, &jit), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_soft_jit_parse(2, options, (void *[]){NULL, (void *)8}, &jit), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_soft_jit_parse(2, options, (void *[]){NULL, NULL}, &jit), CUDA_SUCCESS);
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
	IS(taken, CU_JIT_NUM_OPTIONS - 8);	/* no registers, halves of logs, parts of a list of symbols */
	option = CU_JIT_CACHE_MODE;
	value = (void *)3;
	IS(ckt_soft_jit_parse(1, &option, &value, &jit), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_soft_jit_parse(2, (CUjit_option[]){CU_JIT_TARGET, CU_JIT_THREADS_PER_BLOCK}, (void *[]){(void *)90, (void *)64}, &jit), CUDA_ERROR_INVALID_VALUE);
	CUmodule module;
	test_context();
	option = CU_JIT_NUM_OPTIONS;
	CHECK_RESULT(cuModuleLoadDataEx(&module, test_ptx, 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
}

/* Threads are answered in whole warps; what was compiled for another device does not load. */
static void test_answers(void)
{
	static const unsigned threads[][2] = {{1, 32}, {32, 32}, {33, 64}, {1024, 1024}, {5000, 1024}};
	static const struct { CUjit_option option; unsigned value; CUresult on_90, on_89; } targets[] = {
		{CU_JIT_TARGET, 90, CUDA_SUCCESS, CUDA_ERROR_INVALID_SOURCE}, {CU_JIT_TARGET, 0x1005a, CUDA_SUCCESS, CUDA_ERROR_INVALID_SOURCE},
		{CU_JIT_TARGET, 80, CUDA_ERROR_INVALID_SOURCE, CUDA_SUCCESS}, {CU_JIT_TARGET, 70, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX},
		{CU_JIT_TARGET, 0, CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE}, {CU_JIT_TARGET, 91, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{CU_JIT_NEW_SM3X_OPT, 0, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX}, {CU_JIT_OPTIMIZATION_LEVEL, 4, CUDA_SUCCESS, CUDA_SUCCESS},
		{CU_JIT_OPTIMIZATION_LEVEL, ~0u, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX}};
	struct ckt_soft_jit jit;
	for (size_t k = 0; k < sizeof(threads) / sizeof(threads[0]); k++) {
		CUjit_option option = CU_JIT_THREADS_PER_BLOCK;
		void *value = (void *)(uintptr_t)threads[k][0];
		IS(ckt_soft_jit_parse(1, &option, &value, &jit), CUDA_SUCCESS);
		IS((uintptr_t)value, threads[k][1]);
	}
	for (size_t k = 0; k < sizeof(targets) / sizeof(targets[0]); k++) {
		CUjit_option option = targets[k].option;
		void *value = (void *)(uintptr_t)targets[k].value;
		IS(ckt_soft_jit_parse(1, &option, &value, &jit), CUDA_SUCCESS);
		IS(ckt_soft_jit_target(&jit, 90), targets[k].on_90);
		IS(ckt_soft_jit_target(&jit, 89), targets[k].on_89);
	}
}

UNIT_SUITE(softgpu/jit, {"parse", test_parse}, {"answers", test_answers}, {"refused", test_refused})
