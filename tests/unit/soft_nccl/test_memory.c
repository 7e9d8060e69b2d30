/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/memory.c: NCCL's own memory, and registrations. */
#include <nccl.h>
#include <string.h>

#include "tests/unit/soft_nccl/ranks.h"

static void registered(struct rank *rank)
{
	void *memory, *handle, *other;
	ncclWindow_t window;
	OK(ncclMemAlloc(&memory, 4096));
	memset(memory, 1, 4096);
	OK(ncclCommRegister(rank->comm, memory, 4096, &handle));
	/* What lies within is the same one, counted; what goes beyond is another. */
	OK(ncclCommRegister(rank->comm, memory, 100, &other));
	YES(handle == other);
	OK(ncclCommDeregister(rank->comm, other));
	OK(ncclCommRegister(rank->comm, memory, 1 << 20, &other));
	YES(handle != other);
	OK(ncclCommWindowRegister(rank->comm, memory, 4096, &window, NCCL_WIN_COLL_SYMMETRIC));
	IS(ncclCommWindowRegister(rank->comm, memory, 4096, &window, 77), ncclInvalidArgument);
	OK(ncclCommDeregister(rank->comm, handle));
	IS(ncclCommDeregister(rank->comm, handle), ncclInvalidUsage);
	IS(ncclCommDeregister(rank->comm, memory), ncclInvalidUsage);
	OK(ncclCommDeregister(rank->comm, NULL));
	IS(ncclCommDeregister(NULL, other), ncclInvalidArgument);
	OK(ncclCommDeregister(rank->comm, other));
	OK(ncclCommWindowDeregister(rank->comm, window));
	IS(ncclCommRegister(rank->comm, memory, 4096, NULL), ncclInvalidArgument);
	IS(ncclCommRegister(NULL, memory, 4096, &handle), ncclInvalidArgument);
	OK(ncclMemFree(memory));
	OK(ncclMemFree(NULL));
	IS(ncclMemFree(&memory), ncclUnhandledCudaError);
	IS(ncclMemAlloc(NULL, 1), ncclUnhandledCudaError);
	OK(ncclMemAlloc(&memory, 0));
	YES(!memory);
	IS(ncclMemAlloc(&memory, 1ull << 60), ncclUnhandledCudaError);
}

static void test_registered(void)
{
	ranks_with_comms(1, registered);
}

/* softgpu/libs/nccl/memory.c */
UNIT_SUITE(memory, {"registered", test_registered})
