/* Options of the just-in-time compiler.  Values travel in void * slots, numbers cast into them; some are written back. */
#include <stdio.h>
#include <string.h>

#include "softgpu/soft.h"

CUresult ckt_soft_jit_parse(unsigned n_options, CUjit_option *options, void **values, struct ckt_soft_jit *ret_jit)
{
	memset(ret_jit, 0, sizeof(*ret_jit));
	if (n_options && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n_options; i++) {
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
			ret_jit->info_log = values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			ret_jit->info_size = (unsigned)(uintptr_t)values[i];
			ret_jit->info_size_slot = &values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER:
			ret_jit->error_log = values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			ret_jit->error_size = (unsigned)(uintptr_t)values[i];
			ret_jit->error_size_slot = &values[i];
			break;
		case CU_JIT_WALL_TIME:
			ret_jit->wall_time_slot = &values[i];
			break;
		case CU_JIT_TARGET:
			ret_jit->target = (unsigned)(uintptr_t)values[i];
			break;
		default:
			/* The rest asks for code generation that an interpreter does not do; only nonsense is refused. */
			if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
				return CUDA_ERROR_INVALID_VALUE;
			break;
		}
	}
	return CUDA_SUCCESS;
}

static void write_log(char *buffer, size_t size, void **size_slot, const char *text)
{
	size_t used = 0;
	if (buffer && size) {
		int n = snprintf(buffer, size, "%s", text);
		used = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
	}
	if (size_slot)
		*size_slot = (void *)(uintptr_t)used;
}

void ckt_soft_jit_finish(struct ckt_soft_jit *jit, const char *error, double seconds)
{
	write_log(jit->error_log, jit->error_size, jit->error_size_slot, error);
	write_log(jit->info_log, jit->info_size, jit->info_size_slot, "");
	if (jit->wall_time_slot) {
		float milliseconds = (float)(seconds * 1e3);
		uint32_t bits;
		memcpy(&bits, &milliseconds, sizeof(bits));
		*jit->wall_time_slot = (void *)(uintptr_t)bits;
	}
}
