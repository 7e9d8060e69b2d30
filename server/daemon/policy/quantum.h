/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sessions have their memory on a GPU, if it has no room for all: a session that waits for
 * memory gets that of others, which are swapped out and wait in turn.
 *
 *	on the GPU --EVICT--> leaving --> out --a command: wants--> ADMIT --> coming --> on the GPU
 *	on the GPU, wants more --ADMIT--> its allocation is granted
 *
 * A member that is out may be admitted behind those that leave (`follows`): as soon as what it wants has
 * begun to leave.  It takes what has left, step by step, so that both ways are used at one time.  If a
 * part of it fits now, and others leave by the time that this part is in, it begins ahead of them.
 *
 * While all fit nobody wants, and nothing is decided.  Otherwise the member that has waited longest
 * is served.  If it does not fit, members leave that need the GPU least:
 *
 *	1. who is idle: at once if its idle times are longer than the longer way of a switch, as seen
 *	   so far; otherwise once it has been idle for twice a switch
 *	2. whose quantum is over: the lowest priority, then the lowest weight, then the longest on the GPU
 *
 * No member leaves if that does not make room enough.  A quantum follows from what a switch between
 * the two costs now, by the measured rates: the switch is 3% of the time.  It is shorter where others
 * would wait longer than max_wait_ns in a round.  It protects who has just come in, so that there is
 * at most one switch a quantum, however many small allocations wait.
 *
 * Members of one gang wait for each other's work (the ranks of a communicator), each perhaps on a GPU
 * of its own.  So the order of those that wait is the same on every GPU: a gang waits since its first
 * member does, and the next members of a gang that has begun to come in are served with it.  A
 * quantum begins when the last one of the gang has come in.  Who waits for one that is out leaves
 * before others.
 *
 * A member that could not be swapped out is skipped for a time that doubles with each failure.
 *
 * A pure structure: no clock, no memory of its own, no I/O.  Threading: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"

/* A switch takes at most so much of the time, in percent. */
enum { CKT_QUANTUM_SWITCH_PERCENT = 3, CKT_QUANTUM_SWITCHES_KEPT = 16 };
/* Nobody who has been idle for less is swapped out for it. */
#define CKT_QUANTUM_IDLE_LEAST_NS INT64_C(10000000)
/* After a swap that failed; doubles up to the second. */
#define CKT_QUANTUM_SKIP_NS INT64_C(1000000000)
#define CKT_QUANTUM_SKIP_MOST_NS INT64_C(32000000000)
/* A part that is smaller does not come in ahead. */
#define CKT_QUANTUM_AHEAD_LEAST ((uint64_t)64 << 20)
/* Room that is kept for one who was admitted and does not take it. */
#define CKT_QUANTUM_KEPT_NS INT64_C(2000000000)

enum ckt_quantum_reason {
	CKT_QUANTUM_NONE,
	CKT_QUANTUM_FITS,      /* admitted: there is room */
	CKT_QUANTUM_BETWEEN,   /* admitted: there is room, while an earlier one waits for more */
	CKT_QUANTUM_BEHIND,    /* admitted: the room for it has begun to leave */
	CKT_QUANTUM_AHEAD,     /* admitted: a part fits, and the room for the rest leaves soon */
	CKT_QUANTUM_WAS_IDLE,  /* evicted */
	CKT_QUANTUM_OVER,      /* evicted: its quantum */
	CKT_QUANTUM_GAVE_WAY,  /* evicted: it had come in between */
	CKT_QUANTUM_IDLE_LONG, /* the caller's: --idle-memory */
	CKT_QUANTUM_BY_HAND,   /* the caller's */
	CKT_QUANTUM_STAYED,    /* the caller's: it could not be swapped out */
	CKT_QUANTUM_REASONS
};

/* A clause for logs and listings, such as "it was idle while another session waits". */
const char *ckt_quantum_reason_text(enum ckt_quantum_reason reason);

/* A session. */
struct ckt_quantum_member {
	struct ckt_quantum_member *next;

	/* Facts, as the caller knows them before each decision. */
	uint64_t here[CKT_DEVICES_MAX]; /* bytes on each GPU */
	uint64_t want[CKT_DEVICES_MAX]; /* that it waits for, to come in or beside what it has */
	uint64_t got_bytes;             /* coming step by step: beside want, what it has by now */
	int64_t want_since_ns;          /* 0: it waits for nothing */
	int64_t idle_since_ns;          /* 0: it is not idle, or that is not known */
	bool out, leaving, coming;      /* its memory is not on the GPU; is on its way */
	bool giving;                    /* leaving, and a part of it has left */
	bool follows;                   /* it can come in behind others */
	bool fixed;                     /* it is not swapped out */
	int priority;
	unsigned weight;
	uint64_t gang; /* 0: none */
	bool several;  /* the caller's: it stands for sessions that move together */

	/* The decisions'. */
	int64_t in_since_ns;   /* when it came, or came in */
	int64_t waited_ns;     /* since when it had waited for that; 0: it had not */
	int64_t gang_waits_ns; /* since when it waits, or its gang does */
	int64_t gap_ns;        /* how long its idle times are, lately; 0: not known */
	int64_t idle_seen_ns;  /* the idle time that is not over */
	int64_t skip_until_ns; /* it is not tried again before */
	unsigned failures;
	bool ahead;  /* coming, and not all that it wants has begun to leave */
	bool served; /* members leave for it: room is kept for it */
	bool chosen; /* admitted, and has not got it yet: the same */
	int64_t chosen_ns;
	int64_t passed_until_ns; /* it did not take what was kept: others are served before */
	bool between;
	enum ckt_quantum_reason reason; /* of the latest decision about it */
	uint64_t outs, ins;
	int64_t switched_ns[CKT_QUANTUM_SWITCHES_KEPT]; /* the latest ones, in a ring */
};

/* Of a server. */
struct ckt_quantum {
	struct ckt_quantum_member *first;
	int64_t max_wait_ns;
	double out_ns_per_byte, in_ns_per_byte; /* measured */
};

enum ckt_quantum_step { CKT_QUANTUM_WAIT, CKT_QUANTUM_ADMIT, CKT_QUANTUM_EVICT };

struct ckt_quantum_decision {
	enum ckt_quantum_step step;
	struct ckt_quantum_member *member; /* admitted, or to be swapped out */
	struct ckt_quantum_member *waiter; /* of EVICT: for whom */
	enum ckt_quantum_reason reason;
	bool behind;      /* of ADMIT: what it wants is not all free yet */
	int64_t again_ns; /* of WAIT: when time alone changes it; 0: never */
};

void ckt_quantum_init(struct ckt_quantum *quantum, int64_t max_wait_ns);
void ckt_quantum_add(
	struct ckt_quantum *quantum, struct ckt_quantum_member *member, int64_t now_ns);
void ckt_quantum_remove(struct ckt_quantum *quantum, struct ckt_quantum_member *member);
/* Takes note of the facts about whether the member is idle.  After each change of them. */
void ckt_quantum_note(struct ckt_quantum_member *member, int64_t now_ns);

/*
 * The next step on that GPU, which has so many free bytes.  The caller takes it and asks again:
 * ADMIT has made the member `chosen`, and the caller brings it in or grants what it wants; EVICT: the
 * caller makes it `leaving`.
 */
void ckt_quantum_decide(struct ckt_quantum *quantum, unsigned gpu, uint64_t free_bytes,
	int64_t now_ns, struct ckt_quantum_decision *ret_decision);
/* What is kept for members that are served or admitted, of others than this one. */
uint64_t ckt_quantum_kept(
	const struct ckt_quantum *quantum, const struct ckt_quantum_member *but, unsigned gpu);

/* It has left, which took ns for so many bytes; it has the memory to come in. */
void ckt_quantum_left(struct ckt_quantum *quantum, struct ckt_quantum_member *member,
	uint64_t bytes, int64_t ns, int64_t now_ns);
void ckt_quantum_came(struct ckt_quantum_member *member, int64_t now_ns);
/* How long it took to bring so many bytes in. */
void ckt_quantum_measure_in(struct ckt_quantum *quantum, uint64_t bytes, int64_t ns);
/* It could not leave, or not come in. */
void ckt_quantum_failed(struct ckt_quantum_member *member, int64_t now_ns);
/* Outs and ins in the last second. */
unsigned ckt_quantum_switches(const struct ckt_quantum_member *member, int64_t now_ns);

/* Whether more of the GPU comes free by itself: a member has begun to give it up. */
bool ckt_quantum_gives(const struct ckt_quantum *quantum, unsigned gpu);

/* What a switch costs, and how long a member's quantum is if that one waits.  For tests. */
int64_t ckt_quantum_cost_ns(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *member, const struct ckt_quantum_member *waiter,
	unsigned gpu);
int64_t ckt_quantum_length_ns(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *member, const struct ckt_quantum_member *waiter,
	unsigned gpu);
