/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for a GPU's memory that wait, between the ledger (ledger.h), which says what there is, and
 * a policy (wait_policy.h), which says who is next.
 *
 *	ask    -> granted | refused at once | waits
 *	waits  -> granted | refused (deadlock, timeout, nobody holds it any more) | withdrawn
 *
 * A request is granted only if it fits every limit and budget, and if the state is safe afterwards
 * (wait_safety.h).  It is refused as soon as no other session holds what is missing, and when
 * sessions wait for each other: then the one that holds the most is, of those without a declared
 * limit first.  A session without memory waits behind earlier requests that later ones have
 * overtaken often enough; one that has memory never does, because those others may wait for it.
 *
 * If every session that has memory waits and no request is safe, as after a limit was lowered, the
 * policy chooses among those that fit.
 *
 * Threading: the caller's.  Nothing here blocks, and nothing reads the clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/daemon/policy/ledger.h"
#include "server/daemon/policy/wait_policy.h"

/* Waits of all sessions, and of one; a further one is refused. */
enum { CKT_WAITS_MAX = 4096, CKT_WAITS_EACH = 128 };

struct ckt_wait_request {
	struct ckt_wait_request *next;
	struct ckt_ledger_holder *holder;
	uint64_t number; /* of the request, never used again */
	uint32_t gpu;
	uint64_t bytes; /* whole granules */
	void *data;     /* the caller's */
	uint64_t arrived;
	int64_t since_ms;
	unsigned overtaken;
	enum ckt_memory_reason reason; /* why it waits */
};

struct ckt_wait_queue {
	struct ckt_ledger *ledger;
	const struct ckt_wait_policy *policy;
	uint64_t random;                /* not 0 */
	struct ckt_wait_request *first; /* in order of arrival */
	size_t count;
	uint64_t requests, events; /* so far */
	int64_t now_ms;            /* of events; the caller's */
	bool pumping, again;
	/*
	 * A request that waited has ended; it is freed afterwards.  granted: the ledger has leased
	 * its bytes.  Must not change the queue.
	 */
	void (*ended)(struct ckt_wait_queue *queue, const struct ckt_wait_request *request,
		bool granted, enum ckt_memory_reason reason);
	/*
	 * Whether a request that fits has to wait, because the caller keeps the room for another; NULL:
	 * none has.
	 */
	bool (*bars)(struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder,
		unsigned gpu, uint64_t bytes);
	/*
	 * True: somebody else chooses one of the list, later, by ckt_wait_grant; and whoever that is
	 * owes a pump if he does not.  False: the policy chooses now.  Told with count 0, too, if
	 * none can be granted.  NULL: the policy chooses.  Must not change the queue.
	 */
	bool (*outside)(
		struct ckt_wait_queue *queue, const struct ckt_wait_facts *list, unsigned count);
	/* Of everything; NULL: nobody listens. */
	void (*event)(struct ckt_wait_queue *queue, const struct ckt_memory_event *event);
	void *data; /* the caller's */
};

void ckt_wait_queue_init(struct ckt_wait_queue *queue, struct ckt_ledger *ledger,
	const struct ckt_wait_policy *policy, uint64_t random);
/* Forgets every request, without a call of ended. */
void ckt_wait_queue_fini(struct ckt_wait_queue *queue);

/*
 * What becomes of a request now; changes nothing.  CKT_MEMORY_GRANT: the caller may lease the bytes
 * from the ledger.  can_wait false: the session is not one that waits, and is granted whatever fits.
 */
enum ckt_memory_decision ckt_wait_judge(struct ckt_wait_queue *queue,
	struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes, bool can_wait,
	enum ckt_memory_reason *ret_reason);
/*
 * The same, and acts on it: the bytes are leased, or the request waits and *ret_number is its
 * number.  A wait can make sessions wait for each other: then this or another request is refused by
 * the next ckt_wait_pump, which the caller owes.
 */
enum ckt_memory_decision ckt_wait_ask(struct ckt_wait_queue *queue,
	struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes, void *data,
	uint64_t *ret_number, enum ckt_memory_reason *ret_reason);
/*
 * The request is no more; false: there is none of that number.  keep_place: the next request of the
 * session for this GPU takes its place in the order.
 */
bool ckt_wait_withdraw(struct ckt_wait_queue *queue, uint64_t number, bool keep_place);
/* Refuses it, for a reason of the caller's. */
bool ckt_wait_refuse(struct ckt_wait_queue *queue, uint64_t number, enum ckt_memory_reason reason);
/*
 * Grants it, out of turn.  False: it cannot be granted now, for *ret_reason, and nothing has changed;
 * CKT_MEMORY_FITS: no request of that number waits.  A pump is owed if it is granted.
 */
bool ckt_wait_grant(
	struct ckt_wait_queue *queue, uint64_t number, enum ckt_memory_reason *ret_reason);
/* Memory was given back, a session ended, limits changed, or somebody waits: decides anew. */
void ckt_wait_pump(struct ckt_wait_queue *queue);

/*
 * Whether a further context on the GPU leaves a safe state: contexts are taken without a request.
 * False only if sessions with declared limits could then be stuck.
 */
bool ckt_wait_admits(struct ckt_wait_queue *queue, unsigned gpu);

/* Events of the caller's. */
void ckt_wait_came(struct ckt_wait_queue *queue, struct ckt_ledger_holder *holder);
void ckt_wait_freed(struct ckt_wait_queue *queue, struct ckt_ledger_holder *holder, unsigned gpu,
	uint64_t bytes);
/* Withdraws what the session waits for.  The caller takes it off the ledger, and pumps. */
void ckt_wait_gone(struct ckt_wait_queue *queue, struct ckt_ledger_holder *holder);

/* Whether the session waits for anything. */
bool ckt_wait_is_waiting(
	const struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder);
