/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of one process, each on a soft GPU of its own. */
#pragma once

#include <cuda.h>
#include <nccl.h>

#include "softgpu/libs/nccl/mesh.h"
#include "tests/unit/suite.h"

enum { RANKS_MOST = 5 };

/* Not MUST: a thread cannot leave its test. */
#define OK(call) IS(call, 0)

struct rank {
	int rank, count;
	ncclUniqueId id;
	ncclComm_t comm; /* of ranks_with_comms */
	CUstream stream;
	void (*run)(struct rank *rank);
};

/* So many threads run this, each with the context of its own device current and a stream. */
void ranks_run(int count, void (*run)(struct rank *rank));
/*
 * The same with a communicator of all, destroyed afterwards unless the function has done so and
 * cleared it.
 */
void ranks_with_comms(int count, void (*run)(struct rank *rank));

/* Device memory of `count` ints that are value(i) = first + i * step. */
int *ranks_ints(size_t count, int first, int step);
void ranks_free(void *memory);
/* Meshes of so many ranks in this process, all connected; freed by meshes_free. */
void meshes_make(struct ckt_mesh *meshes, int count);
void meshes_free(struct ckt_mesh *meshes, int count);
