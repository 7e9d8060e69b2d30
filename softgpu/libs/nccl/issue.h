/* SPDX-License-Identifier: Apache-2.0 */
/* Puts work on streams.  The work runs in the order of the calls, also on different streams. */
#pragma once

#include "softgpu/libs/nccl/run.h"

/* Fills in and copies the work.  streams[i] is the stream of work->ops[i]. */
ncclResult_t ckt_soft_nccl_issue(
	struct ncclComm *comm, struct ckt_work *work, const CUstream *streams);

/* Releases the communicator's objects that ckt_soft_nccl_issue made. */
void ckt_soft_nccl_issue_end(struct ncclComm *comm);
