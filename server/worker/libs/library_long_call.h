/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries that take long or wait for the GPU run beside the executor: creating handles
 * (the library then loads its modules, which takes seconds), making plans, destroying handles.
 * Other threads and streams of the program continue meanwhile.  A pause waits for such calls until
 * its deadline.
 *
 *	the handler decodes and calls ckt_library_long_call
 *	-> run, on the thread of long calls (long_call.h)
 *	-> done, on the executor: enters objects, encodes the reply
 *
 * The calls run one at a time in the order of their handlers, so that modules are placed in a fixed
 * order.  A later call for the same object waits until the earlier call is done
 * (ckt_library_object_find).  In a restore, and where a reply cannot be sent later, the whole call
 * runs at once on the calling thread.
 *
 * A call that makes or sets an object (state.h) and fails because other sessions hold the memory
 * it needs waits for that memory: it ends here, as if it had not begun, and its handler runs again
 * when the memory is granted (waiting_call.h).  Nothing is held meanwhile, neither this thread nor
 * what the library had taken.  To wait inside the library's allocation would hold both, and with
 * them all frees that queue behind it, for which others may wait.  Calls that put work on streams
 * do not wait: one that fails may have done half of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/memory/lease.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/call.h"

struct ckt_waiting_call;

struct ckt_library_long_call {
	struct ckt_long_call_job job;
	struct ckt_wcall *call; /* NULL: no reply is sent */
	uint64_t owner;         /* the library's object that the call is for */
	uint64_t context;       /* 0: the context of the call */
	/*
	 * Calls the library and touches nothing but its own struct.  It sets failed if the library
	 * reports a lack of memory.
	 */
	void (*run)(struct ckt_library_long_call *beside);
	/* Runs with the context current; returns a handler's result, a CUresult. */
	int (*done)(struct ckt_library_long_call *beside);
	bool failed;
	/*
	 * ---- Private to library_long_call.c
	 */
	bool missed, again, marked;
	struct ckt_waiting_call *waiting; /* with what it was granted; NULL: it has not waited */
	struct ckt_lease_wait refused;    /* what can be waited for; 0 bytes: nothing */
};

/*
 * Takes over the malloc'd struct that begins with this one and frees it after `done`. Returns the
 * handler's result: CKT_WCALL_LATER, or the result of done.
 */
int ckt_library_long_call(struct ckt_wcall *call, struct ckt_library_long_call *beside);
