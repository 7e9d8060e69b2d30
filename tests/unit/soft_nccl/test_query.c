/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/query.c: versions, texts, and what a communicator says of itself. */
#include <nccl.h>
#include <string.h>

#include "tests/unit/soft_nccl/ranks.h"

static void test_texts(void)
{
	int version = 0;
	OK(ncclGetVersion(&version));
	IS(version, NCCL_VERSION_CODE);
	IS(ncclGetVersion(NULL), ncclInvalidArgument);
	TEXT(ncclGetErrorString(ncclSuccess), "no error");
	for (int i = 0; i < ncclNumResults; i++)
		for (int k = 0; k < i; k++)
			YES(strcmp(ncclGetErrorString((ncclResult_t)i),
				    ncclGetErrorString((ncclResult_t)k)) != 0);
	TEXT(ncclGetErrorString((ncclResult_t)99), "unknown result code");
}

static void asked(struct rank *rank)
{
	int count = 0, number = -1, device = -1;
	ncclResult_t state = ncclInternalError;
	OK(ncclCommCount(rank->comm, &count));
	OK(pncclCommUserRank(rank->comm, &number));
	OK(ncclCommCuDevice(rank->comm, &device));
	OK(ncclCommGetAsyncError(rank->comm, &state));
	YES(count == 2 && number == rank->rank && device == rank->rank && state == ncclSuccess);
	IS(ncclCommCount(rank->comm, NULL), ncclInvalidArgument);
	IS(ncclCommUserRank(NULL, &number), ncclInvalidArgument);
	IS(ncclCommCuDevice((ncclComm_t)&count, &device), ncclInvalidArgument);
	IS(ncclCommGetAsyncError(NULL, &state), ncclInvalidArgument);
	IS(ncclCommGetAsyncError(rank->comm, NULL), ncclInvalidArgument);
}

static void test_asked(void)
{
	ranks_with_comms(2, asked);
}

/* softgpu/libs/nccl/query.c */
UNIT_SUITE(query, {"versions and texts", test_texts}, {"of a communicator", test_asked})
