/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the JIT compiler and linker: numbers go to the compiler, and logs come back to the
 * program's buffers.
 */
#include "cudacommon/jit.h"

#include <string.h>
#include <time.h>

/* The options so far that require or exclude others. */
struct given {
	bool info, error, threads, target;
	unsigned symbols; /* one bit for each part of the list of symbols */
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool ckt_jit_writes(CUjit_option option)
{
	return option >= CU_JIT_WALL_TIME && option <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

static uint32_t log_max(unsigned value)
{
	return value > CKT_JIT_LOG_GIVEN_MAX ? CKT_JIT_LOG_GIVEN_MAX : value;
}

/* Handles an option that is no number for the compiler; false if it is one. */
static bool read_place(
	struct ckt_cudacommon_jit *jit, struct given *given, CUjit_option option, void **slot)
{
	unsigned value = (unsigned)(uintptr_t)*slot;
	switch (option) {
	case CU_JIT_INFO_LOG_BUFFER:
		jit->info_log = *slot;
		given->info = true;
		return true;
	case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		jit->info_log_max = log_max(value);
		jit->info_size_slot = slot;
		return true;
	case CU_JIT_ERROR_LOG_BUFFER:
		jit->error_log = *slot;
		given->error = true;
		return true;
	case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
		jit->error_log_max = log_max(value);
		jit->error_size_slot = slot;
		return true;
	case CU_JIT_WALL_TIME:
		jit->wall_time_slot = slot;
		return true;
	/* Lists of this process and their lengths, which have no meaning in the worker. */
	case CU_JIT_GLOBAL_SYMBOL_NAMES:
	case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
	case CU_JIT_GLOBAL_SYMBOL_COUNT:
		given->symbols |= 1u << (option - CU_JIT_GLOBAL_SYMBOL_NAMES);
		return true;
	case CU_JIT_REFERENCED_KERNEL_NAMES:
	case CU_JIT_REFERENCED_KERNEL_COUNT:
	case CU_JIT_REFERENCED_VARIABLE_NAMES:
	case CU_JIT_REFERENCED_VARIABLE_COUNT:
		return true;
	default:
		return false;
	}
}

/* Checks that a driver makes before it compiles; it reports other errors itself. */
static bool valid(CUjit_option option, unsigned value)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
		return value != 0;
	case CU_JIT_CACHE_MODE:
		return value <= CU_JIT_CACHE_OPTION_CA;
	default:
		return (unsigned)option < CU_JIT_NUM_OPTIONS;
	}
}

static CUresult read_number(
	struct ckt_cudacommon_jit *jit, struct given *given, CUjit_option option, void **slot)
{
	unsigned value = (unsigned)(uintptr_t)*slot;
	if (option == CU_JIT_THREADS_PER_BLOCK) {
		/*
		 * The target of compilers: whole warps of a possible block.  A value of 0 crashes
		 * drivers.
		 */
		unsigned answer = value > 1024 ? 1024 : (value + 31) / 32 * 32;
		given->threads = true;
		memcpy(slot, &answer, sizeof answer);
		if (!value)
			return CUDA_SUCCESS;
	}
	given->target |= option == CU_JIT_TARGET;
	if (!valid(option, value))
		return CUDA_ERROR_INVALID_VALUE;
	if (jit->count < CKT_JIT_GIVEN_MAX) {
		jit->keys[jit->count] = option;
		jit->values[jit->count++] = (uint64_t)(uintptr_t)*slot;
	}
	return CUDA_SUCCESS;
}

CUresult ckt_jit_read(struct ckt_cudacommon_jit *jit, unsigned n_options,
	const CUjit_option *options, void **values)
{
	struct given given = {0};
	CUresult result = CUDA_SUCCESS;
	*jit = (struct ckt_cudacommon_jit){.start_ns = now_ns()};
	if (n_options && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n_options && !result; i++)
		if (!read_place(jit, &given, options[i], &values[i]))
			result = read_number(jit, &given, options[i], &values[i]);
	/* A buffer needs its size, and the lists of symbols need each other. */
	if (given.info != !!jit->info_size_slot || given.error != !!jit->error_size_slot ||
		(jit->info_log_max && !jit->info_log) || (jit->error_log_max && !jit->error_log) ||
		(given.symbols && given.symbols != 7) || (given.threads && given.target))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult ckt_jit_read_linker(struct ckt_cudacommon_jit *jit, unsigned n_options,
	const CUjit_option *options, void **values)
{
	CUresult result = ckt_jit_read(jit, n_options, options, values);
	for (unsigned i = 0; i < n_options && !result; i++)
		if (options[i] == CU_JIT_FALLBACK_STRATEGY)
			result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/*
 * On return, the option's value is the number of filled bytes, without the final NUL of a complete
 * text.
 */
static void give(char *buffer, uint32_t max, void **size_slot, const char *text, uint32_t length)
{
	uint32_t used = 0;
	if (buffer && max) {
		uint32_t put = length < max ? length : max - 1;
		memcpy(buffer, text, put);
		buffer[put] = 0;
		used = length < max ? length : max > 1 ? max : 0;
	}
	if (size_slot)
		memcpy(size_slot, &used, sizeof used);
}

void ckt_jit_finish(const struct ckt_cudacommon_jit *jit, const char *info, uint32_t info_len,
	const char *error, uint32_t error_len)
{
	give(jit->info_log, jit->info_log_max, jit->info_size_slot, info, info_len);
	give(jit->error_log, jit->error_log_max, jit->error_size_slot, error, error_len);
	if (jit->wall_time_slot) {
		/* The wall time of the program, from the start of the call. */
		float ms = (float)((double)(now_ns() - jit->start_ns) / 1e6);
		memcpy(jit->wall_time_slot, &ms, sizeof ms);
	}
}
