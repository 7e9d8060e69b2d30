/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for the GPU: answered when their events are done, without holding up the commands
 * behind them.
 *
 *	executor adds -> hot (the executor asks) -> cold (a waiter blocks in the driver) -> completed, answered
 *
 * An item is hot for CKT_SPIN_WAIT_NS if the worker has processors for that (also not crowded ones,
 * base/crowd.h), only a few items are hot and the program does not sleep in its waits
 * (CKT_CALL_SLEEPS); else for CKT_SPIN_NS.
 *
 * An item of a stream's present work needs no event while the stream gets no further work: a hot one
 * asks for the stream.  Before the next command, and when it cools, it gets an event (ckt_pending_fence).
 *
 * One list in the order of issue.  Items of one chain (a stream, an event, ...) finish in that
 * order, so one waiter serves a chain at a time.  Before a wait is answered every copy to the host
 * that is done is delivered, so that the client has the data first.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_fences;
struct ckt_staging_piece;
struct ckt_wcall;
struct ckt_worker;

/* CKT_PENDING_STAGE: no call waits, only the staging memory of a copy to the device. */
enum ckt_pending_kind { CKT_PENDING_WAIT, CKT_PENDING_DATA, CKT_PENDING_FREE, CKT_PENDING_STAGE };

struct ckt_pending {
	struct ckt_pending *next, *previous;
	enum ckt_pending_kind kind;
	struct ckt_wcall *call;
	struct ckt_fences *fences; /* of the events' context */
	uint64_t chain;
	uint64_t order;       /* of the list */
	CUevent one, *events; /* events is &one, or malloc'd */
	unsigned count;
	bool own_events; /* taken from fences, returned to them */
	CUstream behind; /* instead of events: done when this stream is; the executor's to ask */
	CUresult failed; /* no event could be recorded */
	struct ckt_staging_piece *piece;
	size_t size;
	uint64_t lane_piece; /* CKT_PENDING_DATA: the number under which lanes carry it; 0: none */
	bool background;     /* the program does not wait for this piece itself */
	unsigned device;
	uint64_t address; /* CKT_PENDING_FREE: the block */
	int64_t hot_until_ns;
	bool cold, taken, done; /* taken: a waiter has it and frees it */
};

enum {
	CKT_WAITERS_AT_START = 16,
	CKT_WAITERS_MAX = 128,
	/* hot for long: the executor asks the driver for each of them, between any two commands */
	CKT_PENDING_HOT_MAX = 4,
};

struct ckt_pendings {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct ckt_pending *first, *last;
	_Atomic unsigned count, data_count, hot_count, behind_count;
	uint64_t added; /* so far; the executor's */
	/* idle: will look at the list, those that have not begun included */
	unsigned waiters, idle;
	unsigned zombies; /* answered, but a waiter still holds their events */
};

/* Starts the waiters. 0 or -errno. */
int ckt_pendings_init(struct ckt_worker *worker);
/* A zeroed item of the call, NULL if there is no memory; ckt_pending_add takes it over. */
struct ckt_pending *ckt_pending_new(
	struct ckt_wcall *call, enum ckt_pending_kind kind, uint64_t chain);
void ckt_pending_add(struct ckt_worker *worker, struct ckt_pending *pending);
/* Adds an item that is done when the stream's present work is.  The executor's. */
void ckt_pending_add_behind(
	struct ckt_worker *worker, struct ckt_pending *pending, CUstream stream);
/*
 * The same for the present work of all streams of pending->fences.  False: there is none, and the item
 * is freed.  ret_result: the first device error that was met.
 */
bool ckt_pending_add_behind_all(
	struct ckt_worker *worker, struct ckt_pending *pending, CUresult *ret_result);
/*
 * The executor's, before a command that may give streams work: items of ckt_pending_add_behind get
 * events of their fences.
 */
void ckt_pending_fence(struct ckt_worker *worker);
/*
 * The executor's: completes items that are done, and passes those that have been hot long enough to
 * the waiters. True while something is hot.
 */
bool ckt_pending_poll(struct ckt_worker *worker);
/*
 * Before a reply that says that work is done: sends what kernels printed and the data that is
 * ready.
 */
void ckt_pending_deliver(struct ckt_worker *worker);
/*
 * The same for who must not ask the driver, before work of that chain is told of which was queued
 * when `added` was upto: what the chain had to copy by then is there.  False: of other chains
 * something is left that may be there, too, so that the driver must be asked.
 */
bool ckt_pending_deliver_known(struct ckt_worker *worker, uint64_t chain, uint64_t upto);
/*
 * Blocks until no call of the context (NULL: of any) is pending.  -ETIMEDOUT; deadline_ms -1:
 * none.  -EAGAIN: a host function waits for the client.
 */
int ckt_pending_drain(struct ckt_worker *worker, struct ckt_fences *fences, int64_t deadline_ms);
