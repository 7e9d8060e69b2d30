/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a moment at which no session of a job has anything left to do.
 *
 *	all stand --done--> the cut
 *	          --not done for a while--> some are let on for a few commands, twice as many each time --one that was stuck is done--> all stand
 *
 * Work that is not done either takes its time, or waits for something that another session has yet
 * to put on its GPU: its part of a collective, a flag.  Where the sessions count the collectives
 * that they issued, those with fewer are the ones to let on, and no further than the others are.
 * Without counts those that are done are let on; where none is, or where they find nothing to do,
 * all are.  A phase begins with a single command, and more come only once what that began is done:
 * so nobody runs ahead of the others by more than the distance that there was, the distances
 * shrink, and the sessions meet.  Since long work is no reason to let others put more of it there,
 * the wait before a phase grows.
 *
 * A pure rule: no clock, no I/O.  Threading: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is known of a session, and what it is told. */
struct ckt_job_rank {
	bool drained;              /* it stands still, and none of its work is unfinished */
	bool tells;                /* it says what is unfinished */
	uint64_t commands, issued; /* as struct ckt_worker_hold_res has them */
	/* The step that it is to be told; the caller clears it then. */
	bool step;
	uint64_t step_commands, step_issued;
	bool stuck; /* was not drained when others were allowed to continue */
};

struct ckt_job_cut {
	bool stepping, counted;         /* some continue, by their counts */
	int64_t since_ms;               /* of this phase, or of the latest step */
	int64_t grace_ms;               /* how long all are stopped before some continue */
	uint64_t quantum, idle_quantum; /* commands of the latest step; of one for all */
};

void ckt_job_cut_begin(struct ckt_job_cut *cut, int64_t now_ms);
/* True: all are stopped with no work left.  Otherwise the ranks hold the next steps. */
bool ckt_job_cut_decide(struct ckt_job_cut *cut, struct ckt_job_rank *const ranks[], unsigned count,
	int64_t now_ms);
/* Of those that have work left the one to blame, and to name; count: none has. */
unsigned ckt_job_cut_late(struct ckt_job_rank *const ranks[], unsigned count);
unsigned ckt_job_cut_drained(struct ckt_job_rank *const ranks[], unsigned count);
/* The most collectives that one has issued. */
uint64_t ckt_job_cut_most(struct ckt_job_rank *const ranks[], unsigned count);
