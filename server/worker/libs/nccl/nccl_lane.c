/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes of communicators: they decide when a call of NCCL starts; see nccl.h.
 *
 *	submit -> lane of its first communicator -> all of its communicators idle? -> a thread
 *	       -> finished on the executor -> the next jobs
 */
#include <stdlib.h>

#include "base/log.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/worker.h"

CUresult ckt_worker_nccl_comm_idle(const struct ckt_nccl_comm *comm)
{
	if (comm->closed)
		return CUDA_ERROR_INVALID_HANDLE;
	return comm->first || comm->running || comm->beside ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/*
 * Aborts a communicator that no object has any more.  While a call still uses it, the end of that
 * call aborts it.
 */
void ckt_worker_nccl_comm_drop_gone(struct ckt_nccl_comm *comm)
{
	if (!comm->gone || comm->first || comm->running || comm->beside || comm->pending)
		return;
	ncclComm_t real = atomic_exchange(&comm->real, NULL);
	if (real && ckt_nccl.ncclCommAbort)
		ckt_nccl.ncclCommAbort(real);
}

/* Communicators whose lanes wait for calls of other communicators; references. */
static struct ckt_nccl_comm *postponed;

static void run_job(struct ckt_long_call_job *base)
{
	struct ckt_nccl_job *job = (struct ckt_nccl_job *)base;
	job->run(job);
}

static bool may_start(const struct ckt_nccl_job *job)
{
	bool may = !job->comm->running && !job->comm->beside;
	for (unsigned i = 0; i < job->other_count; i++)
		may &= !job->others[i]->running && !job->others[i]->beside;
	return may;
}

static void occupy(struct ckt_nccl_job *job, bool on)
{
	if (job->alone) {
		job->comm->beside += on ? 1 : -1u;
		return;
	}
	job->comm->running = job->comm->started = on;
	for (unsigned i = 0; i < job->other_count; i++)
		job->others[i]->running = on;
}

static void finish_job(struct ckt_worker *worker, struct ckt_long_call_job *base);

/* False: the job does not run, and its status says why. */
static bool launch(struct ckt_worker *worker, struct ckt_nccl_job *job)
{
	job->base.run = run_job;
	job->base.finish = finish_job;
	if (!job->base.context)
		job->base.context = job->comm->context;
	/* The context may have ended with the communicator. */
	if (job->comm->gone && !job->comm->pending) {
		job->status = ncclInvalidArgument;
		return false;
	}
	if (job->makes && !ckt_worker_nccl_has_room()) {
		job->status = ncclSystemError;
		return false;
	}
	occupy(job, true);
	if (ckt_blocking_call_submit(worker, &job->base) == 0)
		return true;
	occupy(job, false);
	static bool once;
	if (!once)
		ckt_warning("more calls of NCCL wait for other ranks than the worker has "
			    "threads for (%d)",
			CKT_APART_MAX);
	once = true;
	job->status = ncclSystemError;
	return false;
}

static void finish_one(struct ckt_worker *worker, struct ckt_nccl_job *job)
{
	struct ckt_nccl_comm *comm = job->comm, **others = job->others;
	if (!job->alone) {
		comm->first = job->next;
		if (!comm->first)
			comm->last = NULL;
	}
	for (unsigned i = 0; i < job->other_count; i++)
		ckt_worker_nccl_comm_drop_gone(others[i]);
	job->finish(worker, job);
	free(others);
	ckt_worker_nccl_comm_drop_gone(comm);
	ckt_worker_nccl_comm_unref(comm);
}

/*
 * A loop and not a recursion: a client may have queued any number of calls for which no thread can
 * start.
 */
static void advance(struct ckt_worker *worker, struct ckt_nccl_comm *comm)
{
	comm->refs++;
	while (comm->first && !comm->started) {
		struct ckt_nccl_job *job = comm->first;
		if (!may_start(job)) {
			if (!comm->postponed) {
				comm->postponed = true;
				comm->refs++;
				comm->next_postponed = postponed;
				postponed = comm;
			}
			break;
		}
		if (!launch(worker, job))
			finish_one(worker, job);
	}
	ckt_worker_nccl_comm_unref(comm);
}

static void advance_postponed(struct ckt_worker *worker)
{
	struct ckt_nccl_comm *list = postponed;
	postponed = NULL;
	while (list) {
		struct ckt_nccl_comm *comm = list;
		list = comm->next_postponed;
		comm->postponed = false;
		advance(worker, comm);
		ckt_worker_nccl_comm_unref(comm);
	}
}

static void finish_job(struct ckt_worker *worker, struct ckt_long_call_job *base)
{
	struct ckt_nccl_job *job = (struct ckt_nccl_job *)base;
	struct ckt_nccl_comm *comm = job->comm;
	comm->refs++;
	occupy(job, false);
	finish_one(worker, job);
	advance(worker, comm);
	advance_postponed(worker);
	ckt_worker_nccl_comm_unref(comm);
}

void ckt_worker_nccl_job_submit(
	struct ckt_worker *worker, struct ckt_nccl_comm *comm, struct ckt_nccl_job *job)
{
	job->comm = comm;
	job->next = NULL;
	comm->refs++;
	if (job->alone) {
		if (!launch(worker, job))
			finish_one(worker, job);
		return;
	}
	*(comm->first ? &comm->last->next : &comm->first) = job;
	comm->last = job;
	advance(worker, comm);
}
