/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes communicators: from a unique ID, for all devices of a process, and from other
 * communicators.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/group.h"
#include "softgpu/libs/nccl/root.h"

static ncclResult_t invalid(const char *what)
{
	ckt_soft_nccl_comm_say("invalid argument: %s", what);
	return ncclInvalidArgument;
}

/* Reads whether calls block; the other settings have no effect. */
static ncclResult_t read_config(const ncclConfig_t *config, bool inherited, bool *ret_blocking)
{
	*ret_blocking = inherited;
	if (!config)
		return ncclSuccess;
	if (config->magic != 0xcafebeef ||
		config->size < offsetof(ncclConfig_t, blocking) + sizeof config->blocking)
		return invalid("the configuration was not made with NCCL_CONFIG_INITIALIZER");
	if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
		config->blocking != 1)
		return invalid("the configuration's blocking is neither 0 nor 1");
	if (config->blocking != NCCL_CONFIG_UNDEF_INT)
		*ret_blocking = config->blocking;
	return ncclSuccess;
}

/* ---- From a unique ID */

static ncclResult_t run_join(struct ckt_job *job)
{
	const char *why = "";
	ncclResult_t result =
		ckt_soft_nccl_root_join(&job->id, &job->comm->mesh, job->comm->device, &why);
	if (result == ncclSuccess)
		ckt_soft_nccl_comm_tell_made(job->comm);
	else
		ckt_soft_nccl_comm_say("rank %d of %d: %s", job->comm->rank, job->comm->size, why);
	return result;
}

/* Precondition: within a group. */
static ncclResult_t join(ncclComm_t *ret_comm, int ranks, const ncclUniqueId *id, int rank,
	int device, CUcontext context, bool blocking)
{
	struct ncclComm *comm;
	ncclResult_t result = ckt_soft_nccl_comm_make(device, context, blocking, &comm);
	if (result != ncclSuccess)
		return result;
	result = ckt_soft_nccl_comm_set_size(comm, rank, ranks);
	if (result != ncclSuccess) {
		ckt_soft_nccl_comm_remove(comm);
		ckt_soft_nccl_comm_put(comm);
		return result;
	}
	*ret_comm = comm;
	return ckt_soft_nccl_group_job(
		&(struct ckt_job){.run = run_join, .comm = comm, .handle = ret_comm, .id = *id});
}

static ncclResult_t init_rank(ncclComm_t *ret_comm, int ranks, const ncclUniqueId *id, int rank,
	const ncclConfig_t *config)
{
	CUcontext context;
	CUdevice device;
	bool blocking;
	if (!ret_comm)
		return invalid("no place for the communicator");
	*ret_comm = NULL;
	if (ranks < 1 || rank < 0 || rank >= ranks)
		return invalid("no such rank");
	if (!ckt_soft_nccl_root_is_id(id))
		return invalid("the unique id is none of ncclGetUniqueId's");
	ncclResult_t result = read_config(config, true, &blocking);
	if (result != ncclSuccess)
		return result;
	if (ckt_softlib_context(&context) != CUDA_SUCCESS ||
		ckt_softlib_driver()->ctx_get_device(&device) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	return join(ret_comm, ranks, id, rank, device, context, blocking);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	return uniqueId ? ckt_soft_nccl_root_make(uniqueId) : invalid("no place for the unique id");
}
CKT_ALIAS(GetUniqueId);

ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(init_rank(comm, nranks, &commId, rank, config));
}
CKT_ALIAS(CommInitRankConfig);

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(init_rank(comm, nranks, &commId, rank, NULL));
}
CKT_ALIAS(CommInitRank);

/* Uses the first ID only: one root can meet the largest supported number of ranks. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
	ncclUniqueId *commIds, ncclConfig_t *config)
{
	if (nId < 1 || nId > nranks || !commIds)
		return invalid("no unique ids, or more than ranks");
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(init_rank(newcomm, nranks, &commIds[0], myrank, config));
}
CKT_ALIAS(CommInitRankScalable);

static ncclResult_t init_all(ncclComm_t *comms, int count, const int *devices)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext context;
	ncclUniqueId id;
	if (!d || ckt_softlib_context(&context) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	ncclResult_t result = ckt_soft_nccl_root_make(&id);
	for (int i = 0; i < count && result == ncclSuccess; i++) {
		int device = devices ? devices[i] : i;
		for (int k = 0; k < i; k++)
			if (device == (devices ? devices[k] : k))
				return ncclInvalidUsage;
		if (d->primary_retain(&context, device) != CUDA_SUCCESS)
			return ncclUnhandledCudaError;
		result = join(&comms[i], count, &id, i, device, context, true);
	}
	return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	if (!comm || ndev < 1)
		return invalid("no communicators to make");
	memset(comm, 0, (size_t)ndev * sizeof *comm);
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(init_all(comm, ndev, devlist));
}
CKT_ALIAS(CommInitAll);

/* ---- From another communicator */

/*
 * Makes the sockets of a communicator whose members are known.  Precondition: parent->control is
 * locked.
 */
static ncclResult_t derive(struct ckt_job *job, const int *members, int count)
{
	int rank = 0;
	while (rank < count && members[rank] != job->parent->rank)
		rank++;
	if (rank == count)
		return ncclInternalError;
	ncclResult_t result = ckt_soft_nccl_comm_set_size(job->comm, rank, count);
	if (result != ncclSuccess)
		return result;
	int error = ckt_soft_nccl_mesh_derive(&job->parent->mesh, members, &job->comm->mesh);
	if (error)
		ckt_soft_nccl_comm_say("rank %d of %d: %s", job->parent->rank, job->parent->size,
			error == -EPIPE ? "a peer is gone" : strerror(-error));
	return !error ? ncclSuccess : error == -EPIPE ? ncclRemoteError : ncclSystemError;
}

struct choice {
	int32_t color, key;
};

static int exchange_choices(struct ckt_mesh *mesh, struct choice *choices)
{
	struct ckt_transfer *transfers = calloc(2 * (size_t)mesh->size, sizeof *transfers);
	if (!transfers)
		return -ENOMEM;
	size_t count = 0;
	for (int p = 0; p < mesh->size; p++) {
		if (p == mesh->rank)
			continue;
		transfers[count++] = (struct ckt_transfer){.peer = p,
			.send = true,
			.data = &choices[mesh->rank],
			.bytes = sizeof *choices};
		transfers[count++] = (struct ckt_transfer){
			.peer = p, .data = &choices[p], .bytes = sizeof *choices};
	}
	int error = ckt_soft_nccl_mesh_exchange(mesh, CKT_PLANE_CONTROL, transfers, count);
	free(transfers);
	return error;
}

/* Lists the ranks of one color, ordered by key, then by their old rank. */
static int members_of(const struct choice *choices, int size, int color, int *members)
{
	int count = 0;
	for (int r = 0; r < size; r++) {
		if (choices[r].color != color)
			continue;
		int at = count++;
		for (; at > 0 && choices[members[at - 1]].key > choices[r].key; at--)
			members[at] = members[at - 1];
		members[at] = r;
	}
	return count;
}

static ncclResult_t run_split(struct ckt_job *job)
{
	struct ncclComm *parent = job->parent;
	struct choice *choices = calloc((size_t)parent->size, sizeof *choices);
	int *members = calloc((size_t)parent->size, sizeof *members);
	ncclResult_t result = choices && members ? ncclSuccess : ncclSystemError;
	if (result == ncclSuccess) {
		pthread_mutex_lock(&parent->control);
		choices[parent->rank] = (struct choice){job->color, job->key};
		int error = exchange_choices(&parent->mesh, choices);
		if (error)
			ckt_soft_nccl_comm_say(
				"rank %d of %d: the others cannot be asked for the split: %s",
				parent->rank, parent->size, strerror(-error));
		result = !error ? ncclSuccess : error == -EPIPE ? ncclRemoteError : ncclSystemError;
		/*
		 * A rank without a color gets no communicator; its job only sends its choice to the
		 * other ranks.
		 */
		if (result == ncclSuccess && job->color != NCCL_SPLIT_NOCOLOR)
			result = derive(job, members,
				members_of(choices, parent->size, job->color, members));
		pthread_mutex_unlock(&parent->control);
	}
	free(choices);
	free(members);
	if (job->color == NCCL_SPLIT_NOCOLOR)
		ckt_soft_nccl_comm_remove(job->comm);
	return result;
}

static ncclResult_t run_shrink(struct ckt_job *job)
{
	pthread_mutex_lock(&job->parent->control);
	ncclResult_t result = derive(job, job->members, job->member_count);
	pthread_mutex_unlock(&job->parent->control);
	return result;
}

/*
 * Makes a communicator with the parent's device, and the job for it.  Takes over the reference to
 * the parent.
 */
static ncclResult_t add_child(struct ckt_job *job, const ncclConfig_t *config)
{
	bool blocking;
	ncclResult_t result = read_config(config, job->parent->blocking, &blocking);
	if (result == ncclSuccess)
		result = ckt_soft_nccl_comm_make(
			job->parent->device, job->parent->context, blocking, &job->comm);
	if (result != ncclSuccess) {
		ckt_soft_nccl_comm_put(job->parent);
		free(job->members);
		return result;
	}
	if (job->handle)
		*job->handle = job->comm;
	return ckt_soft_nccl_group_job(job);
}

static ncclResult_t split(
	ncclComm_t handle, int color, int key, ncclComm_t *newcomm, const ncclConfig_t *config)
{
	struct ncclComm *parent = ckt_soft_nccl_comm_get(handle);
	if (!parent)
		return invalid("no such communicator");
	ncclResult_t result = ckt_soft_nccl_comm_state(parent);
	if (!newcomm)
		result = invalid("no place for the communicator");
	else if (result == ncclInProgress)
		result = invalid("the parent is not ready");
	if (result != ncclSuccess) {
		ckt_soft_nccl_comm_put(parent);
		return result;
	}
	*newcomm = NULL;
	struct ckt_job job = {.run = run_split, .parent = parent, .color = color, .key = key};
	job.handle = color == NCCL_SPLIT_NOCOLOR ? NULL : newcomm;
	return add_child(&job, config);
}

ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(split(comm, color, key, newcomm, config));
}
CKT_ALIAS(CommSplit);

static bool is_excluded(int rank, const int *excluded, int count)
{
	for (int i = 0; i < count; i++)
		if (excluded[i] == rank)
			return true;
	return false;
}

static ncclResult_t shrink(ncclComm_t handle, const int *excluded, int count, ncclComm_t *newcomm,
	const ncclConfig_t *config, int flags)
{
	struct ncclComm *parent = ckt_soft_nccl_comm_get(handle);
	if (!parent)
		return invalid("no such communicator");
	struct ckt_job job = {.run = run_shrink, .parent = parent, .handle = newcomm};
	bool fits = newcomm && excluded && count > 0 &&
		(flags == NCCL_SHRINK_DEFAULT || flags == NCCL_SHRINK_ABORT) && parent->ready &&
		!is_excluded(parent->rank, excluded, count);
	for (int i = 0; fits && i < count; i++)
		fits = excluded[i] >= 0 && excluded[i] < parent->size;
	job.members = fits ? calloc((size_t)parent->size, sizeof *job.members) : NULL;
	if (!job.members) {
		ckt_soft_nccl_comm_put(parent);
		return fits
			? ncclSystemError
			: invalid("a shrink needs other ranks to leave out, and a communicator that is ready");
	}
	*newcomm = NULL;
	for (int r = 0; r < parent->size; r++)
		if (!is_excluded(r, excluded, count))
			job.members[job.member_count++] = r;
	if (flags == NCCL_SHRINK_ABORT)
		ckt_soft_nccl_mesh_stop(&parent->mesh, CKT_PLANE_DATA);
	return add_child(&job, config);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
	ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	ckt_soft_nccl_group_enter();
	return ckt_soft_nccl_group_leave(
		shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
}
CKT_ALIAS(CommShrink);
