/*
 * What forwarded libraries do at the driver, inside the worker: the pass-through libcuda.so.1 (inside/) that they find instead of the driver, and
 * the hooks behind it.
 *
 *	memory		comes from the session's window and counts against its limits; it belongs to the owner that is served, the program
 *			neither sees nor frees it, and it goes when the library frees it, with its owner (ckt_inside_free_owned), or with the
 *			session.  What one handle's call allocates a library may share among its handles, so the owner is the library (0)
 *			unless who calls ckt_inside_enter knows better
 *	pinned memory	is the driver's and counts against the session's host memory; managed memory and physical pieces (cuMemCreate) are the
 *			driver's and count against the limit of device memory
 *	streams, events	are made and counted as the program's own (journal.h), where the executor makes them
 *	limits		as the program's
 *	modules		are counted
 *	all else	is the driver's
 *
 * Only libraries come here: the worker's own calls go to ckt_driver, the real one.  An image holds nothing of this memory: a library is made
 * anew at a restore, by the calls that made it, and what it had in workspaces it writes before it reads.
 *
 * Threading: hooks run on whatever thread a library calls them; the session's tables (journal, pools) are touched on the executor's thread
 * only, or on a restore's before the executor goes.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/libs/inside/passthrough.h"

struct ckt_worker;

/*
 * Puts the pass-through library where libraries look for libcuda.so.1; the second time nothing.  0, or -errno with the reason in a sentence.
 * Precondition: the driver is open.
 */
int ckt_inside_open(struct ckt_worker *worker, char *ret_message, size_t message_size);

/* What the calling thread does until _leave is done for that object (0: for the library as such).  Returns what _leave must be given. */
uint64_t ckt_inside_enter(uint64_t owner);
void ckt_inside_leave(uint64_t before);
/* Frees the device memory that the object's calls allocated, and what of it was freed but waits.  Precondition: nothing runs that uses it. */
void ckt_inside_free_owned(struct ckt_worker *worker, uint64_t owner);

/* What libraries have now; modules and libraries: were loaded so far. */
struct ckt_inside_figures {
	uint64_t allocations, bytes;	/* in the window */
	uint64_t host_bytes, other_bytes;	/* pinned; managed and physical */
	uint64_t modules, streams, events;
};
struct ckt_inside_figures ckt_inside_figures(void);

/* ---- For inside_*.c */
/* Arrays that end with a NULL name. */
extern const struct ckt_inside_hook ckt_inside_memory_hooks[], ckt_inside_host_hooks[], ckt_inside_object_hooks[];
/* Whether the calling thread may touch the session's tables. */
bool ckt_inside_has_tables(void);
/* The owner of what is allocated now. */
uint64_t ckt_inside_owner(void);
struct ckt_worker_device *ckt_inside_device(void);
/* The driver's own function; NULL where it has none. */
void *ckt_inside_real(const char *name);
/* Memory that the driver placed itself, and what all of it comes to. */
CUresult ckt_inside_free_managed(CUdeviceptr address);
struct ckt_inside_figures ckt_inside_figures_of_memory(void);
/* Counts, from any thread. */
void ckt_inside_count_modules(void);
void ckt_inside_count_streams(int64_t change);
void ckt_inside_count_events(int64_t change);
