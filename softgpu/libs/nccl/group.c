/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: run jobs in threads, and put work on streams. */
#include "softgpu/libs/nccl/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/issue.h"

struct item {
	struct ncclComm *comm; /* held */
	CUstream stream;
	struct ckt_op op;
};

static _Thread_local struct {
	int depth;
	ncclResult_t error; /* the first error */
	struct ckt_job *jobs, **jobs_end;
	struct item *items;
	size_t item_count, item_room;
} group;

void ckt_soft_nccl_group_enter(void)
{
	if (group.depth++ == 0) {
		group.error = ncclSuccess;
		group.jobs = NULL;
		group.jobs_end = &group.jobs;
		group.item_count = 0;
	}
}

static void job_free(struct ckt_job *job)
{
	ckt_soft_nccl_comm_put(job->comm);
	if (job->parent)
		ckt_soft_nccl_comm_put(job->parent);
	free(job->members);
	free(job);
}

ncclResult_t ckt_soft_nccl_group_job(const struct ckt_job *job)
{
	struct ckt_job *kept = malloc(sizeof *kept);
	if (!kept) {
		ckt_soft_nccl_comm_done(job->comm, ncclSystemError);
		ckt_soft_nccl_comm_put(job->comm);
		if (job->parent)
			ckt_soft_nccl_comm_put(job->parent);
		free(job->members);
		return ncclSystemError;
	}
	*kept = *job;
	kept->next = NULL;
	*group.jobs_end = kept;
	group.jobs_end = &kept->next;
	return ncclSuccess;
}

ncclResult_t ckt_soft_nccl_group_work(
	struct ncclComm *comm, CUstream stream, const struct ckt_op *op)
{
	if (group.item_count == group.item_room) {
		size_t room = group.item_room ? 2 * group.item_room : 16;
		struct item *grown = reallocarray(group.items, room, sizeof *grown);
		if (!grown) {
			ckt_soft_nccl_comm_put(comm);
			return ncclSystemError;
		}
		group.items = grown;
		group.item_room = room;
	}
	group.items[group.item_count++] = (struct item){.comm = comm, .stream = stream, .op = *op};
	return ncclSuccess;
}

/* ---- Jobs */

/* Runs one job to its end. */
static ncclResult_t finish(struct ckt_job *job)
{
	struct ncclComm *comm = job->comm;
	ncclResult_t result = job->run(job);
	/* If a blocking call fails, the program gets no handle. */
	bool drop = result != ncclSuccess && comm->blocking && job->handle;
	ckt_soft_nccl_comm_done(comm, result);
	if (drop) {
		*job->handle = NULL;
		ckt_soft_nccl_comm_remove(comm);
	}
	job_free(job);
	return result;
}

struct chain {
	struct ckt_job *jobs;
	pthread_t thread;
	bool started;
	ncclResult_t result;
};

static void *run_chain(void *data)
{
	struct chain *chain = data;
	for (struct ckt_job *job = chain->jobs, *next; job; job = next) {
		next = job->next;
		ncclResult_t result = finish(job);
		if (chain->result == ncclSuccess)
			chain->result = result;
	}
	return NULL;
}

static void *run_detached(void *data)
{
	run_chain(data);
	free(data);
	return NULL;
}

/* Removes the first job, and all jobs with the same parent, from the list. */
static struct ckt_job *take_chain(void)
{
	struct ckt_job *first = group.jobs, **end = &first->next, **link = &group.jobs;
	group.jobs = first->next;
	*end = NULL;
	while (first->parent && *link) {
		struct ckt_job *job = *link;
		if (job->parent != first->parent) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		job->next = NULL;
		*end = job;
		end = &job->next;
	}
	return first;
}

static ncclResult_t run_in_background(void)
{
	ncclResult_t result = ncclInProgress;
	while (group.jobs) {
		struct chain *chain = calloc(1, sizeof *chain);
		if (!chain)
			return ncclSystemError;
		chain->jobs = take_chain();
		if (!ckt_thread_start(NULL, 0, run_detached, chain))
			continue;
		/* If no thread can start, the caller runs the jobs. */
		run_chain(chain);
		if (chain->result != ncclSuccess)
			result = chain->result;
		free(chain);
	}
	return result;
}

static ncclResult_t run_and_wait(void)
{
	size_t count = 0, room = 0;
	ncclResult_t result = ncclSuccess;
	for (struct ckt_job *job = group.jobs; job; job = job->next)
		room++;
	struct chain *chains = calloc(room, sizeof *chains);
	if (!chains)
		return ncclSystemError;
	while (group.jobs)
		chains[count++].jobs = take_chain();
	/* The caller runs the last chain. */
	for (size_t i = 0; i + 1 < count; i++)
		chains[i].started = !ckt_thread_start(&chains[i].thread, 0, run_chain, &chains[i]);
	for (size_t i = 0; i < count; i++)
		if (!chains[i].started)
			run_chain(&chains[i]);
	for (size_t i = 0; i < count; i++) {
		if (chains[i].started)
			pthread_join(chains[i].thread, NULL);
		if (result == ncclSuccess)
			result = chains[i].result;
	}
	free(chains);
	return result;
}

static ncclResult_t run_jobs(void)
{
	bool blocking = true;
	for (struct ckt_job *job = group.jobs; job; job = job->next)
		blocking = blocking && job->comm->blocking;
	return blocking ? run_and_wait() : run_in_background();
}

/* Drops the jobs that have not run after an error. */
static void drop_jobs(void)
{
	while (group.jobs) {
		struct ckt_job *job = group.jobs;
		group.jobs = job->next;
		ckt_soft_nccl_comm_done(job->comm, group.error);
		if (job->handle) {
			*job->handle = NULL;
			ckt_soft_nccl_comm_remove(job->comm);
		}
		job_free(job);
	}
	group.jobs_end = &group.jobs;
}

/* ---- Work */

/* A rank that sends to itself must receive the message in the same group. */
static ncclResult_t check_own_messages(
	const struct ncclComm *comm, const struct ckt_op *ops, size_t count)
{
	size_t r = 0;
	for (size_t s = 0; s < count; s++) {
		if (ops[s].kind != CKT_OP_SEND || ops[s].peer != comm->rank)
			continue;
		while (r < count && (ops[r].kind != CKT_OP_RECEIVE || ops[r].peer != comm->rank))
			r++;
		if (r == count ||
			ops[r].count * ckt_soft_nccl_type_size(ops[r].type) !=
				ops[s].count * ckt_soft_nccl_type_size(ops[s].type)) {
			ckt_soft_nccl_comm_say(
				"a rank sends to itself without a matching receive in the group");
			return ncclInvalidUsage;
		}
		r++;
	}
	for (; r < count; r++) {
		if (ops[r].kind == CKT_OP_RECEIVE && ops[r].peer == comm->rank) {
			ckt_soft_nccl_comm_say(
				"a rank receives from itself without a matching send in the group");
			return ncclInvalidUsage;
		}
	}
	return ncclSuccess;
}

/*
 * Puts all work of the group for the communicator of item `first` on streams, and marks those
 * items.
 */
static ncclResult_t launch_one(size_t first)
{
	struct ncclComm *comm = group.items[first].comm;
	size_t count = 0;
	struct ckt_work *work = malloc(sizeof *work + group.item_count * sizeof *work->ops);
	CUstream *streams = malloc(group.item_count * sizeof *streams);
	ncclResult_t result = work && streams ? ncclSuccess : ncclSystemError;
	for (size_t i = first; i < group.item_count; i++) {
		struct item *item = &group.items[i];
		if (item->comm != comm)
			continue;
		if (result == ncclSuccess) {
			work->ops[count] = item->op;
			streams[count++] = item->stream;
		}
		if (i != first)
			ckt_soft_nccl_comm_put(comm);
		item->comm = NULL;
	}
	if (result == ncclSuccess) {
		work->count = count;
		result = check_own_messages(comm, work->ops, count);
	}
	if (result == ncclSuccess && group.error == ncclSuccess)
		result = ckt_soft_nccl_issue(comm, work, streams);
	free(work);
	free(streams);
	ckt_soft_nccl_comm_put(comm);
	return result;
}

ncclResult_t ckt_soft_nccl_group_leave(ncclResult_t result)
{
	if (result != ncclSuccess && result != ncclInProgress && group.error == ncclSuccess)
		group.error = result;
	if (--group.depth > 0)
		return result;
	bool in_progress = false;
	if (group.error != ncclSuccess)
		drop_jobs();
	if (group.jobs) {
		ncclResult_t done = run_jobs();
		in_progress = done == ncclInProgress;
		if (!in_progress && done != ncclSuccess)
			group.error = done;
		drop_jobs();
	}
	for (size_t i = 0; i < group.item_count; i++) {
		if (!group.items[i].comm)
			continue;
		result = launch_one(i);
		if (group.error == ncclSuccess)
			group.error = result;
	}
	free(group.items);
	group.items = NULL;
	group.item_count = group.item_room = 0;
	return group.error == ncclSuccess && in_progress ? ncclInProgress : group.error;
}

/* ---- The library's functions */

ncclResult_t ncclGroupStart(void)
{
	ckt_soft_nccl_group_enter();
	return ncclSuccess;
}
CKT_ALIAS(GroupStart);

ncclResult_t ncclGroupEnd(void)
{
	if (group.depth == 0) {
		ckt_soft_nccl_comm_say("ncclGroupEnd without ncclGroupStart");
		return ncclInvalidUsage;
	}
	return ckt_soft_nccl_group_leave(ncclSuccess);
}
CKT_ALIAS(GroupEnd);

/* Starts nothing, and estimates a time of 0. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	if (group.depth == 0)
		return ncclInvalidUsage;
	if (simInfo && (simInfo->magic != 0x74685283 || simInfo->size < sizeof *simInfo))
		return ncclInvalidArgument;
	if (group.depth == 1 && group.error == ncclSuccess)
		group.error = ncclInvalidUsage; /* so that nothing is launched */
	ncclResult_t error = group.error;
	ncclResult_t result = ckt_soft_nccl_group_leave(ncclSuccess);
	if (simInfo)
		simInfo->estimatedTime = 0;
	return result == error ? ncclSuccess : result;
}
CKT_ALIAS(GroupSimulateEnd);
