/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL in the worker.
 *
 * What waits for the other ranks never runs on the executor: it runs beside it (blocking_call.h),
 * one call of a communicator after the other, in the communicator's lane.  So the ranks of one
 * session, and its other threads, never wait for each other here.
 *
 *	nccl_comm	entered at once as pending; made on its lane; nccl_settle waits for that
 *	nccl_group	on the executor: NCCL puts its kernels on the streams and returns.  The client sends so only what has met its peers before
 *	nccl_group_meet	on the lane: connecting waits for the peers
 *	abort		beside everything, because it is to end what waits
 *
 * NCCL takes one call of a communicator at a time, and frees it in the last one.  Which calls come
 * is the client's word, so it is seen to here: a call in a lane begins when nothing runs for any of
 * its communicators; the executor refuses operations on one for which something runs; and from the
 * moment when an end has been asked for, there are no further calls.
 *
 * A restore does not repeat how a communicator was made: each is made anew by its ranks as they
 * are, of a new unique id that all of them are told for its identity (rpc/nccl.h).  What has been
 * split from what does not matter then.
 *
 * Threading: the executor's, or who restores, but for what a job's run() does, and for
 * ckt_worker_nccl_issued.
 */
#pragma once

#include <stdatomic.h>

#include "rpc/gen/nccl_codec.h"
#include "rpc/gen/nccl_functions.h"
#include "rpc/nccl.h"
#include "server/worker/session/long_call.h"
#include "server/worker/libs/call.h"
#include "server/worker/libs/nccl/nccl_members.h"

/* Besides the kinds that the generator counts. */
enum { CKT_NCCL_TYPE_LOADED = 2 };

enum { CKT_NCCL_TYPES_MAX = 64 };

struct ckt_nccl_comm;

/* A call in a communicator's lane; the first member of the caller's struct. */
struct ckt_nccl_job {
	struct ckt_long_call_job base;
	struct ckt_nccl_job *next;
	struct ckt_nccl_comm *comm; /* a reference */
	bool alone;                 /* not in the lane */
	bool makes;                 /* a communicator, for which there must be room */
	/*
	 * Besides `comm`, the communicators that it is for, each once; malloc'd, freed with the
	 * job.
	 */
	struct ckt_nccl_comm **others;
	unsigned other_count;
	/* the library's, set by run; ncclSystemError if there was no thread for it */
	int status;
	/* On a thread of its own. */
	void (*run)(struct ckt_nccl_job *job);
	/* On the executor; frees the job. */
	void (*finish)(struct ckt_worker *worker, struct ckt_nccl_job *job);
};

struct ckt_nccl_comm {
	unsigned refs; /* of its object, of jobs */
	uint64_t id;
	CUcontext context;
	_Atomic(ncclComm_t) real; /* NULL: there is none */
	_Atomic bool ending;      /* stops every thread that polls it */
	bool pending;             /* being made */
	bool gone;                /* its object has ended */
	bool closed;              /* an end was requested: no operations any more */
	bool freed;               /* with that end the library freed it */
	bool running;             /* a call of a lane is for it */
	bool started;             /* that of its own lane */
	bool postponed;           /* its lane waits for calls of others */
	unsigned beside;          /* calls for it that are in no lane: aborts, revocations */
	unsigned mark;            /* to take each once */
	uint64_t charged;         /* of the host's memory */
	bool blocking;
	int status, ranks, rank; /* of its making */
	_Atomic int failed;      /* the first status of a group that was not 0 */
	uint8_t identity[CKT_NCCL_ID_BYTES];
	struct ckt_nccl_job *first, *last; /* the lane; the first one runs, or waits */
	struct ckt_nccl_comm *next_postponed;
	struct ckt_nccl_comm *next_known; /* nccl_peers.c */
	bool known;
	unsigned operator_count;
	struct ckt_nccl_made_operator {
		uint32_t number; /* the client's */
		ncclRedOp_t real;
	} * operators;
};

extern const struct ckt_library ckt_library_nccl;

/* ---- nccl.c */
/*
 * Whether the worker may have more threads and descriptors of NCCL's: each unique id and each
 * communicator needs some.
 */
bool ckt_worker_nccl_has_room(void);

/* ---- nccl_comm.c */
/* The communicator behind an id; CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult ckt_worker_nccl_comm_find(
	struct ckt_worker *worker, uint64_t id, struct ckt_nccl_comm **ret_comm);
void ckt_worker_nccl_comm_unref(struct ckt_nccl_comm *comm);
/* Its object ends. */
void ckt_worker_nccl_comm_end(struct ckt_object *object);

/* ---- nccl_lane.c */
/*
 * Takes a reference for the job, and runs it when those before it in the lane are finished and none
 * of its communicators is busy; or, alone, at once.
 */
void ckt_worker_nccl_job_submit(
	struct ckt_worker *worker, struct ckt_nccl_comm *comm, struct ckt_nccl_job *job);
/*
 * Whether the executor may put operations on it now: CUDA_ERROR_INVALID_HANDLE where it ends,
 * CUDA_ERROR_NOT_READY while a call runs for it.
 */
CUresult ckt_worker_nccl_comm_idle(const struct ckt_nccl_comm *comm);
/* The library's communicator goes where nobody has it any more and nothing runs for it. */
void ckt_worker_nccl_comm_drop_gone(struct ckt_nccl_comm *comm);

/* ---- nccl_restore.c */
/*
 * Whether it was told of which unique id all ranks make it; where not, they meet for one.  Begins
 * the time that they have.
 */
bool ckt_worker_nccl_new_id(struct ckt_worker *worker, const uint8_t *identity,
	ncclUniqueId *ret_id, int64_t *ret_deadline_ms);

/* ---- nccl_rendezvous.c */
/* The id that rank 0 makes, which this may be; ncclRemoteError: it has made none by then. */
ncclResult_t ckt_worker_nccl_meet(
	const uint8_t *identity, int rank, int64_t deadline_ms, ncclUniqueId *ret_id);
/* All ranks have it: rank 0's last word. */
void ckt_worker_nccl_met(const uint8_t *identity);

/* ---- nccl_restore.c, again */
/*
 * Waits for a communicator that is pending; on the executor it does not wait: CUDA_ERROR_TIMEOUT,
 * CUDA_ERROR_NOT_READY.
 */
CUresult ckt_worker_nccl_comm_settled(struct ckt_worker *worker, struct ckt_nccl_comm *comm);
/* The library's `loaded`. */
int ckt_worker_nccl_loaded(struct ckt_worker *worker, char *ret_message, size_t message_size);

void ckt_worker_nccl_count(uint64_t operations);

/*
 * ---- nccl_peers.c: the communicators that there are, for threads that may not look at objects.
 * Executor, or who restores.
 */
void ckt_worker_nccl_peers_add(struct ckt_nccl_comm *comm);
/* One that was not added is nothing. */
void ckt_worker_nccl_peers_remove(struct ckt_nccl_comm *comm);
