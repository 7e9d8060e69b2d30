/* SPDX-License-Identifier: Apache-2.0 */
/* Work onto streams, in the order in which it is issued, whatever streams it names. */
#pragma once

#include "softgpu/libs/nccl/run.h"

/* streams[i] is that of work->ops[i]; fills in the rest of the work.  The work is copied. */
ncclResult_t ckt_soft_nccl_issue(
	struct ncclComm *comm, struct ckt_work *work, const CUstream *streams);

/* Releases what ckt_soft_nccl_issue made for the communicator. */
void ckt_soft_nccl_issue_end(struct ncclComm *comm);
