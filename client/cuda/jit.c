/* Options of the JIT compiler and linker: numbers travel, logs come back into the program's buffers. */
#include <string.h>
#include <time.h>

#include "client/cuda/internal.h"

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

/* What a driver refuses before it compiles; the rest it says itself. */
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

CUresult ckt_jit_read(struct ckt_jit *jit, unsigned n_options, const CUjit_option *options, void **values)
{
	unsigned symbols = 0;
	bool has_info = false, has_error = false, has_threads = false, has_target = false;
	*jit = (struct ckt_jit){.start_ns = now_ns()};
	if (n_options && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n_options; i++) {
		unsigned value = (unsigned)(uintptr_t)values[i], answer;
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
			jit->info_log = values[i];
			has_info = true;
			continue;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			jit->info_log_max = value > 65536 ? 65536 : value;
			jit->info_size_slot = &values[i];
			continue;
		case CU_JIT_ERROR_LOG_BUFFER:
			jit->error_log = values[i];
			has_error = true;
			continue;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->error_log_max = value > 65536 ? 65536 : value;
			jit->error_size_slot = &values[i];
			continue;
		case CU_JIT_WALL_TIME:
			jit->wall_time_slot = &values[i];
			continue;
		/* Lists of this process, which mean nothing elsewhere, and how long they are. */
		case CU_JIT_GLOBAL_SYMBOL_NAMES:
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
		case CU_JIT_GLOBAL_SYMBOL_COUNT:
			symbols |= 1u << (options[i] - CU_JIT_GLOBAL_SYMBOL_NAMES);
			continue;
		case CU_JIT_REFERENCED_KERNEL_NAMES:
		case CU_JIT_REFERENCED_KERNEL_COUNT:
		case CU_JIT_REFERENCED_VARIABLE_NAMES:
		case CU_JIT_REFERENCED_VARIABLE_COUNT:
			continue;
		case CU_JIT_THREADS_PER_BLOCK:
			/* What compilers aim at: whole warps, of a block that can be.  Of none, drivers die. */
			has_threads = true;
			answer = value > 1024 ? 1024 : (value + 31) / 32 * 32;
			memcpy(&values[i], &answer, sizeof answer);
			if (!value)
				continue;
			break;
		case CU_JIT_TARGET:
			has_target = true;
			break;
		default:
			break;
		}
		if (!valid(options[i], value))
			return CUDA_ERROR_INVALID_VALUE;
		if (jit->count < 64) {
			jit->keys[jit->count] = options[i];
			jit->values[jit->count++] = (uint64_t)(uintptr_t)values[i];
		}
	}
	/* A buffer and its size go together, and so do the lists of symbols. */
	if (has_info != !!jit->info_size_slot || has_error != !!jit->error_size_slot || (jit->info_log_max && !jit->info_log) ||
	    (jit->error_log_max && !jit->error_log) || (symbols && symbols != 7) || (has_threads && has_target))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult ckt_jit_read_linker(struct ckt_jit *jit, unsigned n_options, const CUjit_option *options, void **values)
{
	CUresult result = ckt_jit_read(jit, n_options, options, values);
	for (unsigned i = 0; i < n_options && !result; i++)
		if (options[i] == CU_JIT_FALLBACK_STRATEGY)
			result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* On return the option's value is how much of the buffer is filled, without the text's end where that is all there. */
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

void ckt_jit_finish(const struct ckt_jit *jit, const char *info, uint32_t info_len, const char *error, uint32_t error_len)
{
	give(jit->info_log, jit->info_log_max, jit->info_size_slot, info, info_len);
	give(jit->error_log, jit->error_log_max, jit->error_size_slot, error, error_len);
	if (jit->wall_time_slot) {
		/* As the program sees it: the way to the GPU counts. */
		float ms = (float)((double)(now_ns() - jit->start_ns) / 1e6);
		memcpy(jit->wall_time_slot, &ms, sizeof ms);
	}
}
