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

CUresult ckt_jit_read(struct ckt_jit *jit, unsigned n_options, const CUjit_option *options, void **values)
{
	*jit = (struct ckt_jit){.start_ns = now_ns()};
	for (unsigned i = 0; i < n_options && options; i++) {
		uint64_t value = values ? (uint64_t)(uintptr_t)values[i] : 0;
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
			jit->info_log = (char *)(uintptr_t)value;
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			jit->info_log_max = value > 65536 ? 65536 : (uint32_t)value;
			jit->info_size_slot = values ? &values[i] : NULL;
			break;
		case CU_JIT_ERROR_LOG_BUFFER:
			jit->error_log = (char *)(uintptr_t)value;
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->error_log_max = value > 65536 ? 65536 : (uint32_t)value;
			jit->error_size_slot = values ? &values[i] : NULL;
			break;
		case CU_JIT_WALL_TIME:
			jit->wall_time_slot = values ? &values[i] : NULL;
			break;
		/* Lists of this process, which mean nothing elsewhere, and how long they are. */
		case CU_JIT_GLOBAL_SYMBOL_NAMES:
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
		case CU_JIT_GLOBAL_SYMBOL_COUNT:
		case CU_JIT_REFERENCED_KERNEL_NAMES:
		case CU_JIT_REFERENCED_KERNEL_COUNT:
		case CU_JIT_REFERENCED_VARIABLE_NAMES:
		case CU_JIT_REFERENCED_VARIABLE_COUNT:
			break;
		default:
			if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
				return CUDA_ERROR_INVALID_VALUE;
			if (jit->count < 64) {
				jit->keys[jit->count] = options[i];
				jit->values[jit->count++] = value;
			}
		}
	}
	return CUDA_SUCCESS;
}

static void give(char *buffer, uint32_t max, void **size_slot, const char *text, uint32_t length)
{
	if (!buffer || !max)
		return;
	if (length >= max)
		length = max - 1;
	memcpy(buffer, text, length);
	buffer[length] = 0;
	/* On return the option's value is the number of bytes written. */
	if (size_slot)
		*size_slot = (void *)(uintptr_t)length;
}

void ckt_jit_finish(const struct ckt_jit *jit, const char *info, uint32_t info_len, const char *error, uint32_t error_len)
{
	give(jit->info_log, jit->info_log_max, jit->info_size_slot, info, info_len);
	give(jit->error_log, jit->error_log_max, jit->error_size_slot, error, error_len);
	if (jit->wall_time_slot) {
		/* As the program sees it: the way to the GPU counts. */
		float ms = (float)((double)(now_ns() - jit->start_ns) / 1e6);
		uint32_t bits;
		memcpy(&bits, &ms, sizeof bits);
		*jit->wall_time_slot = (void *)(uintptr_t)bits;
	}
}
