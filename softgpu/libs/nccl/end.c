/* SPDX-License-Identifier: Apache-2.0 */
/* Finalizes, destroys, aborts and revokes communicators. */
#include <stddef.h>

#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/group.h"
#include "softgpu/libs/nccl/issue.h"

static ncclResult_t unknown(void)
{
	ckt_soft_nccl_comm_say("invalid argument: no such communicator");
	return ncclInvalidArgument;
}

/* Waits until all work on streams has run. */
static void drain(struct ncclComm *comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->pending)
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

static ncclResult_t run_finalize(struct ckt_job *job)
{
	drain(job->comm);
	return ckt_soft_nccl_comm_state(job->comm) == ncclInProgress ? ncclSuccess
								     : job->comm->error;
}

static ncclResult_t finalize(ncclComm_t handle)
{
	struct ncclComm *comm = ckt_soft_nccl_comm_get(handle);
	if (!comm)
		return unknown();
	pthread_mutex_lock(&comm->lock);
	bool fits = !comm->busy && !comm->finalized && !comm->revoked;
	if (fits)
		comm->finalized = comm->busy = true;
	pthread_mutex_unlock(&comm->lock);
	if (!fits) {
		ckt_soft_nccl_comm_put(comm);
		ckt_soft_nccl_comm_say(
			"invalid argument: the communicator is not ready to be finalized");
		return ncclInvalidArgument;
	}
	return ckt_soft_nccl_group_job(&(struct ckt_job){.run = run_finalize, .comm = comm});
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(finalize(comm));
}
CKT_ALIAS(CommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t handle)
{
	if (!handle)
		return ncclSuccess;
	struct ncclComm *comm = ckt_soft_nccl_comm_get(handle);
	if (!comm)
		return unknown();
	ckt_soft_nccl_comm_wait_job(comm);
	drain(comm);
	ckt_soft_nccl_issue_end(comm);
	ckt_soft_nccl_comm_remove(comm);
	ckt_soft_nccl_comm_put(comm);
	return ncclSuccess;
}
CKT_ALIAS(CommDestroy);

/* Stops the data plane and waits until no thread uses it. */
static void stop_work(struct ncclComm *comm)
{
	ckt_soft_nccl_mesh_stop(&comm->mesh, CKT_PLANE_DATA);
	pthread_mutex_lock(&comm->running);
	pthread_mutex_unlock(&comm->running);
}

ncclResult_t ncclCommAbort(ncclComm_t handle)
{
	if (!handle)
		return ncclSuccess;
	struct ncclComm *comm = ckt_soft_nccl_comm_get(handle);
	if (!comm)
		return unknown();
	ckt_soft_nccl_mesh_stop(&comm->mesh, CKT_PLANE_CONTROL);
	ckt_soft_nccl_mesh_stop(&comm->mesh, CKT_PLANE_DATA);
	ckt_soft_nccl_comm_wait_job(comm);
	stop_work(comm);
	ckt_soft_nccl_issue_end(comm);
	ckt_soft_nccl_comm_remove(comm);
	ckt_soft_nccl_comm_put(comm);
	return ncclSuccess;
}
CKT_ALIAS(CommAbort);

/* Stops the operations in progress at once; splits and shrinks still work. */
ncclResult_t ncclCommRevoke(ncclComm_t handle, int revokeFlags)
{
	struct ncclComm *comm = ckt_soft_nccl_comm_get(handle);
	if (!comm)
		return unknown();
	ncclResult_t result = ncclSuccess;
	if (revokeFlags != NCCL_REVOKE_DEFAULT ||
		ckt_soft_nccl_comm_state(comm) == ncclInProgress) {
		ckt_soft_nccl_comm_say(
			"invalid argument: revokeFlags is not 0, or the communicator is not ready");
		result = ncclInvalidArgument;
	} else {
		pthread_mutex_lock(&comm->lock);
		comm->revoked = true;
		pthread_mutex_unlock(&comm->lock);
		stop_work(comm);
	}
	ckt_soft_nccl_comm_put(comm);
	return result;
}
CKT_ALIAS(CommRevoke);
