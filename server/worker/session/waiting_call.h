/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for memory which other sessions hold (server/worker/memory/lease.h).
 *
 *	handler --out of memory, which can be waited for--> kept with its arguments, and the server is asked
 *	    |-> granted: the handler runs again, on the executor, between two commands -> answered
 *	    |-> refused: answered with out of memory
 *	    |-> frozen: answered with CKT_RESULT_AGAIN; the client sends it as a new call, which waits again
 *	    \-> the client has gone: not asked for until it comes back
 *
 * Only the calling thread of the client waits: the executor takes the commands of the others, frees
 * first.  A call has done nothing until its handler succeeds, so it is executed once.
 *
 * All is the executor's, but for ckt_waiting_call_use.
 */
#pragma once

#include <stdbool.h>

#include "rpc/wire.h"

struct ckt_lease_wait;
struct ckt_waiting_call;
struct ckt_wcall;
struct ckt_worker;

void ckt_waiting_calls_init(struct ckt_worker *worker);
/*
 * The call's handler has returned CUDA_ERROR_OUT_OF_MEMORY.  True: it waits, or was answered; the
 * call is not the caller's any more.  args: as before the handler took them.
 */
bool ckt_waiting_call_keep(struct ckt_wcall *call, const struct ckt_cursor *args);
/*
 * The same for a call that goes on beside the executor.  In its handler: what it needs to wait later,
 * malloc'd; NULL: no memory, and it cannot.  args: as above.
 */
struct ckt_waiting_call *ckt_waiting_call_prepare(const struct ckt_cursor *args);
/*
 * It is back, and has got less memory than it needs: refused.  As above; takes over `prepared`, which
 * may be NULL.
 */
bool ckt_waiting_call_keep_later(struct ckt_wcall *call, struct ckt_waiting_call *prepared,
	const struct ckt_lease_wait *refused);
/*
 * In the handler of a call that has waited and goes on beside the executor: takes over what it was
 * granted, and its arguments.  The caller passes it to _keep_later or _end.  NULL: it has not
 * waited.
 */
struct ckt_waiting_call *ckt_waiting_call_take_along(const struct ckt_wcall *call);
/* From there to NULL, this thread's allocations use what it was granted.  NULL is allowed. */
void ckt_waiting_call_use(struct ckt_waiting_call *taken);
/* Gives up what is left of it, and frees.  NULL is allowed. */
void ckt_waiting_call_end(struct ckt_waiting_call *taken);
/*
 * Runs again what can go on, answers what was refused, asks for what was not asked.  stops: the
 * session is about to be frozen or is held, so that the client is to send them again.
 */
void ckt_waiting_calls_look(struct ckt_worker *worker, bool stops);
/* The client has gone. */
void ckt_waiting_calls_withdraw(struct ckt_worker *worker);
/* How many there are. */
unsigned ckt_waiting_calls_count(void);
