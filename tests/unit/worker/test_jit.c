/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options: numbers travel, addresses do not. */
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/jit.h"
#include "tests/unit/suite.h"

static void test_options(void)
{
	struct ckt_jit jit = {0};
	static const struct {
		uint32_t key;
		CUresult result;
		unsigned kept;
	} cases[] = {
		{CU_JIT_MAX_REGISTERS, CUDA_SUCCESS, 1},
		{CU_JIT_TARGET, CUDA_SUCCESS, 1},
		{CU_JIT_WALL_TIME, CUDA_SUCCESS, 0}, /* taken, and nothing comes of it */
		{CU_JIT_INFO_LOG_BUFFER, CUDA_ERROR_NOT_SUPPORTED,
			0}, /* an address of another machine */
		{CU_JIT_ERROR_LOG_BUFFER, CUDA_ERROR_NOT_SUPPORTED, 0},
		{CU_JIT_GLOBAL_SYMBOL_ADDRESSES, CUDA_ERROR_NOT_SUPPORTED, 0},
		{CU_JIT_SPLIT_COMPILE, CUDA_SUCCESS, 1},
		{9999, CUDA_ERROR_NOT_SUPPORTED, 0},
		{UINT32_MAX, CUDA_ERROR_NOT_SUPPORTED, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		unsigned before = jit.count;
		IS(ckt_worker_jit_option(&jit, cases[i].key, 40 + i), cases[i].result);
		IS(jit.count - before, cases[i].kept);
		if (cases[i].kept) {
			IS(jit.keys[before], cases[i].key);
			IS((uintptr_t)jit.values[before], 40 + i);
		}
	}
}

static void test_logs(void)
{
	static const struct {
		uint32_t info, error;
		unsigned options;
	} cases[] = {{0, 0, 0}, {100, 0, 2}, {0, 100, 2}, {1, UINT32_MAX, 4}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_jit jit = {0};
		struct ckt_jit_logs *logs = ckt_worker_jit_logs_new(cases[i].info, cases[i].error);
		ckt_worker_jit_add_logs(&jit, logs);
		IS(jit.count, cases[i].options);
		YES(logs->info_size <= CKT_JIT_LOG_MAX && logs->error_size <= CKT_JIT_LOG_MAX);
		for (unsigned k = 0; k < jit.count; k += 2) {
			bool info = jit.keys[k] == CU_JIT_INFO_LOG_BUFFER;
			YES(jit.values[k] == (info ? logs->info : logs->error));
			IS(jit.keys[k + 1],
				info ? CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
				     : CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
			IS((uintptr_t)jit.values[k + 1], info ? logs->info_size : logs->error_size);
		}
		IS(logs->info[0] + logs->error[0], 0);
		free(logs);
	}
	/* Room for the most that may come, and the logs behind them. */
	YES(COUNT(((struct ckt_jit *)0)->keys) >= CKT_JIT_OPTIONS_MAX + 4);
}

UNIT_SUITE(jit, {"options", test_options}, {"logs", test_logs})
