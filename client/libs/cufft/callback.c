/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of a plan that are linked into its kernels when it is made: their code (LTO-IR) travels
 * as it is.  Callbacks by device pointers are the static library's alone.
 */
#include "client/libs/cufft/cufft.h"

#include <string.h>

/* As in rpc/api/cufft.api. */
enum { SYMBOL_BYTES_MAX = 1024, CODE_BYTES_MAX = 1040384 };

/* Whatever it is called with, as NVIDIA's shared library (seen of 12.0, 12.2 and 12.5). */
CKT_LIB_EXPORT cufftResult cufftXtSetCallback(
	cufftHandle plan, void **callback_routine, cufftXtCallbackType cbType, void **caller_info)
{
	return CUFFT_NOT_IMPLEMENTED;
}

CKT_LIB_EXPORT cufftResult cufftXtSetJITCallback(cufftHandle handle,
	const char *lto_callback_symbol_name, const void *lto_callback_fatbin,
	size_t lto_callback_fatbin_size, cufftXtCallbackType type, void **caller_info)
{
	static bool once, once_gpus;
	struct ckt_cufftXtSetJITCallback_res res;
	const struct ckt_cufft_plan *plan = ckt_cufft_plan_of(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (!lto_callback_symbol_name || !lto_callback_fatbin || !lto_callback_fatbin_size)
		return CUFFT_INVALID_VALUE;
	size_t symbol_bytes = strlen(lto_callback_symbol_name);
	if (symbol_bytes > SYMBOL_BYTES_MAX || lto_callback_fatbin_size > CODE_BYTES_MAX)
		return (cufftResult)ckt_cufft_unsupported(
			"cufftXtSetJITCallback with more than 1016 KiB of code", &once);
	CUresult result = ckt_cufft_enter();
	if (result)
		return ckt_cufft_failed(result);
	/* One pointer a GPU. */
	for (unsigned i = 1; caller_info && plan->gpus && i < plan->gpus->count; i++)
		if (caller_info[i] != caller_info[0])
			return (cufftResult)ckt_cufft_unsupported(
				"cufftXtSetJITCallback with a pointer for each GPU", &once_gpus);
	const struct ckt_cufftXtSetJITCallback_args args = {.plan = plan->object.id,
		.type = (int32_t)type,
		.given = caller_info != NULL,
		.caller_info = caller_info ? (uintptr_t)caller_info[0] : 0,
		.symbol = lto_callback_symbol_name,
		.symbol_len = (uint32_t)symbol_bytes,
		.code = lto_callback_fatbin,
		.code_len = (uint32_t)lto_callback_fatbin_size};
	return CKT_CUFFT_WAIT(CUFFTXTSETJITCALLBACK, cufftXtSetJITCallback, &args, &res);
}
