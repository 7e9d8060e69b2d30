/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/jit.c through the client: JIT options: numbers travel, logs come back into the
 * program's buffers as far as they have room.
 */
#include <string.h>

#include "relay.h"

static void test_logs(void)
{
	static const char bad[] =
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry f()\n{\n\tnothing.at.all;\n}\n";
	char error[40], info[40] = "info";
	memset(error, 'x', sizeof error);
	CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS,
		CU_JIT_WALL_TIME};
	void *values[] = {error, (void *)10, info, (void *)sizeof info, (void *)32, NULL};
	CUmodule module;
	IS(cuModuleLoadDataEx(&module, bad, COUNT(keys), keys, values) != CUDA_SUCCESS, true);
	IS(strnlen(error, 10), 9); /* cut to its room, with an end */
	IS(error[10], 'x');
	IS((uintptr_t)values[1], 10); /* as given, where the text was cut */
	memset(error, 'x', sizeof error);
	values[1] = (void *)0;
	IS(cuModuleLoadDataEx(&module, bad, COUNT(keys), keys, values) != CUDA_SUCCESS, true);
	IS(error[0], 'x');
	values[1] = (void *)sizeof error;
	IS(cuModuleLoadDataEx(&module, relay_ptx, COUNT(keys), keys, values), CUDA_SUCCESS);
	IS(strnlen(error, sizeof error), 0);
	/* What travels: the number, not our addresses. */
	size_t size;
	const uint8_t *args = relay_args("module_load", &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(args);
	uint64_t address = __builtin_bswap64((uint64_t)(uintptr_t)error);
	CU_ASSERT_PTR_NULL(memmem(args, size, &address, 8));
	IS(cuModuleUnload(module), CUDA_SUCCESS);
}

UNIT_SUITE(jit, {"logs", test_logs})
