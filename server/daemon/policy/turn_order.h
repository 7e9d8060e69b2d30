/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is on one GPU: sessions that share it in time have it one after another.
 *
 *	wants --> GIVE --> runs --> yields: idle, at the end of its turn, or at the end that LIMIT set
 *
 * A member alone has the GPU without an end (length 0), until another wants it: then LIMIT ends the
 * turn a quantum after its begin, or at once where the other goes first.  Who goes first:
 *
 *	1. class: latency before no class before best-effort
 *	2. priority, the greater number
 *	3. weight: the member with the least time used, divided by its weight
 *
 * So weights divide what the classes and priorities before them leave.  A member that did not want the
 * GPU saves up CKT_TURN_LAG_NS at most: as much as it loses in the pauses between its own waits.  A cap bounds a member's part of the time
 * even where it is alone: it earns time at that rate, up to CKT_TURN_BURST_NS of it.
 *
 * A turn can end late: its kernels run to their end.  All of it counts as used.  In flight is what a
 * member may have issued and not finished: bounded (the pace) while another waits, and tightly while
 * a member of an earlier class is there.
 *
 * A decision from outside (cricketctl decide) goes before all of this once: ckt_turn_next and
 * ckt_turn_end.  A cap holds for it, too.
 *
 * A pure structure: no clock, no memory of its own, no I/O.  Threading: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum ckt_turn_class { CKT_TURN_LATENCY, CKT_TURN_PLAIN, CKT_TURN_BEST_EFFORT };

#define CKT_TURN_QUANTUM_NS INT64_C(20000000)
/* Of a member that others wait for, and of one beside a member of an earlier class. */
#define CKT_TURN_PACE_NS (CKT_TURN_QUANTUM_NS / 4)
#define CKT_TURN_PACE_TIGHT_NS INT64_C(1000000)
#define CKT_TURN_LAG_NS INT64_C(100000000)
/* What a cap lets a member save up: its part of so much time. */
#define CKT_TURN_BURST_NS INT64_C(200000000)
enum { CKT_TURN_WEIGHT_MAX = 1000 };

/* A session on one GPU. */
struct ckt_turn_member {
	struct ckt_turn_member *next;
	enum ckt_turn_class class;
	int priority;
	unsigned weight; /* 1 to CKT_TURN_WEIGHT_MAX */
	unsigned cap;    /* percent of the time; 0: none */
	bool wants;
	uint64_t virtual_ns; /* used, divided by its weight; from where the ring was when it came */
	int64_t credit_ns, credit_at_ns; /* of a cap */
	uint64_t used_ns, turns;         /* for listings */
};

struct ckt_turn_ring {
	struct ckt_turn_member *first;
	struct ckt_turn_member *holder; /* NULL: the GPU is free */
	struct ckt_turn_member *next;   /* that goes first, once; NULL: none */
	bool ends;                      /* the holder's turn ends now that another waits */
	uint32_t number;                /* of the last turn that was given */
	int64_t given_ns;
	int64_t end_ns; /* when the holder was told to end; 0: it was not */
	uint64_t virtual_ns;
};

enum ckt_turn_step { CKT_TURN_NOTHING, CKT_TURN_GIVES, CKT_TURN_LIMITS };

struct ckt_turn_decision {
	enum ckt_turn_step step;
	struct ckt_turn_member *member;
	uint32_t number;
	int64_t length_ns; /* from now; 0 with GIVES: without an end */
	int64_t pace_ns;   /* 0: none */
	int64_t again_ns;  /* decide again then, a time; 0: only when something happens */
};

/* The member is its owner's, with class, priority, weight and cap set. */
void ckt_turn_add(struct ckt_turn_ring *ring, struct ckt_turn_member *member, int64_t now_ns);
/* Its turn, if it has it, ends. */
void ckt_turn_remove(struct ckt_turn_ring *ring, struct ckt_turn_member *member);
/* It has something to run. */
void ckt_turn_want(struct ckt_turn_ring *ring, struct ckt_turn_member *member);
/* The next turn is the member's once it wants one, and the holder's ends for it. */
void ckt_turn_next(struct ckt_turn_ring *ring, struct ckt_turn_member *member);
/* The holder's turn ends now, or as soon as another waits. */
void ckt_turn_end(struct ckt_turn_ring *ring);
/* It gives the turn of that number back.  False: it does not have it. */
bool ckt_turn_yield(struct ckt_turn_ring *ring, struct ckt_turn_member *member, uint32_t number,
	bool wants, int64_t now_ns);
/* The time that it had the GPU, up to now. */
uint64_t ckt_turn_used_ns(
	const struct ckt_turn_ring *ring, const struct ckt_turn_member *member, int64_t now_ns);
/* What to do now; each GIVES and LIMITS is told once.  Called again until it says NOTHING. */
void ckt_turn_decide(
	struct ckt_turn_ring *ring, int64_t now_ns, struct ckt_turn_decision *ret_decision);
