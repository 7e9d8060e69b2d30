/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_lost.c: who is not told of a communicator that has failed, and for how long.
 */
#include "rpc/net.h"
#include "server/worker/session/stamps.h"
#include "tests/unit/worker/nccl_kit.h"

enum { LONG_MS = 50 };

/* Whether a reply waited. */
static bool waits(void)
{
	int64_t began_ms = ckt_net_now_ms();
	ckt_worker_nccl_await_ms = LONG_MS;
	ckt_worker_nccl_await_return(&ckt_worker);
	return ckt_net_now_ms() - began_ms >= LONG_MS;
}

static void keep(bool kept)
{
	ckt_stamps_look(&(struct ckt_call_header){.flags = kept ? CKT_CALL_STAMPED : 0});
	ckt_worker.impose.durable = kept;
}

static void test_lost(void)
{
	uint64_t executed = atomic_load(&ckt_worker.replies.executed);
	nccl_begin();
	nccl_make(NCCL_ID(94), 2, 0);
	NO(ckt_worker_nccl_has_failed(false));
	double_state = ncclInProgress;
	NO(ckt_worker_nccl_has_failed(false));
	double_state = ncclRemoteError;
	YES(ckt_worker_nccl_has_failed(false));
	/* Whose client cannot replay is told, and so is one of whom there is no image, or with all in it. */
	NO(waits());
	keep(true);
	ckt_worker.impose.saved = 0;
	NO(waits());
	ckt_worker.impose.saved = 5;
	atomic_store(&ckt_worker.replies.executed, 5);
	NO(waits());
	atomic_store(&ckt_worker.replies.executed, 6);
	YES(waits());
	/* Its group did not come back: the program goes on. */
	NO(ckt_worker_nccl_has_failed(false));
	NO(waits());
	keep(false);
	ckt_worker.impose.saved = 0;
	atomic_store(&ckt_worker.replies.executed, executed);
	IS(nccl_end(NCCL_ID(94), CKT_NCCL_DESTROY), ncclSuccess);
	/* One that the program ends is nobody's trouble. */
	double_state = ncclSuccess;
	nccl_make(NCCL_ID(95), 2, 0);
	double_state = ncclRemoteError;
	YES(ckt_worker_nccl_has_failed(false));
	IS(nccl_end(NCCL_ID(95), CKT_NCCL_DESTROY), ncclSuccess);
	NO(ckt_worker_nccl_has_failed(false));
	double_state = ncclSuccess;
}

UNIT_SUITE(worker_nccl_lost, {"who waits", test_lost})
