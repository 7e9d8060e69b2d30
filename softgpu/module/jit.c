/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options (cudacommon/jit.h) on the soft GPU; its interpreter ignores most of them. */
#include <string.h>

#include "softgpu/module/jit.h"
#include "cudacommon/jit.h"

bool ckt_soft_jit_target(const struct ckt_cudacommon_jit *jit, unsigned *ret_target)
{
	bool found = false;
	*ret_target = 0;
	for (uint32_t i = 0; i < jit->count; i++)
		if (jit->keys[i] == CU_JIT_TARGET) {
			*ret_target = jit->values[i] & 0xffff; /* the upper bits hold the variant */
			found = true;
		}
	return found;
}

/* Options that make every compilation fail. */
static bool is_impossible(const struct ckt_cudacommon_jit *jit)
{
	for (uint32_t i = 0; i < jit->count; i++)
		if (jit->keys[i] == CU_JIT_NEW_SM3X_OPT ||
			(jit->keys[i] == CU_JIT_OPTIMIZATION_LEVEL && (int)jit->values[i] < 0))
			return true;
	return false;
}

CUresult ckt_soft_jit_check(const struct ckt_cudacommon_jit *jit, unsigned capability)
{
	static const unsigned old[] = {30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72},
			      known[] = {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
	unsigned target;
	if (is_impossible(jit))
		return CUDA_ERROR_INVALID_PTX;
	if (!ckt_soft_jit_target(jit, &target))
		return CUDA_SUCCESS;
	if (!target)
		return CUDA_ERROR_INVALID_IMAGE;
	for (size_t k = 0; k < sizeof(old) / sizeof(old[0]); k++)
		if (target == old[k])
			return CUDA_ERROR_INVALID_PTX;
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (target == known[k])
			return target / 10 == capability / 10 && target <= capability
				? CUDA_SUCCESS
				: CUDA_ERROR_INVALID_SOURCE;
	return CUDA_ERROR_INVALID_VALUE;
}

void ckt_soft_jit_finish(const struct ckt_cudacommon_jit *jit, const char *error)
{
	ckt_jit_finish(jit, "", 0, error, (uint32_t)strlen(error));
}

bool ckt_soft_jit_tells(const struct ckt_cudacommon_jit *jit, CUresult result)
{
	return result == CUDA_ERROR_NO_BINARY_FOR_GPU && jit->error_log_max > 1;
}
