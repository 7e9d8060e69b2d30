/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/comm.c: the table, and the states of a communicator. */
#include "softgpu/libs/nccl/comm.h"

#include <stdlib.h>

#include "tests/unit/soft_nccl/ranks.h"

static void test_table(void)
{
	struct ncclComm *comm, *other;
	OK(ckt_soft_nccl_comm_make(0, NULL, true, &comm));
	OK(ckt_soft_nccl_comm_make(0, NULL, true, &other));
	OK(ckt_soft_nccl_comm_set_size(comm, 2, 4));
	YES(comm->number != other->number);
	YES(ckt_soft_nccl_comm_get(comm) == comm);
	YES(ckt_soft_nccl_comm_find(other->number) == other);
	YES(ckt_soft_nccl_comm_get(NULL) == NULL);
	YES(ckt_soft_nccl_comm_find(0) == NULL);
	uint64_t number = comm->number;
	ckt_soft_nccl_comm_remove(comm);
	ckt_soft_nccl_comm_remove(comm); /* once more does no harm while it is held */
	YES(ckt_soft_nccl_comm_find(number) == NULL);
	YES(ckt_soft_nccl_comm_get(comm) == NULL);
	IS(comm->rank, 2);
	ckt_soft_nccl_comm_put(comm);
	ckt_soft_nccl_comm_put(comm);
	ckt_soft_nccl_comm_put(other);
	ckt_soft_nccl_comm_remove(other);
	ckt_soft_nccl_comm_put(other);
}

static void test_states(void)
{
	struct ncclComm *comm;
	OK(ckt_soft_nccl_comm_make(0, NULL, true, &comm));
	IS(ckt_soft_nccl_comm_state(comm), ncclInProgress);
	IS(ckt_soft_nccl_comm_usable(comm), ncclInvalidArgument);
	HAS(ckt_soft_nccl_comm_said(), "busy with an earlier call");
	ckt_soft_nccl_comm_done(comm, ncclSuccess);
	ckt_soft_nccl_comm_wait_job(comm);
	IS(ckt_soft_nccl_comm_state(comm), ncclSuccess);
	IS(ckt_soft_nccl_comm_usable(comm), ncclSuccess);
	comm->revoked = true;
	IS(ckt_soft_nccl_comm_usable(comm), ncclInvalidUsage);
	HAS(ckt_soft_nccl_comm_said(), "revoked");
	ckt_soft_nccl_comm_fail(comm, ncclRemoteError);
	ckt_soft_nccl_comm_fail(comm, ncclSystemError);
	IS(ckt_soft_nccl_comm_state(comm), ncclRemoteError);
	IS(ckt_soft_nccl_comm_usable(comm), ncclRemoteError);
	ckt_soft_nccl_comm_remove(comm);
	ckt_soft_nccl_comm_put(comm);
	OK(ckt_soft_nccl_comm_make(0, NULL, true, &comm));
	ckt_soft_nccl_comm_done(comm, ncclSystemError);
	IS(ckt_soft_nccl_comm_state(comm), ncclSystemError);
	NO(comm->ready);
	ckt_soft_nccl_comm_remove(comm);
	ckt_soft_nccl_comm_put(comm);
}

UNIT_SUITE(comm, {"the table", test_table}, {"states", test_states})
