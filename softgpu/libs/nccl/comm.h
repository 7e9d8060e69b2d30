/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators: what a rank knows of itself, and how it comes to its end.
 *
 *	made -> in progress (a job meets the others) -> ready -> in progress (finalize) -> finalized
 *	  abort, from any state: both planes stop, every wait returns, the handle is gone
 *
 * Work on streams names a communicator by its number, never by its address: it may run when the
 * communicator is long gone, as a graph's does. All functions may be called from any thread.
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
	unsigned holders; /* of the table's lock */

	int rank, size; /* known for a split when it is ready */
	int device;
	CUcontext context;
	bool blocking;
	struct ckt_mesh mesh;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy;  /* a job works on it */
	bool ready; /* it has met the others */
	bool finalized, revoked;
	ncclResult_t error; /* the first; ncclSuccess */
	size_t pending;     /* work on streams that has not run, except graphs' */
	struct ckt_user_op *ops;
	size_t op_count;

	pthread_mutex_t control; /* of the control plane: one split at a time */
	pthread_mutex_t running; /* of the data plane: one work at a time */
	uint64_t sequence;       /* collectives that ran */

	/* For calls that put work on streams, one at a time: where the last work went. */
	pthread_mutex_t issue;
	CUevent after, after_captured;
	CUstream stream;
	unsigned long long capture; /* of after_captured; 0: none */
};

/*
 * The last error's text of this process, for ncclGetLastError, and for stderr if NCCL_DEBUG asks
 * for it.
 */
void ckt_soft_nccl_comm_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *ckt_soft_nccl_comm_said(void);

/*
 * A new one in the table, busy and held once for the job that makes it ready by
 * ckt_soft_nccl_comm_set_size and ckt_soft_nccl_comm_done.
 */
ncclResult_t ckt_soft_nccl_comm_make(
	int device, CUcontext context, bool blocking, struct ncclComm **ret_comm);
ncclResult_t ckt_soft_nccl_comm_set_size(struct ncclComm *comm, int rank, int size);

/* By handle or by number: held, NULL if there is none.  ckt_soft_nccl_comm_put releases it. */
struct ncclComm *ckt_soft_nccl_comm_get(ncclComm_t handle);
struct ncclComm *ckt_soft_nccl_comm_find(uint64_t number);
void ckt_soft_nccl_comm_put(struct ncclComm *comm);
/* Removes it from the table: later look-ups do not find it. */
void ckt_soft_nccl_comm_remove(struct ncclComm *comm);

/* A job has finished with it; an error stays. */
void ckt_soft_nccl_comm_done(struct ncclComm *comm, ncclResult_t result);
/* The first error stays. */
void ckt_soft_nccl_comm_fail(struct ncclComm *comm, ncclResult_t result);
/* Waits until no job works on it. */
void ckt_soft_nccl_comm_wait_job(struct ncclComm *comm);
/* ncclInProgress while a job works on it, else its error. */
ncclResult_t ckt_soft_nccl_comm_state(struct ncclComm *comm);
/* Whether work may be put on it: ncclSuccess, else what to return. */
ncclResult_t ckt_soft_nccl_comm_usable(struct ncclComm *comm);
