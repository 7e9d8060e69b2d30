/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cufft/cufft_callback.c: code stays where it is until the plan ends, is
 * charged, and messages that no client sends are garbage.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/session/long_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/libs/cufft/cufft.h"
#include "tests/unit/worker/cufft_double.h"

static struct ckt_cursor results;

static int set_callback(struct ckt_cufftXtSetJITCallback_args args, bool cut)
{
	size_t size = ckt_cufftXtSetJITCallback_args_size(&args);
	uint8_t *bytes = malloc(size);
	ckt_cufftXtSetJITCallback_args_put(bytes, &args);
	for (size_t i = 0; cut && i < size; i++)
		IS(double_run(CKT_CUFFT_PROC_CUFFTXTSETJITCALLBACK, bytes, i, false, &results),
			INSIDE_GARBAGE);
	int result = double_run(CKT_CUFFT_PROC_CUFFTXTSETJITCALLBACK, bytes, size, false, &results);
	free(bytes);
	return result;
}

static const uint8_t *seen;

static cufftResult look(cufftHandle plan, const char *symbol, const void *code, size_t size,
	cufftXtCallbackType type, void **info)
{
	seen = code;
	return double_status;
}

static void end_plan(const uint8_t *id)
{
	double_run(CKT_CUFFT_PROC_CUFFTDESTROY, id, 8, true, &results);
	ckt_long_call_drain(&ckt_worker, -1);
	double_deferred();
}

static void test_code(void)
{
	static const uint8_t code[100] = {7, 8, 9};
	uint8_t id[8];
	double_begin();
	/* The table has grown for it when it is counted. */
	ckt_put_u64(id, ID(LIB_OBJECT, 800));
	MUST(double_run(CKT_CUFFT_PROC_CUFFTCREATE, id, 8, false, &results), CUDA_SUCCESS);
	end_plan(id);
	uint64_t before = ckt_budget_used();
	MUST(double_run(CKT_CUFFT_PROC_CUFFTCREATE, id, 8, false, &results), CUDA_SUCCESS);
	const struct ckt_cufftXtSetJITCallback_args good = {.plan = ID(LIB_OBJECT, 800),
		.type = CUFFT_CB_ST_REAL,
		.given = 1,
		.caller_info = 0x5000,
		.symbol = "cb",
		.symbol_len = 2,
		.code = code,
		.code_len = sizeof code};
	struct ckt_cufftXtSetJITCallback_args args;
	double_calls();
	IS(set_callback(good, true), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), CUFFT_SUCCESS);
	HAS(double_calls(), " cb 2 100 7 0 6 0x5000)");
	/* The library may read it later: a copy of ours, behind which the message has gone. */
	ckt_cufft.cufftXtSetJITCallback = look;
	uint64_t charged = ckt_budget_used();
	IS(set_callback(good, false), CUDA_SUCCESS);
	const uint8_t *kept = seen;
	YES(!memcmp(kept, code, sizeof code));
	/* In place of the one before, as its step in the log is; of another type beside it. */
	IS(ckt_budget_used(), charged);
	args = good, args.type = CUFFT_CB_LD_REAL;
	IS(set_callback(args, false), CUDA_SUCCESS);
	YES(ckt_budget_used() >= charged + sizeof code);
	YES(!memcmp(kept, code, sizeof code));
	/* What the library refuses leaves nothing. */
	charged = ckt_budget_used();
	double_status = CUFFT_INVALID_VALUE;
	args.type = CUFFT_CB_LD_COMPLEX;
	IS(set_callback(args, false), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), CUFFT_INVALID_VALUE);
	IS(ckt_budget_used(), charged);
	double_status = CUFFT_SUCCESS;
	args = good, args.symbol = "c\0b", args.symbol_len = 3;
	IS(set_callback(args, false), INSIDE_GARBAGE);
	args = good, args.type = -1;
	IS(set_callback(args, false), INSIDE_GARBAGE);
	args = good, args.type = CUFFT_CB_UNDEFINED + 1;
	IS(set_callback(args, false), INSIDE_GARBAGE);
	args = good, args.plan = ID(LIB_OBJECT, 801);
	IS(set_callback(args, false), CUDA_ERROR_INVALID_HANDLE);
	ckt_cufft.cufftXtSetJITCallback = NULL;
	IS(set_callback(good, false), CUDA_ERROR_NOT_SUPPORTED);
	IS(ckt_budget_used(), charged);
	end_plan(id);
	IS(ckt_budget_used(), before);
}

UNIT_SUITE(cufft_callback, {"code", test_code})
