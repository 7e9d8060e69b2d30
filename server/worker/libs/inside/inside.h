/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What forwarded libraries do at the driver, inside the worker: the pass-through libcuda.so.1
 * (inside/) that they find instead of the driver, and the hooks behind it.
 *
 *	memory		comes from the session's window and counts against its limits; the program neither sees nor frees it.  It is the
 *			object's whose call is served, and goes when the library frees it.  What a library has not freed when its object has
 *			ended it may share among its objects: that stays and counts, and goes with the context, as natively
 *	pinned memory	is the driver's and counts against the session's host memory; managed memory and physical pieces (cuMemCreate) are the
 *			driver's and count against the limit of device memory
 *	streams, events	are made and counted as the program's own (counted_handles.h), where the executor makes them
 *	limits		as the program's
 *	modules		are counted
 *	all else	is the driver's
 *
 * Only libraries come here: the worker's own calls go to ckt_driver, the real one.  An image holds
 * nothing of this memory: a library is made anew at a restore, by the calls that made it, and what
 * it had in workspaces it writes before it reads.
 *
 * Threading: hooks run on whatever thread a library calls them: the executor's, the one beside it
 * (library_long_call.h), a library's own.  Memory, charges and counts are locked or atomic.  The
 * session's tables (journal, pools) are touched on the executor's thread only, or on a restore's
 * before the executor goes; what another thread does that the journal must know is noted, and
 * entered by the executor in the order of its happening.
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
 * Puts the pass-through library where libraries look for libcuda.so.1; the second time nothing.  0,
 * or -errno with the reason in a sentence. Precondition: the driver is open.
 */
int ckt_inside_open(struct ckt_worker *worker, char *ret_message, size_t message_size);

/*
 * What the calling thread does until _leave is done for that object (0: for the library as such).
 * Returns what _leave must be given.
 */
uint64_t ckt_inside_enter(uint64_t owner);
void ckt_inside_leave(uint64_t before);
/*
 * A library's object, or a captured call, has ended, and its end in the library, too.  Memory that
 * the library freed when nothing could wait is freed when the GPU is done; memory that it did not
 * free belongs to the context from now on, because another object may use it.
 */
void ckt_inside_owner_ended(struct ckt_worker *worker, uint64_t owner, uint64_t context);
/*
 * A context that the program made is being destroyed: frees what libraries have in it, as natively.
 * Precondition: nothing runs in it.
 */
void ckt_inside_context_ended(struct ckt_worker *worker, const struct ckt_object *context);

/* What libraries have now; modules and libraries: were loaded so far. */
struct ckt_inside_figures {
	uint64_t allocations, bytes;      /* in the window */
	uint64_t host_bytes, other_bytes; /* pinned; managed and physical */
	uint64_t modules, streams, events;
};
struct ckt_inside_figures ckt_inside_figures(void);

/* ---- For inside_*.c */
/* Arrays that end with a NULL name. */
extern const struct ckt_inside_hook ckt_inside_memory_hooks[], ckt_inside_host_hooks[],
	ckt_inside_object_hooks[];
/* An allocation of this thread failed for lack of memory. */
extern __thread bool ckt_inside_missed;
/* The captured call that the thread is making; 0: none. */
uint64_t ckt_inside_captured_call(void);
/* Frees what waits for another attempt, or for the end of that captured call.  The executor's. */
void ckt_inside_free_waiting(struct ckt_worker *worker, uint64_t call);

/* An operation of a library at the driver that the journal must contain. */
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
	uint32_t use; /* of code; see code.h */
};
/* From a thread that may not touch the tables; entered by the next _settle. */
void ckt_inside_note(struct ckt_inside_note note);
/* Enters what other threads have recorded.  Precondition: ckt_inside_has_tables(). */
void ckt_inside_notes_settle(struct ckt_worker *worker);
/* Whether the calling thread may touch the session's tables. */
bool ckt_inside_has_tables(void);
/* The owner of memory that is allocated now. */
uint64_t ckt_inside_owner(void);
struct ckt_worker_device *ckt_inside_device(void);
/* The driver's own function; NULL if it has none. */
void *ckt_inside_real(const char *name);
/* Memory that the driver placed itself, and its total. */
CUresult ckt_inside_free_managed(CUdeviceptr address);
struct ckt_inside_figures ckt_inside_figures_of_memory(void);
/* Counts, from any thread. */
void ckt_inside_count_modules(void);
void ckt_inside_count_streams(int64_t change);
void ckt_inside_count_events(int64_t change);
