/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what every session may take of each GPU's memory now, against the limits of owners
 * (limit_rule.h) and each GPU's budget.
 *
 * A worker takes memory only from its lease: bytes that the ledger has granted it.  So the sum over
 * an owner's sessions is the sum of their leases, and no two of them can pass the limit together.
 * Nothing else is kept: sums are taken from the list of holders when somebody asks, so that they
 * cannot be wrong.
 *
 *	grant	need or more, where every limit that fits the session has that much left
 *	give	a worker returns what it does not use
 *	settle	a lease of which only the worker knows how much it uses: one without a limit, or one
 *		of an earlier server.  Nothing is granted beside it until the worker has said
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"
#include "server/daemon/policy/limit_rule.h"

#define CKT_LEDGER_GRANULE ((uint64_t)2 << 20)
/* What a context takes of an NVIDIA GPU, measured on an H200 with driver 580; not the owner's. */
#define CKT_LEDGER_CONTEXT_BYTES ((uint64_t)570 << 20)
#define CKT_LEDGER_NO_LIMIT UINT64_MAX

/* Of a session. */
struct ckt_ledger_holder {
	struct ckt_ledger_holder *next;
	struct ckt_limit_subject subject;
	uint64_t leased[CKT_DEVICES_MAX]; /* by the driver's number; whole granules */
	uint64_t contexts;                /* bit N: it has a context on GPU N */
	bool unsettled;                   /* uses more than is leased, its worker knows how much */
	bool swaps;                       /* what it has is swapped out when others need it */
	bool left;                        /* its session has ended, serial is 0 (lease_left.h) */

	/* For waits (wait_queue.h); zero where nobody waits. */
	uint64_t serial;     /* of the session, never used again */
	uint64_t maximum;    /* that it may have of each GPU by itself; 0: not known */
	uint64_t used_event; /* the latest event of the session */
	/* of a wait that was withdrawn and will be asked again */
	uint64_t kept_place;
	int64_t kept_since_ms;
	uint32_t kept_gpu;
};

struct ckt_ledger {
	struct ckt_ledger_holder *first;
	struct ckt_limit_table limits;
	uint64_t budgets[CKT_DEVICES_MAX]; /* 0: none */
	uint64_t context_bytes;            /* of each context, by budgets alone */
};

/* The holder stays its owner's. */
void ckt_ledger_add(struct ckt_ledger *ledger, struct ckt_ledger_holder *holder);
void ckt_ledger_remove(struct ckt_ledger *ledger, struct ckt_ledger_holder *holder);

/* Whether any limit of memory fits it. */
bool ckt_ledger_limits(const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject);
/* Whether what the other holds of the GPU counts for a limit of this one. */
bool ckt_ledger_shares(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder,
	const struct ckt_ledger_holder *other, unsigned gpu);
/* No other that shares with it is unsettled. */
bool ckt_ledger_is_settled(
	const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder, unsigned gpu);
/* The smallest limit; CKT_LEDGER_NO_LIMIT. */
uint64_t ckt_ledger_total(
	const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject, unsigned gpu);
/*
 * What the smallest remainder of its limits has for the subject, without a context that it would
 * need; CKT_LEDGER_NO_LIMIT.  has_context: of this GPU.
 */
uint64_t ckt_ledger_left(const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject,
	unsigned gpu, bool has_context);
/* The same without the GPU's budget: what the limits of its owner leave the subject. */
uint64_t ckt_ledger_limits_left(
	const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject, unsigned gpu);
/*
 * Leases `need` bytes more, up to `want` where there is plenty and not exact; 0 where there is not so
 * much left.  All whole granules.
 */
uint64_t ckt_ledger_grant(struct ckt_ledger *ledger, struct ckt_ledger_holder *holder, unsigned gpu,
	uint64_t need, uint64_t want, bool exact);
/* Leases what is in use already, whatever the limits say. */
void ckt_ledger_force(struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes);
/* -EINVAL: more than it has, or no granules. */
int ckt_ledger_give(struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes);

/* What the rule's sessions hold of the GPU: of the subject's owner alone where the rule says so. */
uint64_t ckt_ledger_used(const struct ckt_ledger *ledger, const struct ckt_limit_rule *rule,
	const struct ckt_limit_subject *subject, unsigned gpu);
unsigned ckt_ledger_sessions(const struct ckt_ledger *ledger, const struct ckt_limit_rule *rule,
	const struct ckt_limit_subject *subject);
/* A rule that leaves no room for one more session of the subject; NULL: none. */
const struct ckt_limit_rule *ckt_ledger_full(
	const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject);
/* The GPUs that all rules leave it, as bits. */
uint64_t ckt_ledger_gpus(const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject);
/* What all sessions hold of the GPU, their contexts included. */
uint64_t ckt_ledger_budget_used(const struct ckt_ledger *ledger, unsigned gpu);
/* Whether the GPU's budget has room for one more context. */
bool ckt_ledger_has_room(const struct ckt_ledger *ledger, unsigned gpu);
/*
 * "SIZE" or "INDEX=SIZE,...", of --gpu-memory: the budgets, 0 for a GPU that is not named.  -EINVAL.
 */
int ckt_ledger_budgets_parse(const char *text, uint64_t ret_budgets[CKT_DEVICES_MAX]);
