/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/jit.c: which options there are, and what is written back where. */
#include "../softgpu/files.h"
#include "cudacommon/jit.h"

static void test_read(void)
{
	char info[8], error[8];
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME,
		CU_JIT_TARGET, CU_JIT_OPTIMIZATION_LEVEL};
	void *values[] = {info, (void *)8, error, (void *)(uintptr_t)0x700000008, NULL, (void *)90,
		(void *)4};
	struct ckt_cudacommon_jit jit;
	IS(ckt_jit_read(&jit, 7, options, values), CUDA_SUCCESS);
	YES(jit.info_log == info && jit.error_log == error && jit.wall_time_slot == &values[4]);
	YES(jit.info_size_slot == &values[1] && jit.error_size_slot == &values[3]);
	IS(jit.info_log_max, 8);
	/* an unsigned int in a pointer's place: the rest is not looked at */
	IS(jit.error_log_max, 8);
	IS(jit.count, 2);
	YES(jit.keys[0] == CU_JIT_TARGET && jit.values[0] == 90 &&
		jit.keys[1] == CU_JIT_OPTIMIZATION_LEVEL && jit.values[1] == 4);
	/*
	 * A text too long is cut and ends in NUL; told is how much of the buffer it fills, in the
	 * value's lower half.
	 */
	ckt_jit_finish(&jit, "", 0, "0123456789", 10);
	TEXT(error, "0123456");
	IS((uintptr_t)values[3], 0x700000008);
	ckt_jit_finish(&jit, "", 0, "0123456", 7);
	TEXT(error, "0123456");
	IS((uintptr_t)values[3], 0x700000007);
	TEXT(info, "");
	IS((uintptr_t)values[1], 0);
	float ms;
	jit.start_ns -= 3000000;
	ckt_jit_finish(&jit, "", 0, "", 0);
	memcpy(&ms, &values[4], 4);
	YES(ms >= 3);
	/* A buffer and its size go together. */
	IS(ckt_jit_read(&jit, 1, (CUjit_option[]){CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
		   (void *[]){(void *)100}),
		CUDA_ERROR_INVALID_VALUE);
	IS(ckt_jit_read(&jit, 1, (CUjit_option[]){CU_JIT_INFO_LOG_BUFFER}, (void *[]){info}),
		CUDA_ERROR_INVALID_VALUE);
	IS(ckt_jit_read(&jit, 2, options, (void *[]){NULL, (void *)8}), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_jit_read(&jit, 2, options, (void *[]){NULL, NULL}), CUDA_SUCCESS);
	IS(ckt_jit_read(&jit, 0, NULL, NULL), CUDA_SUCCESS);
	ckt_jit_finish(&jit, "", 0, "unheard", 7);
	YES(jit.error_log == NULL && jit.count == 0);
}

static void test_refused(void)
{
	struct ckt_cudacommon_jit jit;
	CUjit_option option = CU_JIT_NUM_OPTIONS;
	void *value = NULL;
	IS(ckt_jit_read(&jit, 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
	option = (CUjit_option)-1;
	IS(ckt_jit_read(&jit, 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_jit_read(&jit, 1, NULL, &value), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_jit_read(&jit, 1, &option, NULL), CUDA_ERROR_INVALID_VALUE);
	unsigned taken = 0;
	for (option = CU_JIT_MAX_REGISTERS; option < CU_JIT_NUM_OPTIONS; option++)
		taken += ckt_jit_read(&jit, 1, &option, &value) == CUDA_SUCCESS;
	/* no registers, halves of logs, parts of a list of symbols */
	IS(taken, CU_JIT_NUM_OPTIONS - 8);
	option = CU_JIT_CACHE_MODE;
	value = (void *)3;
	IS(ckt_jit_read(&jit, 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_jit_read(&jit, 2, (CUjit_option[]){CU_JIT_TARGET, CU_JIT_THREADS_PER_BLOCK},
		   (void *[]){(void *)90, (void *)64}),
		CUDA_ERROR_INVALID_VALUE);
	/* The linker has no strategy where nothing fits. */
	option = CU_JIT_FALLBACK_STRATEGY;
	value = NULL;
	IS(ckt_jit_read(&jit, 1, &option, &value), CUDA_SUCCESS);
	IS(ckt_jit_read_linker(&jit, 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
	/* More than there is room for are left out. */
	CUjit_option many[CKT_JIT_GIVEN_MAX + 2];
	void *numbers[COUNT(many)] = {0};
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = CU_JIT_OPTIMIZATION_LEVEL;
	IS(ckt_jit_read(&jit, COUNT(many), many, numbers), CUDA_SUCCESS);
	IS(jit.count, CKT_JIT_GIVEN_MAX);
	CUmodule module;
	test_context();
	option = CU_JIT_NUM_OPTIONS;
	CHECK_RESULT(cuModuleLoadDataEx(&module, test_ptx, 1, &option, &value),
		CUDA_ERROR_INVALID_VALUE);
}

/* Threads are answered in whole warps. */
static void test_answers(void)
{
	static const unsigned threads[][2] = {
		{1, 32}, {32, 32}, {33, 64}, {1024, 1024}, {5000, 1024}, {0, 0}};
	struct ckt_cudacommon_jit jit;
	for (size_t k = 0; k < COUNT(threads); k++) {
		CUjit_option option = CU_JIT_THREADS_PER_BLOCK;
		void *value = (void *)(uintptr_t)threads[k][0];
		IS(ckt_jit_read(&jit, 1, &option, &value), CUDA_SUCCESS);
		IS((uintptr_t)value, threads[k][1]);
		IS(jit.count, threads[k][0] != 0); /* of no threads nobody is told */
	}
}

UNIT_SUITE(
	cudacommon / jit, {"read", test_read}, {"refused", test_refused}, {"answers", test_answers})
