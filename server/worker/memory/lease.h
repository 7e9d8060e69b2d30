/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This worker's lease of device memory (rpc/lease.h): what its server has granted of each GPU, and
 * what is in use.  Every kind of device memory is taken here before it is made, and given when it is
 * gone: memory.c does that, which counts them all.
 *
 * A worker without limits takes what it needs and only counts.  Otherwise it asks for more when the
 * lease is used up, a step ahead of its need, and gives back what is more than two steps ahead.  If
 * the server is away, a question waits for the next one.
 *
 * What is refused but can be waited for: the thread that was refused takes a note of it
 * (ckt_lease_refused), and begins a wait, which blocks nobody.  Memory that a wait was granted is
 * reserved until the wait is ended, so that the allocation that is then tried again finds it.
 *
 * Threading: any.  Its lock is taken last, and never while somebody waits for the server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/worker.h"

enum ckt_lease_how {
	CKT_LEASE_HAD, /* without asking */
	CKT_LEASE_ASKED,
	CKT_LEASE_FOLLOWED, /* asked, behind a session that leaves: as long as the server says so */
	CKT_LEASE_FORCED,   /* it is in use already */
};

enum ckt_lease_wait_state {
	CKT_LEASE_NOT_ASKED, /* not yet, or the server has gone meanwhile */
	CKT_LEASE_ASKING,
	CKT_LEASE_WAITING,
	CKT_LEASE_GRANTED,
	CKT_LEASE_REFUSED,
};

/* A wait for memory.  The owner's, whose thread begins and ends it; the state may change any time. */
struct ckt_lease_wait {
	struct ckt_lease_wait *next;
	unsigned gpu;
	uint64_t bytes; /* of the allocation that was refused */
	uint64_t total; /* in use with it, at that time */
	enum ckt_lease_wait_state state;
	uint32_t number;
	uint64_t granted;
};

/* How long a question waits for a server, and for its answer. */
extern unsigned ckt_lease_answer_ms;

/*
 * The channel from the server, which becomes ours.  unlimited: of the first one alone.  ret_list: the
 * leases, for ret_res.  -EINVAL: it is none, and was closed.
 */
int ckt_lease_join(int channel, bool unlimited, ckt_worker_lease ret_list[CKT_DEVICES_MAX],
	ckt_worker_lease_res *ret_res);
/* Gives up what is leased and not used, and the freedom of limits. */
void ckt_lease_recall(ckt_worker_lease ret_list[CKT_DEVICES_MAX], ckt_worker_lease_res *ret_res);
/* Whether a thread waits for an answer of the server. */
bool ckt_lease_is_asking(void);

/* Counts bytes of the GPU of that number as used.  False: they are not to be had. */
bool ckt_lease_take(unsigned gpu, uint64_t bytes, enum ckt_lease_how how);
void ckt_lease_give(unsigned gpu, uint64_t bytes);
/* The server gets back all that is not used, at once. */
void ckt_lease_give_spare(unsigned gpu);
/* False: the server sets no limit.  *ret_free: in whole granules. */
bool ckt_lease_info(unsigned gpu, uint64_t *ret_total, uint64_t *ret_free);
/* Of one that is off the GPU with others: it wants to come in, also where nothing is limited. */
void ckt_lease_wish(unsigned gpu);

/* What this thread was refused last since the latest call, if it can be waited for. */
bool ckt_lease_refused(struct ckt_lease_wait *ret_wait);
/*
 * Asks for it, and gives back all that is not used before.  The state is then WAITING, GRANTED,
 * REFUSED or, without a server, NOT_ASKED.
 */
void ckt_lease_wait_begin(struct ckt_lease_wait *wait);
enum ckt_lease_wait_state ckt_lease_wait_state(const struct ckt_lease_wait *wait);
/* Withdraws it, or gives up what is reserved.  keep_place: it will be asked again. */
void ckt_lease_wait_end(struct ckt_lease_wait *wait, bool keep_place);
/*
 * From there to NULL, this thread's allocations use what is reserved for that wait, and what it
 * frees is reserved for it.
 */
void ckt_lease_use_reserved(struct ckt_lease_wait *wait);
bool ckt_lease_uses_reserved(void);
/* Whether a server would hear a question. */
bool ckt_lease_is_joined(void);
/* CKT_LEASE_END; false: there is no server. */
bool ckt_lease_end(int status);
/* Called by any thread, with no lock held, when a wait's state has changed or a server has come. */
extern void (*ckt_lease_changed)(void);

/* The server's calls.  False: the arguments cannot be. */
bool ckt_lease_waited(const ckt_worker_waited_args *args);
void ckt_lease_press(bool on);
/* Whether sessions wait, so that nothing is kept for later. */
bool ckt_lease_is_pressed(void);

/* For tests: as at the start. */
void ckt_lease_reset(void);
