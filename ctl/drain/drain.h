/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl drain: the parts.  What moves together is a unit: a session, or the sessions of a job
 * that has several.
 *
 *	drain_list.c	which units the server has
 *	drain_run.c	moves and saves them, some at one time, each by a cricketctl of its own
 *	drain.c		the subcommand
 *
 * Threading: the main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl/command.h"
#include "rpc/job.h"
#include "rpc/session.h"

enum { CKT_CTL_DRAIN_TARGETS = 16, CKT_CTL_DRAIN_JOBS = 4, CKT_CTL_DRAIN_JOBS_MAX = 64 };

enum ckt_ctl_unit_state {
	CKT_UNIT_NEW,
	CKT_UNIT_MOVING,
	CKT_UNIT_SAVING,
	CKT_UNIT_MOVED,
	CKT_UNIT_SAVED,
	CKT_UNIT_STAYS, /* see reason */
	CKT_UNIT_ENDED, /* by itself, meanwhile */
};

struct ckt_ctl_unit {
	char session[CKT_SESSION_ID_SIZE + 1]; /* of a job: its first */
	char job[CKT_JOB_NAME_MAX + 1];        /* empty: a single session */
	char program[CKT_NAME_MAX + 1];        /* clean */
	uint32_t owner;                        /* a job's name is its owner's */
	unsigned sessions;
	enum ckt_ctl_unit_state state;
	const char *target;               /* the latest; borrowed */
	unsigned tried;                   /* bit i: targets[i] would not have it */
	char reason[CKT_MESSAGE_MAX + 1]; /* clean */
	/* The cricketctl that moves or saves it. */
	pid_t pid;
	int errors_fd;
	size_t reason_size;
};

struct ckt_ctl_draining {
	const struct ckt_ctl_args *args;
	const char *targets[CKT_CTL_DRAIN_TARGETS]; /* borrowed */
	unsigned target_count;
	const char *save; /* NULL: nothing is saved */
	unsigned jobs;
	int64_t deadline_ms; /* of ckt_net_now_ms; -1: none */
	struct ckt_ctl_unit *units;
	size_t unit_count;
};

/*
 * Adds the units that are not known yet; ret_left: all sessions that the server lists now.  Exit
 * codes, with the error printed.
 */
int ckt_ctl_drain_list(struct ckt_ctl_draining *draining, unsigned *ret_left);
/*
 * Moves or saves all new units, until each has succeeded or cannot.  False: the deadline came; what
 * was under way was ended, and stays.
 */
bool ckt_ctl_drain_run(struct ckt_ctl_draining *draining);
/* For tests: the program that is started. */
extern const char *ckt_ctl_drain_program;
