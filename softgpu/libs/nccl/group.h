/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of calls.  The calls of a thread between ncclGroupStart and ncclGroupEnd all begin at the
 * end.  A call outside a group is its own group.  Jobs make communicators and wait for other ranks;
 * work runs on streams.
 */
#pragma once

#include "softgpu/libs/nccl/comm.h"
#include "softgpu/libs/nccl/run.h"

struct ckt_job {
	struct ckt_job *next;
	ncclResult_t (*run)(struct ckt_job *job);
	struct ncclComm *comm; /* the communicator that the job makes or uses; held */
	/* The program's handle, cleared if a blocking job fails; may be NULL. */
	ncclComm_t *handle;
	/* Held; jobs of one parent run one after the other.  NULL: none. */
	struct ncclComm *parent;
	ncclUniqueId id;
	int color, key;
	int *members; /* for a shrink: ranks of the parent; owned by the job */
	int member_count;
};

void ckt_soft_nccl_group_enter(void);
/*
 * At the end of the outermost group, returns the group's first error.  Otherwise returns its
 * argument.
 */
ncclResult_t ckt_soft_nccl_group_leave(ncclResult_t result);

/*
 * The group takes over the references and memory of the job or work, also on failure.  Call between
 * enter and leave.
 */
ncclResult_t ckt_soft_nccl_group_job(const struct ckt_job *job);
ncclResult_t ckt_soft_nccl_group_work(
	struct ncclComm *comm, CUstream stream, const struct ckt_op *op);
