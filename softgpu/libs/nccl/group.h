/*
 * Groups of calls: what a thread calls between ncclGroupStart and ncclGroupEnd begins at the end,
 * together.  A call outside of a group is a group by itself.  Jobs make communicators and wait for
 * other ranks; work goes onto streams.
 */
#pragma once

#include "softgpu/libs/nccl/comm.h"
#include "softgpu/libs/nccl/run.h"

struct ckt_job {
	struct ckt_job *next;
	ncclResult_t (*run)(struct ckt_job *job);
	struct ncclComm *comm; /* what is made or worked on; held */
	/* the program's, cleared where a blocking one fails; may be NULL */
	ncclComm_t *handle;
	/* held; jobs of one parent run one after the other.  NULL: none */
	struct ncclComm *parent;
	ncclUniqueId id;
	int color, key;
	int *members; /* the parent's ranks, of a shrink; the job's */
	int member_count;
};

void ckt_group_enter(void);
/* Gives the first error of the group where it is the outermost's end, else what it is given. */
ncclResult_t ckt_group_leave(ncclResult_t result);

/* The group's from here on, also where it fails.  Between enter and leave. */
ncclResult_t ckt_group_job(const struct ckt_job *job);
ncclResult_t ckt_group_work(struct ncclComm *comm, CUstream stream, const struct ckt_op *op);
