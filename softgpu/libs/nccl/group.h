/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of calls: the calls of a thread between ncclGroupStart and ncclGroupEnd all begin at the
 * end.  A call outside a group is a group by itself.  Jobs make communicators and wait for other
 * ranks; work goes onto streams.
 */
#pragma once

#include "softgpu/libs/nccl/comm.h"
#include "softgpu/libs/nccl/run.h"

struct ckt_job {
	struct ckt_job *next;
	ncclResult_t (*run)(struct ckt_job *job);
	struct ncclComm *comm; /* the communicator that the job makes or uses; held */
	/* the program's, cleared if a blocking job fails; may be NULL */
	ncclComm_t *handle;
	/* held; jobs of one parent run one after the other.  NULL: none */
	struct ncclComm *parent;
	ncclUniqueId id;
	int color, key;
	int *members; /* the parent's ranks, of a shrink; the job's */
	int member_count;
};

void ckt_soft_nccl_group_enter(void);
/* Returns the first error of the group at the end of the outermost one, else its argument. */
ncclResult_t ckt_soft_nccl_group_leave(ncclResult_t result);

/* Belongs to the group from here on, also if it fails.  Between enter and leave. */
ncclResult_t ckt_soft_nccl_group_job(const struct ckt_job *job);
ncclResult_t ckt_soft_nccl_group_work(
	struct ncclComm *comm, CUstream stream, const struct ckt_op *op);
