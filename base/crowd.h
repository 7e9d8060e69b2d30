/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether other threads want the processor of a thread that polls.  On a crowded machine polling
 * takes the time of those for whom one waits.
 *
 *	long spins --SWITCHES involuntary switches within WINDOW--> brief spins, for a pause --its end--> long spins
 *
 * The kernel counts how often it took the processor from the thread (ru_nivcsw).  A single switch says
 * little: a thread of the kernel may have run.  The pause doubles if the same happens again soon after
 * it, up to a maximum.  The kernel is asked at most once in CKT_CROWD_LOOK_NS, and not during a pause:
 * a spin that succeeds earlier makes no system call.
 *
 * Threading: a struct belongs to one thread; any thread may call ckt_crowd_is and ckt_crowd_spin_ns.
 * Times are ckt_now_ns().  A struct of zeros is ready for use and needs no end.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	CKT_CROWD_SPIN_NS = 50000, /* the longest spin while the machine is crowded */
	CKT_CROWD_LOOK_NS = 1000000,
	CKT_CROWD_WINDOW_NS = 50000000,
	CKT_CROWD_SWITCHES = 2,
	CKT_CROWD_PAUSE_NS = 100000000,
	CKT_CROWD_PAUSE_MAX_NS = 1600000000,
};

struct ckt_crowd {
	int64_t look_ns;   /* no look before that */
	int64_t window_ns; /* when the window began; 0: there is none */
	int64_t switches;  /* at that time */
	int64_t pause_ns;  /* the length of the last pause */
	_Atomic int64_t until_ns;
};

/* Where the counter comes from: the calling thread's, from the kernel.  A test puts its own here. */
extern int64_t (*ckt_crowd_switches)(void);

/* A spin begins, which will last a while before ckt_crowd_look asks. */
void ckt_crowd_begin(struct ckt_crowd *crowd, int64_t now_ns);
/* During a spin and at its end without success. */
void ckt_crowd_look(struct ckt_crowd *crowd, int64_t now_ns);
/* Whether the thread is to spin only briefly. */
bool ckt_crowd_is(const struct ckt_crowd *crowd, int64_t now_ns);
/* How long a spin may last that would like to last wanted_ns. */
int64_t ckt_crowd_spin_ns(const struct ckt_crowd *crowd, int64_t now_ns, int64_t wanted_ns);
