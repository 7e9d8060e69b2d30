/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile server, of client/libs/nccl/comm.c and answers.c: whatever it answers, the program gets
 * what it asked for or an error, and nothing is read or written that is not the shim's.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nccl/kit.h"

enum { ROUNDS = 1000, RANKS = 4, RANK = 2 };

/* What the program asks of a communicator that there is, while its server lies. */
static void lies_of(ncclComm_t comm, unsigned seed)
{
	ncclResult_t state;
	ncclUniqueId id;
	int count = -7, rank = -7;
	loop_lies = seed;
	IS(ncclCommCount(comm, &count), ncclSuccess);
	IS(ncclCommUserRank(comm, &rank), ncclSuccess);
	IS(count, RANKS);
	IS(rank, RANK);
	ncclCommGetAsyncError(comm, &state);
	YES(strlen(ncclGetLastError(comm)) <= CKT_NCCLGETLASTERROR_RES_TEXT_MAX);
	memset(&id, 0x5a, sizeof id);
	if (ncclGetUniqueId(&id))
		IS(id.internal[100], 0x5a);
	/* A peer for each, so that what is known of peers is looked at. */
	for (int peer = 0; peer < RANKS; peer++)
		ncclSend((void *)16, 1, ncclFloat, peer, comm, 0);
	CU_ASSERT_PTR_NOT_NULL(ncclGetErrorString((ncclResult_t)(int)seed));
}

static void test_answers(void)
{
	ncclUniqueId id = {{1}};
	unsigned made = 0, refused = 0, wrong = 0;
	double_begin();
	ncclComm_t first = kit_comm(RANKS, RANK);
	IS(ncclCommDestroy(first), ncclSuccess);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		ncclComm_t comm = NULL, child = NULL;
		int value;
		/* No more than the double has room for. */
		double_begin();
		loop_lies = i * 2654435761u | 1;
		ncclResult_t status = ncclCommInitRank(&comm, RANKS, id, RANK);
		if (status && status != ncclInProgress) {
			CU_ASSERT_PTR_NULL(comm);
			refused++;
		} else if (comm) {
			made++;
			lies_of(comm, i * 40503u | 1);
			/* Its server may say any ranks of a child, but sound ones. */
			status = ncclCommSplit(comm, 1, 2, &child, NULL);
			if (!status && child) {
				IS(ncclCommCount(child, &value), ncclSuccess);
				wrong += value < 1 || value > CKT_NCCL_RANKS_MAX;
				IS(ncclCommUserRank(child, &value), ncclSuccess);
				wrong += value < 0;
			}
		}
		loop_lies = 0;
		if (child)
			ncclCommAbort(child);
		if (comm)
			ncclCommAbort(comm);
	}
	loop_deferred();
	IS(wrong, 0);
	YES(made > ROUNDS / 10);
	YES(refused > ROUNDS / 10);
}

UNIT_SUITE(nccl_hostile, {"a server's answers", test_answers})
