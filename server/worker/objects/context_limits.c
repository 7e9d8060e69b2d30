/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of contexts, counted and journaled; see context_limits.h. */
#include "server/worker/objects/context_limits.h"

#include "checkpoint/journal.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/worker.h"

static size_t current_limit(CUlimit limit)
{
	size_t value;
	return ckt_driver.cuCtxGetLimit && ckt_driver.cuCtxGetLimit(&value, limit) == CUDA_SUCCESS
		? value
		: 0;
}

/*
 * What the driver takes of the device's memory for a limit; on an H200, exactly that for a stack.
 */
static uint64_t limit_bytes(const struct ckt_worker *worker, CUlimit limit, uint64_t value)
{
	uint64_t bytes = value;
	switch ((int)limit) {
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_PRINTF_FIFO_SIZE:
		return value;
	case CU_LIMIT_STACK_SIZE:
		return worker->current &&
				__builtin_mul_overflow(value,
					worker->devices[worker->current->ctx.device].threads,
					&bytes)
			? UINT64_MAX
			: bytes;
	default:
		return 0;
	}
}

CUresult ckt_limits_charge_local(struct ckt_worker *worker, const struct ckt_object *function)
{
	struct ckt_object *context = worker->current;
	uint64_t need = function->function.local_bytes;
	if (!context || need <= context->ctx.stack_bytes)
		return CUDA_SUCCESS;
	uint64_t before = limit_bytes(worker, CU_LIMIT_STACK_SIZE, context->ctx.stack_bytes),
		 now = limit_bytes(worker, CU_LIMIT_STACK_SIZE, need);
	CUresult result = ckt_context_charge(worker, context, now - before);
	if (!result)
		context->ctx.stack_bytes = need;
	return result;
}

static CUresult(CUDAAPI *real_set_limit)(CUlimit, size_t);

static CUresult CUDAAPI set_limit(CUlimit limit, size_t value)
{
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_object *context = worker->current;
	uint64_t before = limit_bytes(worker, limit, current_limit(limit)),
		 now = limit_bytes(worker, limit, value);
	CUresult result = context && now > before
		? ckt_context_charge(worker, context, now - before)
		: CUDA_SUCCESS;
	if (result)
		return result;
	result = real_set_limit(limit, value);
	if (context && result && now > before)
		ckt_context_uncharge(worker, context, now - before);
	else if (context && !result && now < before)
		ckt_context_uncharge(worker, context, before - now);
	if (!result && worker->current) {
		ckt_journal_add(&worker->checkpoint.journal,
			(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIMIT,
				.id = value,
				.context = worker->current->id,
				.flags = limit});
		if (limit == CU_LIMIT_STACK_SIZE)
			worker->current->ctx.stack_bytes =
				worker->current->ctx.journal_stack_bytes = value;
	}
	return result;
}

void ckt_limits_watch(struct ckt_worker *worker)
{
	(void)worker;
	if (!ckt_driver.cuCtxSetLimit || ckt_driver.cuCtxSetLimit == set_limit)
		return;
	real_set_limit = ckt_driver.cuCtxSetLimit;
	ckt_driver.cuCtxSetLimit = set_limit;
}

/* The driver takes more local memory for it, and its limit tells how much. */
void ckt_limits_launched(struct ckt_worker *worker, const struct ckt_object *function)
{
	struct ckt_object *context = worker->current;
	worker->local_bytes = function->function.local_bytes;
	size_t value = current_limit(CU_LIMIT_STACK_SIZE);
	if (!context || value <= context->ctx.journal_stack_bytes)
		return;
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIMIT,
			.id = value,
			.context = context->id,
			.flags = CU_LIMIT_STACK_SIZE});
	context->ctx.journal_stack_bytes = value;
}

void ckt_limits_grown(struct ckt_worker *worker, struct ckt_object *context)
{
	CUcontext current;
	if (!context || ckt_driver.cuCtxGetCurrent(&current) || current != context->real)
		return;
	size_t value = current_limit(CU_LIMIT_STACK_SIZE);
	if (value <= context->ctx.journal_stack_bytes)
		return;
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIMIT,
			.id = value,
			.context = context->id,
			.flags = CU_LIMIT_STACK_SIZE});
	context->ctx.journal_stack_bytes = value;
}

void ckt_limits_begin(struct ckt_object *context)
{
	size_t value;
	if (ckt_driver.cuCtxGetLimit &&
		ckt_driver.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS)
		context->ctx.stack_bytes = context->ctx.journal_stack_bytes = value;
}
