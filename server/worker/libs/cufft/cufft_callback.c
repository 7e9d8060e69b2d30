/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks that are linked into a plan's kernels.  The genuine library may read their code at any
 * time, so the last code of each type stays in place until the plan ends.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/session/host_budget.h"
#include "server/worker/libs/cufft/cufft.h"

struct ckt_cufft_code {
	size_t charged;
	char *symbol; /* points behind the code */
	_Alignas(16) uint8_t bytes[];
};

static void code_free(struct ckt_cufft_code *code)
{
	if (!code)
		return;
	ckt_budget_uncharge(code->charged);
	free(code);
}

static struct ckt_cufft_code *code_new(const struct ckt_cufftXtSetJITCallback_args *args)
{
	size_t size = sizeof(struct ckt_cufft_code) + args->code_len + args->symbol_len + 1;
	if (!ckt_budget_charge(size, "callbacks of cuFFT plans"))
		return NULL;
	struct ckt_cufft_code *code = malloc(size);
	if (!code) {
		ckt_budget_uncharge(size);
		return NULL;
	}
	code->charged = size;
	code->symbol = (char *)code->bytes + args->code_len;
	if (args->code_len)
		memcpy(code->bytes, args->code, args->code_len);
	memcpy(code->symbol, args->symbol, args->symbol_len);
	code->symbol[args->symbol_len] = 0;
	return code;
}

void ckt_worker_cufft_codes_free(struct ckt_cufft_notes *notes)
{
	for (unsigned i = 0; i < CKT_CUFFT_CALLBACKS; i++) {
		code_free(notes->codes[i]);
		notes->codes[i] = NULL;
	}
}

int ckt_worker_cufftXtSetJITCallback(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cufftXtSetJITCallback_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_cufftXtSetJITCallback_args_get(&call->args, &args) || args.type < 0 ||
		args.type > CKT_CUFFT_CALLBACKS || memchr(args.symbol, 0, args.symbol_len))
		return CKT_WCALL_GARBAGE;
	if (!ckt_cufft.cufftXtSetJITCallback)
		return ckt_library_lacks(call, &once);
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	struct ckt_cufft_code *code = code_new(&args);
	if (!code)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The library reads one entry for each GPU of the plan. */
	void *info[MAX_CUDA_DESCRIPTOR_GPUS];
	for (unsigned i = 0; i < MAX_CUDA_DESCRIPTOR_GPUS; i++)
		info[i] = (void *)(uintptr_t)args.caller_info;
	struct ckt_cufftXtSetJITCallback_res res = {
		.status = (int32_t)ckt_cufft.cufftXtSetJITCallback(plan, code->symbol, code->bytes,
			args.code_len, (cufftXtCallbackType)args.type, args.given ? info : NULL)};
	struct ckt_cufft_notes *notes = object->library->data;
	if (res.status == CUFFT_SUCCESS && args.type < CKT_CUFFT_CALLBACKS) {
		code_free(notes->codes[args.type]);
		notes->codes[args.type] = code;
	} else {
		code_free(code);
	}
	call->status = res.status;
	ckt_cufftXtSetJITCallback_res_put(
		ckt_wcall_results(call, ckt_cufftXtSetJITCallback_res_size(&res)), &res);
	return CUDA_SUCCESS;
}
