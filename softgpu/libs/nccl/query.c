/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of communicators; versions and texts. */
#include <stddef.h>

#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/comm.h"

ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return ncclInvalidArgument;
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}
CKT_ALIAS(GetVersion);

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[ncclNumResults] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] =
			"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		[ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
		[ncclInternalError] =
			"internal error - please report this issue to the NCCL developers",
		[ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
		[ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
		[ncclRemoteError] = "remote process exited or there was a network error",
		[ncclInProgress] = "NCCL operation in progress",
	};
	return (unsigned)result < ncclNumResults ? texts[result] : "unknown result code";
}
CKT_ALIAS(GetErrorString);

const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return ckt_soft_nccl_comm_said();
}
CKT_ALIAS(GetLastError);

/* No effect: NCCL_DEBUG is read at every use. */
void ncclResetDebugInit(void)
{
}
extern void pncclResetDebugInit(void) __attribute__((alias("ncclResetDebugInit")));

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *asyncError)
{
	struct ncclComm *comm = asyncError ? ckt_soft_nccl_comm_get(handle) : NULL;
	if (!comm)
		return ncclInvalidArgument;
	*asyncError = ckt_soft_nccl_comm_state(comm);
	ckt_soft_nccl_comm_put(comm);
	return ncclSuccess;
}
CKT_ALIAS(CommGetAsyncError);

enum what { COUNT, DEVICE, RANK };

static ncclResult_t ask(ncclComm_t handle, enum what what, int *ret_value)
{
	struct ncclComm *comm = ret_value ? ckt_soft_nccl_comm_get(handle) : NULL;
	if (!comm)
		return ncclInvalidArgument;
	bool ready = ckt_soft_nccl_comm_state(comm) != ncclInProgress;
	if (ready)
		*ret_value = what == COUNT ? comm->size
			: what == DEVICE   ? comm->device
					   : comm->rank;
	ckt_soft_nccl_comm_put(comm);
	return ready ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	return ask(comm, COUNT, count);
}
CKT_ALIAS(CommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	return ask(comm, DEVICE, device);
}
CKT_ALIAS(CommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	return ask(comm, RANK, rank);
}
CKT_ALIAS(CommUserRank);
