/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators: a rank's own state, and its life:
 *
 *	made -> in progress (a job meets the others) -> ready -> in progress (finalize) -> finalized
 *	  abort, from any state: both planes stop, every wait returns, the handle is gone
 *
 * Work on streams names a communicator by its number, not by its address: the work, for example of
 * a graph, may run after the communicator is freed.  Any thread may call these functions.
 */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "softgpu/libs/nccl/mesh.h"
#include "softgpu/libs/nccl/reduce.h"

struct ckt_user_op {
	ncclDataType_t type;
	struct ckt_reduction reduction;
	bool used;
};

struct ncclComm {
	struct ncclComm *next;
	uint64_t number;
	unsigned holders; /* references; the table's lock guards the count */

	int rank, size; /* for a split: known when it is ready */
	int device;
	CUcontext context;
	bool blocking;
	struct ckt_mesh mesh;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy;  /* a job uses it */
	bool ready; /* its ranks have met */
	bool finalized, revoked;
	ncclResult_t error; /* the first error, or ncclSuccess */
	size_t pending;     /* work on streams that has not run, without graphs' work */
	struct ckt_user_op *ops;
	size_t op_count;

	pthread_mutex_t control; /* guards the control plane: one split at a time */
	pthread_mutex_t running; /* guards the data plane: one work at a time */
	uint64_t sequence;       /* count of collectives that ran */

	/*
	 * For calls that put work on streams, one at a time: after is recorded behind the last
	 * work.
	 */
	pthread_mutex_t issue;
	CUevent after, after_captured;
	CUstream stream;
	unsigned long long capture; /* the capture of after_captured; 0: none */
};

/*
 * Sets the text of this process's last error, for ncclGetLastError.  Prints it to stderr if
 * NCCL_DEBUG asks for that.
 */
void ckt_soft_nccl_comm_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* With NCCL_DEBUG=INFO: says, as NCCL does and where NCCL does, that the communicator is made. */
void ckt_soft_nccl_comm_tell_made(const struct ncclComm *comm);
const char *ckt_soft_nccl_comm_said(void);

/*
 * Makes a communicator in the table: busy, and held for the job that makes it ready.  That job
 * calls ckt_soft_nccl_comm_set_size and ckt_soft_nccl_comm_done.
 */
ncclResult_t ckt_soft_nccl_comm_make(
	int device, CUcontext context, bool blocking, struct ncclComm **ret_comm);
ncclResult_t ckt_soft_nccl_comm_set_size(struct ncclComm *comm, int rank, int size);

/*
 * Find a communicator by handle or number, and hold it; NULL if there is none.
 * ckt_soft_nccl_comm_put releases it.
 */
struct ncclComm *ckt_soft_nccl_comm_get(ncclComm_t handle);
struct ncclComm *ckt_soft_nccl_comm_find(uint64_t number);
void ckt_soft_nccl_comm_put(struct ncclComm *comm);
/* Removes it from the table, so that later calls do not find it. */
void ckt_soft_nccl_comm_remove(struct ncclComm *comm);

/* Ends the job that made it busy; an error is permanent. */
void ckt_soft_nccl_comm_done(struct ncclComm *comm, ncclResult_t result);
/* Sets its error; later errors are ignored. */
void ckt_soft_nccl_comm_fail(struct ncclComm *comm, ncclResult_t result);
/* Waits until no job uses it. */
void ckt_soft_nccl_comm_wait_job(struct ncclComm *comm);
/* ncclInProgress while a job uses it, otherwise its error. */
ncclResult_t ckt_soft_nccl_comm_state(struct ncclComm *comm);
/* Whether work may be put on it: ncclSuccess, or the error to return. */
ncclResult_t ckt_soft_nccl_comm_usable(struct ncclComm *comm);
