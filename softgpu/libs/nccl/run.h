/* SPDX-License-Identifier: Apache-2.0 */
/* Work on streams: the operations of one communicator in one group. */
#pragma once

#include "softgpu/libs/nccl/comm.h"

enum ckt_op_kind {
	CKT_OP_ALL_REDUCE,
	CKT_OP_REDUCE,
	CKT_OP_BROADCAST,
	CKT_OP_ALL_GATHER,
	CKT_OP_REDUCE_SCATTER,
	CKT_OP_ALL_TO_ALL,
	CKT_OP_GATHER,
	CKT_OP_SCATTER,
	CKT_OP_SEND,
	CKT_OP_RECEIVE,
};

struct ckt_op {
	enum ckt_op_kind kind;
	ncclDataType_t type;
	int peer; /* peer or root */
	const void *from;
	void *to;
	size_t count;
	struct ckt_reduction reduction;
};

struct ckt_work {
	uint64_t comm; /* number of the communicator */
	bool captured;
	size_t count;
	struct ckt_op ops[];
};

/*
 * Runs collectives in order, then all sends and receives in parallel.  A function for a stream;
 * work: a copy of a struct ckt_work.
 */
void ckt_soft_nccl_run_work(const void *work);
/* Runs the operations at once.  0, or -errno as in mesh.h. */
int ckt_soft_nccl_run(
	struct ckt_mesh *mesh, uint64_t *sequence, const struct ckt_op *ops, size_t count);
