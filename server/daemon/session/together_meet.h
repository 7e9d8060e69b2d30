/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of communicators come to stand still before they leave the GPU together (together.h): none of them may be
 * stopped while another one waits in a collective for it.
 *
 *	HOLD stop to all -> looks, and steps for those that have issued fewer collectives (rpc/job_cut.h)
 *	-> all without work at one look: true ; --drain is over: all go on, and it is tried later: false
 *
 * The holds last until ckt_together_meet_end, or until the server dies.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/job_cut.h"
#include "server/daemon/loop.h"

struct ckt_together;

enum { CKT_TOGETHER_UNFINISHED_MAX = 95 };

/* Of a session. */
struct ckt_together_rank {
	struct ckt_job_rank rank;
	bool held;
	char unfinished[CKT_TOGETHER_UNFINISHED_MAX + 1];
};

/* Of sessions that belong together. */
struct ckt_together_meeting {
	struct ckt_job_cut cut;
	struct ckt_timer timer;
	int64_t since_ms;
	bool held; /* by this server; some may be */
};

/* Whether there are ranks among them. */
bool ckt_together_must_meet(const struct ckt_together *together);
/* The answer is ckt_together_met; together->error and its message say why not. */
void ckt_together_meet(struct ckt_together *together);
/* They may go on, as far as this is concerned.  Any number of times. */
void ckt_together_meet_end(struct ckt_together *together);
