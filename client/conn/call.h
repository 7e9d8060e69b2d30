/*
 * One remote call, as the stubs see it.  Threading: any thread, any number at once.
 *
 *	struct ckt_call call;
 *	CUresult result = ckt_call_begin(&call, proc, args_size, CKT_CALL_F_NUMBERED);	   connects at first use
 *	if (result)
 *		return result;
 *	call.p = ckt_x_args_put(call.p, &args);		   exactly args_size bytes, straight into the command queue
 *	result = ckt_call_wait(&call, &reply);		   or ckt_call_queue(&call) for a batched call
 *	... decode reply.results when result is CUDA_SUCCESS ...
 *	ckt_reply_release(&reply);
 *
 * Between begin and queue/wait the queue's lock is held: encode and nothing else.
 */
#pragma once

#include <cuda.h>

#include "rpc/wire.h"

struct ckt_waiter;

enum {
	CKT_CALL_F_NUMBERED = 1,	/* changes state: gets a sequence number */
	CKT_CALL_F_BATCHED = 2,		/* no reply; implies NUMBERED */
};

struct ckt_call {
	uint8_t *p;			/* where the arguments go */
	uint8_t *end;
	uint32_t xid;
	unsigned flags;
};

struct ckt_reply {
	struct ckt_cursor results;	/* behind the CUresult; valid until ckt_reply_release */
	void *owned;
};

/*
 * Errors: CUDA_ERROR_NOT_INITIALIZED before cuInit, CUDA_ERROR_NO_DEVICE where no server could be reached, and once the session is
 * lost its sticky error.  On any error nothing is held.
 */
CUresult ckt_call_begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags);
void ckt_call_queue(struct ckt_call *call);
/* The call's own CUresult, or an earlier deferred error where the call itself succeeded.  reply may be NULL where there are no results. */
CUresult ckt_call_wait(struct ckt_call *call, struct ckt_reply *ret_reply);
void ckt_reply_release(struct ckt_reply *reply);

/* Logs the name once per function and process; always CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_call_unsupported(const char *name, bool *once);
