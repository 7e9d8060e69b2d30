/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver calls of forwarded libraries inside the worker: libraries find the pass-through
 * libcuda.so.1 (inside/) instead of the driver, and hooks handle their calls.
 *
 *	memory		lies in the session's window and counts against its limits.  The program
 *			neither sees nor frees it.  It belongs to the object whose call is served
 *			and ends when the library frees it.  Memory that a library has not freed
 *			when its object ends may be shared among its objects: it stays, counts,
 *			and ends with the context, as natively
 *	pinned memory	is the driver's and counts against the session's host memory
 *	managed memory	and physical pieces (cuMemCreate) are the driver's and count against the
 *			limit of device memory
 *	streams, events	are made and counted as the program's own (counted_handles.h) if the
 *			executor makes them
 *	limits		as the program's
 *	modules		are counted
 *	all else	is the driver's
 *
 * Only libraries call these hooks: the worker's own calls go to ckt_driver, the real driver.  An
 * image holds none of this memory: a restore makes a library anew by repeating the calls that made
 * it, and a library writes its workspaces before it reads them.
 *
 * Threading: a hook runs on the thread that calls the driver: the executor, the thread beside it
 * (library_long_call.h), or a library's own thread.  Memory, charges and counts are locked or
 * atomic.  Only the executor touches the session's tables (journal, pools), or the restoring thread
 * before the executor starts.  Another thread notes what the journal must record, and the executor
 * enters the notes in order.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/libs/inside/passthrough.h"

struct ckt_object;
struct ckt_worker;

/*
 * Puts the pass-through library where libraries look for libcuda.so.1; a repeated call does
 * nothing.  0, or -errno with the reason in a sentence.  Precondition: the driver is open.
 */
int ckt_inside_open(struct ckt_worker *worker, char *ret_message, size_t message_size);

/*
 * Until _leave, the calling thread works for that object (0: for the library itself).  Returns the
 * argument for _leave.
 */
uint64_t ckt_inside_enter(uint64_t owner);
void ckt_inside_leave(uint64_t before);
/*
 * A library's object or a captured call has ended, in the library as well.  Memory that the library
 * freed when no wait was possible is freed once the GPU is idle.  Memory that the library did not
 * free belongs to the context from now on, because another object may use it.
 */
void ckt_inside_owner_ended(struct ckt_worker *worker, uint64_t owner, uint64_t context);
/*
 * The program destroys a context: frees what libraries hold in it, as natively.  Precondition:
 * nothing runs in the context.
 */
void ckt_inside_context_ended(struct ckt_worker *worker, const struct ckt_object *context);

/* Present totals of all libraries; modules counts all that were loaded so far. */
struct ckt_inside_figures {
	uint64_t allocations, bytes;      /* in the window */
	uint64_t host_bytes, other_bytes; /* pinned; managed and physical */
	uint64_t modules, streams, events;
};
struct ckt_inside_figures ckt_inside_figures(void);

/* ---- For inside_*.c */
/* Arrays; the last entry of each has a NULL name. */
extern const struct ckt_inside_hook ckt_inside_memory_hooks[], ckt_inside_host_hooks[],
	ckt_inside_object_hooks[];
/* An allocation of this thread failed for lack of memory. */
extern __thread bool ckt_inside_missed;
/* The captured call that the thread is making; 0: none. */
uint64_t ckt_inside_captured_call(void);
/*
 * Frees memory that waits for another attempt or for the end of that captured call.  The
 * executor's.
 */
void ckt_inside_free_waiting(struct ckt_worker *worker, uint64_t call);

/* A driver operation of a library that the journal must contain. */
enum ckt_inside_note_kind {
	CKT_NOTE_STREAM,
	CKT_NOTE_STREAM_END,
	CKT_NOTE_EVENT,
	CKT_NOTE_EVENT_END,
	CKT_NOTE_CODE
};
struct ckt_inside_note {
	enum ckt_inside_note_kind kind;
	CUcontext context;
	unsigned flags;
	int priority;
	uint32_t use; /* a use of code; see code.h */
};
/* Called on a thread that must not touch the tables; the next _settle enters the note. */
void ckt_inside_note(struct ckt_inside_note note);
/* Enters what other threads have recorded.  Precondition: ckt_inside_has_tables(). */
void ckt_inside_notes_settle(struct ckt_worker *worker);
/* Whether the calling thread may touch the session's tables. */
bool ckt_inside_has_tables(void);
/* The owner of memory that the calling thread allocates now. */
uint64_t ckt_inside_owner(void);
struct ckt_worker_device *ckt_inside_device(void);
/* The driver's own function; NULL if the driver lacks it. */
void *ckt_inside_real(const char *name);
/* Memory that the driver placed itself, and its totals. */
CUresult ckt_inside_free_managed(CUdeviceptr address);
struct ckt_inside_figures ckt_inside_figures_of_memory(void);
/* Any thread may count. */
void ckt_inside_count_modules(void);
void ckt_inside_count_streams(int64_t change);
void ckt_inside_count_events(int64_t change);
