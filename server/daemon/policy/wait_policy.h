/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between the memory of GPUs and who decides which session gets it: what happened (events),
 * what may be decided (decisions), and the built-in policies that decide.
 *
 *	lease.c --asks, gives, ends--> wait_queue.c --events--> listeners
 *	                                    |--requests that can be granted--> policy: which one next
 *	                                    \--decisions--> lease.c tells the worker
 *
 * The queue decides what is possible: a request waits until it fits, and until granting it leaves a
 * state in which all sessions can finish (wait_safety.h).  A policy only chooses among the requests
 * that can be granted now.  So no policy can cause a deadlock or pass a limit.
 *
 * Events and decisions are plain data without pointers, so that they can travel: a scheduler outside
 * of the server can be told the same events, and its decision is the number of a request.
 *
 * To add a policy: write wait_NAME.c beside wait_fifo.c, and add it to the table in wait_policy.c.
 *
 * Threading: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

/* ---- What happened */

enum ckt_memory_event_kind {
	CKT_MEMORY_CAME = 1,      /* a session; bytes: its declared maximum on each GPU, 0: none */
	CKT_MEMORY_ASKED = 2,     /* a session asks for bytes that it cannot have at once */
	CKT_MEMORY_GRANTED = 3,   /* the request has its bytes */
	CKT_MEMORY_REFUSED = 4,   /* the request has ended without; see reason */
	CKT_MEMORY_WITHDRAWN = 5, /* the client or the session has gone, or asks again later */
	CKT_MEMORY_FREED = 6,     /* a session gave bytes back */
	CKT_MEMORY_ENDED = 7,     /* a session, with all that it had */
};

/* ---- What is decided of a request, and why */

enum ckt_memory_decision { CKT_MEMORY_GRANT = 1, CKT_MEMORY_WAIT = 2, CKT_MEMORY_REFUSE = 3 };

enum ckt_memory_reason {
	CKT_MEMORY_FITS = 0,
	CKT_MEMORY_IN_USE = 1,    /* others hold what is missing */
	CKT_MEMORY_UNSAFE = 2,    /* it is there, but sessions could then wait for each other */
	CKT_MEMORY_BEHIND = 3,    /* an earlier request is first */
	CKT_MEMORY_TOO_LARGE = 4, /* more than the GPU's budget or its owner's limit leaves it */
	CKT_MEMORY_OWN = 5,       /* no other session holds what is missing */
	CKT_MEMORY_DEADLOCK = 6,  /* sessions wait for each other, and this one holds the most */
	CKT_MEMORY_TIMEOUT = 7,   /* --wait-timeout */
	CKT_MEMORY_DECIDED = 8,   /* an administrator, or a scheduler outside of the server */
	CKT_MEMORY_REASONS
};

/* For logs and listings: a clause such as "other sessions hold the memory". */
const char *ckt_memory_reason_text(enum ckt_memory_reason reason);

struct ckt_memory_event {
	uint64_t number; /* from 1, in the order of the events */
	int64_t at_ms;   /* CLOCK_MONOTONIC */
	enum ckt_memory_event_kind kind;
	enum ckt_memory_reason reason;
	uint64_t session; /* a number that is never used again */
	char id[CKT_SESSION_ID_SIZE + 1];
	uint64_t request; /* 0: the event is of none */
	uint32_t gpu;     /* the driver's number */
	uint64_t bytes;
	int64_t waited_ms; /* of a request that has ended */
};

/* ---- Who is next */

/* A request that can be granted now. */
struct ckt_wait_facts {
	uint64_t request, session;
	uint32_t gpu;
	uint64_t bytes;
	uint64_t held_bytes; /* by its session, of this GPU */
	uint64_t left_bytes; /* of this GPU, before it is granted */
	uint64_t arrived;    /* number of the event with which it began to wait */
	uint64_t used;       /* number of the latest event of its session */
};

struct ckt_wait_policy {
	const char *name;
	/*
	 * How many later requests of sessions without memory may be granted before one that waits;
	 * then such sessions wait behind it.
	 */
	unsigned overtakes_max;
	/*
	 * The index of the request that is granted next; count is at least 1, the list in order of
	 * arrival.  random: a state of its own, never 0.
	 */
	unsigned (*choose)(uint64_t *random, const struct ckt_wait_facts *list, unsigned count);
};

/* NULL: there is none of that name. */
const struct ckt_wait_policy *ckt_wait_policy_find(const char *name);

/*
 * "external[:FALLBACK][,TIMEOUT]": a scheduler outside of the server chooses, and the policy FALLBACK
 * (default fifo) where it does not within TIMEOUT: seconds such as 2 or 0.5 (default 1), from a
 * millisecond to a minute.
 */
struct ckt_wait_external {
	const struct ckt_wait_policy *fallback;
	unsigned timeout_ms;
};

/* 0, or -EINVAL: it is no such text. */
int ckt_wait_external_parse(const char *text, struct ckt_wait_external *ret_external);

/*
 * How often a session without memory that waits may be overtaken while a scheduler outside of the
 * server chooses.
 */
enum { CKT_WAIT_EXTERNAL_OVERTAKES = 64 };

extern const struct ckt_wait_policy ckt_wait_fifo, ckt_wait_best_fit, ckt_wait_recent_use,
	ckt_wait_random;
/* The four, and NULL. */
extern const struct ckt_wait_policy *const ckt_wait_policies[];
