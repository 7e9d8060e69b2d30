/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL in the worker.
 *
 * A call that waits for other ranks runs beside the executor (blocking_call.h), in the lane of its
 * communicator, one call after the other.  So the ranks of one session, and its other threads,
 * never wait for each other on the executor.
 *
 *	nccl_comm	entered at once as pending; made in its lane; nccl_settle waits for it
 *	nccl_group	on the executor: NCCL puts its kernels on the streams and returns.  The
 *			client sends a group here only if its peers have met before
 *	nccl_group_meet	in the lane: connecting waits for the peers
 *	abort		in no lane, because it must end calls that wait
 *
 * NCCL takes one call of a communicator at a time, and the last call frees the communicator.  The
 * worker enforces this order, because the client chooses the calls: a call in a lane starts when
 * nothing runs for any of its communicators; the executor refuses operations on a communicator with
 * a running call; and after an end was requested no further call starts.
 *
 * A restore does not repeat the creation of a communicator.  Its ranks make each one anew from a
 * new unique id, which all of them receive for its identity (rpc/nccl.h).  So the restore need not
 * know which communicators were split from others.
 *
 * Threading: the executor or the restoring thread, except a job's run() and ckt_worker_nccl_issued.
 */
#pragma once

#include <stdatomic.h>

#include "rpc/gen/nccl_codec.h"
#include "rpc/gen/nccl_functions.h"
#include "rpc/nccl.h"
#include "server/worker/session/long_call.h"
#include "server/worker/libs/call.h"
#include "server/worker/libs/nccl/nccl_members.h"

/* In addition to the types that the generator counts. */
enum { CKT_NCCL_TYPE_LOADED = 2 };

enum { CKT_NCCL_TYPES_MAX = 64 };

struct ckt_nccl_comm;

/* A call in a communicator's lane; the first member of the caller's struct. */
struct ckt_nccl_job {
	struct ckt_long_call_job base;
	struct ckt_nccl_job *next;
	struct ckt_nccl_comm *comm; /* a reference */
	bool alone;                 /* runs at once, in no lane */
	bool makes;                 /* creates a communicator, which needs room */
	/*
	 * The other communicators of the call besides `comm`, each once; malloc'd, freed with the
	 * job.
	 */
	struct ckt_nccl_comm **others;
	unsigned other_count;
	/* the library's status, set by run; ncclSystemError if no thread could start */
	int status;
	/* Runs on a thread of its own. */
	void (*run)(struct ckt_nccl_job *job);
	/* Runs on the executor and frees the job. */
	void (*finish)(struct ckt_worker *worker, struct ckt_nccl_job *job);
};

struct ckt_nccl_comm {
	unsigned refs; /* held by the object and by jobs */
	uint64_t id;
	CUcontext context;
	_Atomic(ncclComm_t) real; /* NULL: none */
	_Atomic bool ending;      /* stops every thread that polls it */
	bool pending;             /* is being created */
	bool gone;                /* its object has ended */
	bool closed;              /* an end was requested: no further operations */
	bool freed;               /* that end made the library free it */
	bool running;             /* a call of some lane runs for it */
	bool started;             /* the running call is of its own lane */
	bool postponed;           /* its lane waits for calls of other communicators */
	unsigned beside;          /* running calls outside lanes: aborts, revocations */
	unsigned mark;            /* prevents taking a communicator twice */
	uint64_t charged;         /* host memory */
	bool blocking;
	int status, ranks, rank; /* results of its creation */
	_Atomic int failed;      /* the first status of a group that was not 0 */
	bool failure_told;       /* the program may know */
	uint8_t identity[CKT_NCCL_ID_BYTES];
	struct ckt_nccl_job *first, *last; /* the lane; the first job runs or waits */
	struct ckt_nccl_comm *next_postponed;
	struct ckt_nccl_comm *next_known; /* nccl_peers.c */
	bool known;
	unsigned operator_count;
	struct ckt_nccl_made_operator {
		uint32_t number; /* as the client numbers it */
		ncclRedOp_t real;
	} * operators;
};

extern const struct ckt_library ckt_library_nccl;

/* ---- nccl.c */
/*
 * Whether the worker may take further threads and descriptors for NCCL: each unique id and each
 * communicator needs some.
 */
bool ckt_worker_nccl_has_room(void);

/* ---- nccl_comm.c */
/* The communicator behind an id; CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult ckt_worker_nccl_comm_find(
	struct ckt_worker *worker, uint64_t id, struct ckt_nccl_comm **ret_comm);
void ckt_worker_nccl_comm_unref(struct ckt_nccl_comm *comm);
/* The communicator's object ends. */
void ckt_worker_nccl_comm_end(struct ckt_object *object);

/* ---- nccl_lane.c */
/*
 * Takes a reference to the communicator for the job.  Starts the job when the earlier jobs in the
 * lane are finished and none of its communicators has a running call; a job that is `alone` starts
 * at once.
 */
void ckt_worker_nccl_job_submit(
	struct ckt_worker *worker, struct ckt_nccl_comm *comm, struct ckt_nccl_job *job);
/*
 * Whether the executor may put operations on the communicator now: CUDA_ERROR_INVALID_HANDLE if it
 * is ending, CUDA_ERROR_NOT_READY while a call runs for it.
 */
CUresult ckt_worker_nccl_comm_idle(const struct ckt_nccl_comm *comm);
/* Aborts the library's communicator if no object has it and no call runs for it. */
void ckt_worker_nccl_comm_drop_gone(struct ckt_nccl_comm *comm);

/* ---- nccl_restore.c */
/*
 * Whether the worker was told the unique id for this identity; if not, the ranks meet to agree on
 * one.  Starts the time limit for meeting.
 */
bool ckt_worker_nccl_new_id(struct ckt_worker *worker, const uint8_t *identity,
	ncclUniqueId *ret_id, int64_t *ret_deadline_ms);

/* ---- nccl_rendezvous.c */
/*
 * Returns the unique id, which rank 0 makes. ncclRemoteError: rank 0 made none before the deadline.
 */
ncclResult_t ckt_worker_nccl_meet(
	const uint8_t *identity, int rank, int64_t deadline_ms, ncclUniqueId *ret_id);
/* Rank 0 calls it when all ranks have the id. */
void ckt_worker_nccl_met(const uint8_t *identity);

/* ---- nccl_restore.c, again */
/*
 * Waits for a pending communicator: CUDA_ERROR_TIMEOUT.  The executor does not wait:
 * CUDA_ERROR_NOT_READY.
 */
CUresult ckt_worker_nccl_comm_settled(struct ckt_worker *worker, struct ckt_nccl_comm *comm);
/* Implements the library's `loaded`. */
int ckt_worker_nccl_loaded(struct ckt_worker *worker, char *ret_message, size_t message_size);

void ckt_worker_nccl_count(uint64_t operations);

/*
 * ---- nccl_peers.c: the list of communicators, for threads that must not read objects.  Called by
 * the executor or the restoring thread.
 */
void ckt_worker_nccl_peers_add(struct ckt_nccl_comm *comm);
/* Does nothing for a communicator that was not added. */
void ckt_worker_nccl_peers_remove(struct ckt_nccl_comm *comm);
/* An end was requested; freed: of which the library frees it, but not before the return. */
void ckt_worker_nccl_peers_close(struct ckt_nccl_comm *comm, bool closed, bool freed);
/*
 * Whether a communicator of several ranks has failed, of which the program was not told; told: it is
 * from now on.  Any thread.
 */
bool ckt_worker_nccl_has_failed(bool told);

/* ---- nccl_together.c: the same threads. */
/* The session's rank is found by those of the others, so that they leave the GPU together. */
void ckt_worker_nccl_together_add(const struct ckt_nccl_comm *comm);
void ckt_worker_nccl_together_remove(const struct ckt_nccl_comm *comm);
