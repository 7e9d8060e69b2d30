/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One remote call, as the stubs see it.  Threading: any thread, any number at once.
 *
 *	struct ckt_call call;
 *	CUresult result = ckt_call_begin(&call, proc, args_size, CKT_CALL_F_NUMBERED);	   connects at first use
 *	if (result)
 *		return result;
 *	call.p = ckt_x_args_put(call.p, &args);		   exactly args_size bytes, straight into the ring
 *	result = ckt_call_wait(&call, &reply);		   or return ckt_call_queue(&call) for a batched call
 *	... decode reply.results when result is CUDA_SUCCESS ...
 *	ckt_call_reply_release(&reply);
 *
 * The ring's lock is held between begin and queue or wait: only encode in between.
 */
#pragma once

#include <cuda.h>

#include "base/bounds.h"
#include "rpc/wire.h"

enum {
	CKT_CALL_F_NUMBERED = 1, /* changes state: gets a sequence number */
	CKT_CALL_F_BATCHED = 2,  /* no reply; implies NUMBERED */
	/* sent despite a sticky error of the context, because it destroys the context */
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
 * Errors: CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child.  A lost session returns
 * its sticky error.  After a kernel failed in the thread's context, that error is returned until
 * the context is reset, as in CUDA.  After any error no lock is held. proc: a procedure of CUDA, or
 * CKT_LIB_PROC() of another library.
 */
CUresult ckt_call_begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags);
/*
 * The error of a kernel that failed in the thread's context, or CUDA_SUCCESS.  For calls that the
 * client answers itself.
 */
CUresult ckt_call_fault(void);
/* CUDA_SUCCESS; with CRICKET_SYNC=1 the function waits and returns the call's own result. */
CUresult ckt_call_queue(struct ckt_call *call);
/*
 * The call's own CUresult, or an earlier deferred error if the call itself succeeded.  reply may be
 * NULL if there are no results.
 */
CUresult ckt_call_wait(struct ckt_call *call, struct ckt_reply *ret_reply);
void ckt_call_reply_release(struct ckt_reply *reply);

/*
 * The thread that reads the reply calls `done` before it delivers any later reply: `done` must not
 * call back into the connection.  `done` is called exactly once.  If the session is lost, `done`
 * gets that error and an empty cursor.
 */
typedef void (*ckt_call_done)(void *data, CUresult result, struct ckt_cursor *results);
void ckt_call_async(struct ckt_call *call, ckt_call_done done, void *data);
/* Returns once finished(data) is true; calls finished again after every reply. */
void ckt_call_wait_until(bool (*finished)(void *data), void *data);

/* The context of the calling thread's next calls (an id, 0 for none); every header contains it. */
extern __thread uint64_t ckt_call_context __attribute__((tls_model("initial-exec")));
/*
 * The connection of the calling thread's calls: to the server of the context's device.  Never NULL.
 */
extern __thread struct ckt_conn *ckt_call_conn __attribute__((tls_model("initial-exec")));

/* The number of servers with sessions of this program: 1 unless REMOTE_GPU_ADDRESS is a list. */
extern unsigned ckt_conn_count;
/* The number of the server that the thread's calls use, from 0. */
unsigned ckt_call_node(void);
/* The connection to the server of this device. */
struct ckt_conn *ckt_call_conn_of(unsigned device);
/*
 * Translate the program's numbers of devices, and ids made of them (rpc/handle.h), into the numbers
 * of the device's server.
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
 * True while the thread is inside a host function, where CUDA must not be called: calls return
 * CUDA_ERROR_NOT_PERMITTED.
 */
extern __thread bool ckt_call_forbidden __attribute__((tls_model("initial-exec")));

/*
 * Receives the worker's calls of host functions, on the thread that reads; it must not call back
 * into the connection.
 */
struct ckt_host_call_args;
extern void (*_Atomic ckt_conn_host_call)(
	struct ckt_conn *conn, const struct ckt_host_call_args *call);
/* The same for notifications of the worker's driver. */
struct ckt_notify_args;
extern void (*_Atomic ckt_conn_notify)(struct ckt_conn *conn, const struct ckt_notify_args *args);

/* Forgets the errors of a context's kernels after the context was reset. */
void ckt_call_forget_fault(uint64_t context);

/*
 * A number that grows with each numbered call over the thread's connection.  An unchanged number
 * means that nothing was issued in between. 0: the next call may fail for another reason (no
 * session, or an unreported error), so do not skip it.
 */
uint64_t ckt_call_issued(void);
/*
 * A number that grows with each numbered call that is waited for, and with each new connection.
 * All calls that change settings are waited for.  After a reconnect the session may be on another
 * GPU.
 */
uint64_t ckt_call_settings(void);

/*
 * True if what this thread sends may be sent again to another server (replay.h): a command then
 * holds what it needs.
 */
bool ckt_call_durable(void);

/* Logs the name once per function and process.  Always returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_call_unsupported(const char *name, bool *once);
/* Called with the name each time, unless NULL. */
extern void (*ckt_call_noted)(const char *name);
