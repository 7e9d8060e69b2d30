/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_peers.c, checkpoint/freeze/separable.h: which sessions cannot be
 * saved without others.
 */
#include <errno.h>
#include <string.h>

#include "checkpoint/freeze/separable.h"
#include "tests/unit/worker/nccl_kit.h"

static char text[1024];

static void test_peers(void)
{
	nccl_begin();
	NO(ckt_worker_nccl_has_peers(text, sizeof text));
	nccl_make(NCCL_ID(80), 1, 0);
	NO(ckt_worker_nccl_has_peers(text, sizeof text));
	nccl_make(NCCL_ID(81), 3, 0);
	YES(ckt_worker_nccl_has_peers(text, sizeof text));
	TEXT(text,
		"the session is rank 0 of an NCCL communicator with 3 ranks, and other sessions are ranks 1, 2");
	IS(nccl_end(NCCL_ID(80), CKT_NCCL_DESTROY), ncclSuccess);
	nccl_make(NCCL_ID(82), 3, 2);
	YES(ckt_worker_nccl_has_peers(text, sizeof text));
	HAS(text, "the session is ranks 0, 2 of");
	HAS(text, "other sessions are rank 1");
	nccl_make(NCCL_ID(83), 3, 1);
	/* All are here. */
	NO(ckt_worker_nccl_has_peers(text, sizeof text));
	IS(nccl_end(NCCL_ID(82), CKT_NCCL_ABORT), ncclSuccess);
	IS(nccl_end(NCCL_ID(81), CKT_NCCL_DESTROY), ncclSuccess);
	YES(ckt_worker_nccl_has_peers(text, sizeof text));
	IS(nccl_end(NCCL_ID(83), CKT_NCCL_FORGET), ncclSuccess);
	NO(ckt_worker_nccl_has_peers(text, sizeof text));
	/* Many are not all named. */
	nccl_make(NCCL_ID(84), 1000, 999);
	YES(ckt_worker_nccl_has_peers(text, sizeof text));
	HAS(text, "other sessions are ranks 0, 1, 2, 3, 4, 5, 6, 7 and 991 others");
	IS(nccl_end(NCCL_ID(84), CKT_NCCL_DESTROY), ncclSuccess);
	/* One that could not be made ties nobody. */
	double_answer("ncclCommInitRank", ncclSystemError);
	MUST(nccl_send(NCCL_ID(85), 2, 0, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	IS(nccl_settle(NCCL_ID(85)), ncclSystemError);
	NO(ckt_worker_nccl_has_peers(text, sizeof text));
	IS(nccl_end(NCCL_ID(85), CKT_NCCL_FORGET), ncclSuccess);
}

static void test_alone(void)
{
	nccl_begin();
	IS(ckt_separable_check(&ckt_worker, text, sizeof text), 0);
	nccl_make(NCCL_ID(86), 2, 1);
	IS(ckt_separable_check(&ckt_worker, text, sizeof text), -EBUSY);
	HAS(text,
		"rank 1 of an NCCL communicator with 2 ranks, and other sessions are rank 0, and the session belongs to no job: start all of them with the same CRICKET_JOB");
	strcpy(ckt_worker.job, "train");
	IS(ckt_separable_check(&ckt_worker, text, sizeof text), -EBUSY);
	HAS(text, "with cricketctl checkpoint --job train DIR and cricketctl restore --job DIR");
	/* With its job it may. */
	ckt_worker.checkpoint.hold.wanted = true;
	IS(ckt_separable_check(&ckt_worker, text, sizeof text), 0);
	ckt_worker.checkpoint.hold.wanted = false;
	*ckt_worker.job = 0;
	IS(nccl_end(NCCL_ID(86), CKT_NCCL_DESTROY), ncclSuccess);
	IS(ckt_separable_check(&ckt_worker, text, sizeof text), 0);
}

UNIT_SUITE(
	worker_nccl_peers, {"communicators with others", test_peers}, {"saved alone", test_alone})
