/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/context_limits.h: limits that are set, and local memory of kernels, stand in
 * the journal.
 */
#include "server/worker/objects/context_limits.h"
#include "tests/unit/worker/inside.h"

static struct ckt_journal_entry *last(void)
{
	return &ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1];
}

static void test_limits(void)
{
	size_t value, before = ckt_worker.checkpoint.journal.count;
	IS(ckt_driver.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
	IS(ckt_driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value + 1024), CUDA_SUCCESS);
	IS(ckt_worker.checkpoint.journal.count, before + 1);
	IS(last()->kind, CKT_JOURNAL_LIMIT);
	IS(last()->id, value + 1024);
	IS(ckt_worker.current->ctx.stack_bytes, value + 1024);
	/* One that the driver refuses is no step. */
	YES(ckt_driver.cuCtxSetLimit((CUlimit)999, 1) != CUDA_SUCCESS);
	IS(ckt_worker.checkpoint.journal.count, before + 1);
	/* A kernel's local memory counts where the limit has grown by it. */
	struct ckt_object function = {.function.local_bytes = 64};
	ckt_limits_launched(&ckt_worker, &function);
	IS(ckt_worker.local_bytes, 64);
	IS(ckt_worker.checkpoint.journal.count, before + 1);
	ckt_worker.current->ctx.journal_stack_bytes = value;
	ckt_limits_launched(&ckt_worker, &function);
	IS(last()->id, value + 1024);
	IS(ckt_worker.current->ctx.journal_stack_bytes, value + 1024);
	ckt_driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value);
	ckt_worker.local_bytes = 0;
	ckt_worker.checkpoint.journal.count = before;
	ckt_limits_watch(&ckt_worker); /* again: it does not watch itself */
	IS(ckt_driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value), CUDA_SUCCESS);
	ckt_worker.checkpoint.journal.count = before;
}

UNIT_SUITE(context_limits, {"limits", test_limits})
