/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries that take long or wait for the GPU, beside the executor: handles made (a
 * library then loads its modules: seconds), plans made, handles ended.  Other threads and streams
 * of the program go on meanwhile, and so does a pause until its deadline.
 *
 *	the handler decodes and calls ckt_library_long_call
 *	-> run, on the thread of long calls (long_call.h)
 *	-> done, on the executor: enters objects, encodes the reply
 *
 * They run one at a time, in the order of the handlers, so that modules are placed in an order.  A
 * later call for an object that such a call is for waits until it is done
 * (ckt_library_object_find).  In a restore, and where nobody may answer later, all of it happens at
 * once on the calling thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session/long_call.h"
#include "server/worker/session/call.h"

struct ckt_library_long_call {
	struct ckt_long_call_job job;
	struct ckt_wcall *call; /* NULL: no reply is sent */
	uint64_t owner;         /* the library's object that it is for */
	uint64_t context;       /* 0: the call's */
	/*
	 * Calls the library; touches nothing but its own struct.  failed: for lack of memory, as
	 * far as the library reports it.
	 */
	void (*run)(struct ckt_library_long_call *beside);
	/* With the context current: returns what a handler returns, a CUresult. */
	int (*done)(struct ckt_library_long_call *beside);
	bool failed;
	/* ---- Its own */
	bool missed, again, marked;
};

/*
 * Takes over the malloc'd struct that begins with it, and frees it after `done`.  Returns the
 * handler's result: CKT_WCALL_LATER, or done's result.
 */
int ckt_library_long_call(struct ckt_wcall *call, struct ckt_library_long_call *beside);
