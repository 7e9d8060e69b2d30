/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of NCCL's shim share: it runs over the worker's handlers and a double of the
 * genuine library, in one process.
 */
#pragma once

#include "client/libs/nccl/nccl.h"
#include "tests/unit/libs/loop.h"
#include "tests/unit/nccl/double.h"

/* A communicator of that many ranks; the test ends where there is none. */
static inline ncclComm_t kit_comm(int ranks, int rank)
{
	ncclComm_t comm = NULL;
	ncclUniqueId id = {{1}};
	MUST(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
	MUST(comm != NULL, true);
	return comm;
}

/* Nothing that a test made is left, and nothing was done with what had ended. */
static inline void kit_done(void)
{
	IS(double_living(), 0);
	IS(double_astray(), 0);
	IS(loop_deferred(), CUDA_SUCCESS);
}
