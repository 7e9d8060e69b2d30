/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One remote call, as the stubs see it.  Threading: any thread, any number at once.
 *
 *	struct ckt_call call;
 *	CUresult result = ckt_call_begin(&call, proc, args_size, CKT_CALL_F_NUMBERED);	   connects at first use
 *	if (result)
 *		return result;
 *	call.p = ckt_x_args_put(call.p, &args);		   exactly args_size bytes, straight into the command queue
 *	result = ckt_call_wait(&call, &reply);		   or return ckt_call_queue(&call) for a batched call
 *	... decode reply.results when result is CUDA_SUCCESS ...
 *	ckt_call_reply_release(&reply);
 *
 * Between begin and queue/wait the queue's lock is held: encode and nothing else.
 */
#pragma once

#include <cuda.h>

#include "base/bounds.h"
#include "rpc/wire.h"

enum {
	CKT_CALL_F_NUMBERED = 1, /* changes state: gets a sequence number */
	CKT_CALL_F_BATCHED = 2,  /* no reply; implies NUMBERED */
	/* is sent although the context has a sticky error, because it destroys the context */
	CKT_CALL_F_ANYWAY = 4,
};

struct ckt_conn;

struct ckt_call {
	struct ckt_conn *conn;
	uint8_t *p;          /* where the arguments go */
	uint8_t *record;     /* the record mark */
	uint32_t size_bytes; /* of the record, mark included */
	uint32_t xid;
	uint64_t seq; /* 0: not numbered */
	uint64_t context;
	unsigned flags;
	bool session_proc;
};

struct ckt_reply {
	struct ckt_cursor results; /* after the CUresult; valid until ckt_call_reply_release */
	void *owned;               /* NULL: nothing to release */
	uint8_t small[256];        /* holds short results */
};

/*
 * Errors: CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child, once the session is lost
 * its sticky error, and once a kernel has failed in the thread's context that error, as CUDA does,
 * until the context is reset. On any error nothing is held.  proc: of CUDA, or CKT_LIB_PROC() of
 * another library.
 */
CUresult ckt_call_begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags);
/*
 * The error of a kernel that failed in the thread's context, for calls that the client answers;
 * CUDA_SUCCESS if none did.
 */
CUresult ckt_call_fault(void);
/* CUDA_SUCCESS; with CRICKET_SYNC=1 the call is waited for and its own result comes back. */
CUresult ckt_call_queue(struct ckt_call *call);
/*
 * The call's own CUresult, or an earlier deferred error if the call itself succeeded.  reply may be
 * NULL if there are no results.
 */
CUresult ckt_call_wait(struct ckt_call *call, struct ckt_reply *ret_reply);
void ckt_call_reply_release(struct ckt_reply *reply);

/*
 * A call whose reply is handled by the thread that reads it, before any later reply is delivered:
 * `done` must not call back into the connection.  It is called exactly once, also when the session
 * is lost (then with that error and an empty cursor).
 */
typedef void (*ckt_call_done)(void *data, CUresult result, struct ckt_cursor *results);
void ckt_call_async(struct ckt_call *call, ckt_call_done done, void *data);
/* Returns once finished(data) is true; checks it again with every reply that arrives. */
void ckt_call_wait_until(bool (*finished)(void *data), void *data);

/* The context of the calling thread's next calls (an id, 0 for none): travels in every header. */
extern __thread uint64_t ckt_call_context __attribute__((tls_model("initial-exec")));
/* The connection that those calls use: the one to the context's device.  Never NULL. */
extern __thread struct ckt_conn *ckt_call_conn __attribute__((tls_model("initial-exec")));

/* The number of servers with sessions of the program: 1, except for a list of addresses. */
extern unsigned ckt_conn_count;
/* Which of them the thread's calls use, from 0. */
unsigned ckt_call_node(void);
/* The connection to the device of that number. */
struct ckt_conn *ckt_call_conn_of(unsigned device);
/*
 * Numbers of devices and ids that are made of them (rpc/handle.h) are the program's; the device's
 * server counts its own.
 */
uint32_t ckt_call_device_slow(unsigned device);
uint64_t ckt_call_id_slow(uint64_t id);
/* The program's number for the current connection's server number. */
uint32_t ckt_call_device_back(uint32_t number);

static inline uint32_t ckt_call_device(unsigned device)
{
	return __builtin_expect(ckt_conn_count > 1, 0) ? ckt_call_device_slow(device) : device;
}

static inline uint64_t ckt_call_id(uint64_t id)
{
	return __builtin_expect(ckt_conn_count > 1, 0) ? ckt_call_id_slow(id) : id;
}

/*
 * The thread is inside a host function, where CUDA must not be called: calls give
 * CUDA_ERROR_NOT_PERMITTED.
 */
extern __thread bool ckt_call_forbidden __attribute__((tls_model("initial-exec")));

/*
 * Gets the calls of host functions that the worker sends, on whichever thread reads; it must not
 * call back into the connection.
 */
struct ckt_host_call_args;
extern void (*_Atomic ckt_conn_host_call)(
	struct ckt_conn *conn, const struct ckt_host_call_args *call);
/* The same for notifications of the worker's driver. */
struct ckt_notify_args;
extern void (*_Atomic ckt_conn_notify)(struct ckt_conn *conn, const struct ckt_notify_args *args);

/* The context was reset: forgets the errors of its kernels. */
void ckt_call_forget_fault(uint64_t context);

/*
 * Grows with each call that changes state, over the thread's connection.  Who finds the number that
 * was there before knows that nothing was issued in between.  0: the next call may fail for a reason
 * of its own (no session, or an error that was not reported yet), so ask.
 */
uint64_t ckt_call_issued(void);
/*
 * Grows with each call that changes state and is waited for, as all are that change settings, and
 * with each new connection, behind which the session may be on another GPU.
 */
uint64_t ckt_call_settings(void);

/* Logs the name once per function and process; always CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_call_unsupported(const char *name, bool *once);
/* Is told each time, if there is one. */
extern void (*ckt_call_noted)(const char *name);
