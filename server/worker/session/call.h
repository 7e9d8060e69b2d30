/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command of the client inside the worker, as the handlers see it.
 *
 * Handlers run one after another on the executor thread, in the order of the command stream, with
 * the context of the call's header current.  A generated handler decodes, translates ids, calls the
 * driver and encodes; a hand-written one may answer later (CKT_WCALL_LATER) from any thread with
 * ckt_wcall_finish.
 */
#pragma once

#include <cuda.h>

#include "rpc/not_supported.h"
#include "rpc/wire.h"

struct ckt_worker;
struct ckt_wcall;

/* What a handler returns besides a CUresult (CUDA's are not negative). */
enum {
	CKT_WCALL_LATER = -1, /* ckt_wcall_finish will be called */
	/* the arguments do not decode: the reply is GARBAGE_ARGS and the connection ends */
	CKT_WCALL_GARBAGE = -2,
};

struct ckt_wcall {
	struct ckt_worker *worker;
	const struct ckt_proc *proc;
	struct ckt_call_header header;
	struct ckt_cursor args; /* valid until the handler returns */
	/* the forwarded library's status, if the handler's result does not hold it; 0: success */
	int status;
	struct ckt_lib_step *step; /* to be recorded if it succeeds; see libs/state.h */
	struct ckt_traced *traced; /* NULL: not in a trace; see call_trace.h */
	int64_t begun_ns;          /* of a waited call, for metrics.h; 0: not known */
	struct ckt_wcall_private *private;
};

typedef int (*ckt_proc_handler)(struct ckt_wcall *call);

enum {
	CKT_PROC_BATCHED = 1,
	CKT_PROC_NUMBERED = 2,
	/*
	 * Of forwarded libraries: what the call does to the object whose id is among its arguments;
	 * see libs/state.h.
	 */
	CKT_PROC_CREATES = 4,
	CKT_PROC_DESTROYS = 8,
	CKT_PROC_SETS = 16,
	CKT_PROC_STATELESS = 32,
	CKT_PROC_OBJECT = 64, /* there is such an id: of what the call is for */
	/* with CKT_PROC_SETS: earlier settings matter for it, whatever is set later */
	CKT_PROC_SEALS = 128,
};

struct ckt_proc {
	const char *name; /* as in the table */
	ckt_proc_handler handler;
	unsigned flags;
	/*
	 * Of the encoded arguments: the object's id, and with CKT_PROC_SETS what tells calls apart
	 * of which the last counts.
	 */
	uint16_t id_at, key_at, key_bytes;
};

/* Generated; ckt_cuda_procs[number], entries without a name are holes. */
extern const struct ckt_proc ckt_cuda_procs[];
extern const unsigned ckt_cuda_proc_count;

/*
 * Room for exactly size_bytes of results in the reply; call at most once, before returning
 * CUDA_SUCCESS.  Never NULL: without memory the results are dropped, and the call fails with
 * CUDA_ERROR_OUT_OF_MEMORY.  Do not call for a batched call.
 */
uint8_t *ckt_wcall_results(struct ckt_wcall *call, size_t size_bytes);
/* Calls that are not answered yet. */
unsigned ckt_wcalls_open(void);
void ckt_wcall_finish(struct ckt_wcall *call, CUresult result);

/*
 * CUDA_ERROR_NOT_SUPPORTED, reported once: in the log, and on the program's stderr before the call
 * returns (kernel_output.h).
 */
CUresult ckt_worker_unsupported(const char *what, bool *once);
#define CKT_WORKER_UNSUPPORTED(what)                  \
	({                                            \
		static bool once_;                    \
		ckt_worker_unsupported(what, &once_); \
	})

/*
 * The driver: every function of cuda.h by its exported name, filled by ckt_driver_open (generated);
 * an entry the driver lacks is NULL.
 */
struct ckt_driver;
extern struct ckt_driver ckt_driver;

/*
 * Real handle of a client's id.  CUDA_ERROR_INVALID_HANDLE (INVALID_CONTEXT for contexts) if there
 * is none of that kind. Stream ids 0, 1 and 2 give the driver's special handles.
 */
CUresult ckt_object_stream(struct ckt_worker *worker, uint64_t id, CUstream *ret_stream);
CUresult ckt_object_event(struct ckt_worker *worker, uint64_t id, CUevent *ret_event);
CUresult ckt_object_module(struct ckt_worker *worker, uint64_t id, CUmodule *ret_module);
CUresult ckt_object_function(struct ckt_worker *worker, uint64_t id, CUfunction *ret_function);
CUresult ckt_object_context(struct ckt_worker *worker, uint64_t id, CUcontext *ret_context);

/* From the executor only. */
/* NULL if there is no memory. */
struct ckt_wcall *ckt_wcall_new(struct ckt_worker *worker);
/* Before a call is executed: memory for its reply, if that is kept.  0 or -ENOMEM. */
int ckt_wcall_prepare(struct ckt_wcall *call);
void ckt_wcall_free(struct ckt_wcall *call);
void ckt_wcall_reject(struct ckt_wcall *call, uint32_t accept_stat);
/* Sends the stored reply of a numbered call that came again, or records who waits for it now. */
void ckt_wcall_replay(
	struct ckt_worker *worker, const struct ckt_call_header *header, uint64_t epoch);
void ckt_worker_defer(struct ckt_worker *worker, CUresult result);
