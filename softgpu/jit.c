/* Options of the just-in-time compiler.  Values travel in void * slots, numbers cast into them; some are written back. */
#include <stdio.h>
#include <string.h>

#include "softgpu/soft.h"

/* What an option that is only a number may be. */
static CUresult check_number(CUjit_option option, unsigned value, struct ckt_soft_jit *jit)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
		return value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_JIT_CACHE_MODE:
		return value <= CU_JIT_CACHE_OPTION_CA ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_JIT_OPTIMIZATION_LEVEL:
		jit->impossible |= (int)value < 0;
		return CUDA_SUCCESS;
	case CU_JIT_NEW_SM3X_OPT:
		jit->impossible = true;
		return CUDA_SUCCESS;
	default:
		return (unsigned)option < CU_JIT_NUM_OPTIONS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_soft_jit_parse(unsigned n_options, CUjit_option *options, void **values, struct ckt_soft_jit *ret_jit)
{
	unsigned symbols = 0;
	bool has_info = false, has_error = false, has_threads = false;
	CUresult result = CUDA_SUCCESS;
	memset(ret_jit, 0, sizeof(*ret_jit));
	if (n_options && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n_options && result == CUDA_SUCCESS; i++) {
		unsigned value = (unsigned)(uintptr_t)values[i];
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
			ret_jit->info_log = values[i];
			has_info = true;
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			ret_jit->info_size = value;
			ret_jit->info_size_slot = &values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER:
			ret_jit->error_log = values[i];
			has_error = true;
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			ret_jit->error_size = value;
			ret_jit->error_size_slot = &values[i];
			break;
		case CU_JIT_WALL_TIME:
			ret_jit->wall_time_slot = &values[i];
			break;
		case CU_JIT_THREADS_PER_BLOCK:
			/* What the compiler aims at: whole warps, of a block that can be. */
			value = value > 1024 ? 1024 : (value + 31) / 32 * 32;
			memcpy(&values[i], &value, sizeof(value));
			has_threads = true;
			break;
		case CU_JIT_TARGET:
			ret_jit->target = value;
			ret_jit->has_target = true;
			break;
		case CU_JIT_GLOBAL_SYMBOL_NAMES:
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
		case CU_JIT_GLOBAL_SYMBOL_COUNT:
			symbols |= 1u << (options[i] - CU_JIT_GLOBAL_SYMBOL_NAMES);
			break;
		default:
			result = check_number(options[i], value, ret_jit);
		}
	}
	/* A buffer and its size go together, and so do the lists of symbols. */
	if (has_info != !!ret_jit->info_size_slot || has_error != !!ret_jit->error_size_slot || (ret_jit->info_size && !ret_jit->info_log) ||
	    (ret_jit->error_size && !ret_jit->error_log) || (symbols && symbols != 7) || (has_threads && ret_jit->has_target))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult ckt_soft_jit_target(const struct ckt_soft_jit *jit, unsigned capability)
{
	static const unsigned old[] = {30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72}, known[] = {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
	unsigned target = jit->target & 0xffff;		/* above it stands which variant */
	if (jit->impossible)
		return CUDA_ERROR_INVALID_PTX;
	if (!jit->has_target)
		return CUDA_SUCCESS;
	if (!target)
		return CUDA_ERROR_INVALID_IMAGE;
	for (size_t k = 0; k < sizeof(old) / sizeof(old[0]); k++)
		if (target == old[k])
			return CUDA_ERROR_INVALID_PTX;
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (target == known[k])
			return target / 10 == capability / 10 && target <= capability ? CUDA_SUCCESS : CUDA_ERROR_INVALID_SOURCE;
	return CUDA_ERROR_INVALID_VALUE;
}

/* The option's value becomes how much of the buffer is filled, without the text's end where that is all there. */
static void write_log(char *buffer, size_t size, void **size_slot, const char *text)
{
	unsigned used = 0;
	if (buffer && size) {
		size_t length = strlen(text), most = size - 1, put = length < most ? length : most;
		memcpy(buffer, text, put);
		buffer[put] = 0;
		used = length <= most ? (unsigned)length : most ? (unsigned)size : 0;
	}
	if (size_slot)
		memcpy(size_slot, &used, sizeof(used));
}

void ckt_soft_jit_finish(struct ckt_soft_jit *jit, const char *error, double seconds)
{
	write_log(jit->error_log, jit->error_size, jit->error_size_slot, error);
	write_log(jit->info_log, jit->info_size, jit->info_size_slot, "");
	if (jit->wall_time_slot) {
		float milliseconds = (float)(seconds * 1e3);
		memcpy(jit->wall_time_slot, &milliseconds, sizeof(milliseconds));
	}
}
