/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the processes that this one started: what they have moved, and whether they make
 * progress.  Threading: one watch, one thread.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct ckt_watch {
	/* by all descendants since they began, of those that still run */
	uint64_t read_bytes, written_bytes;
	/* what changes while they work: processor time and what they moved */
	uint64_t work;
	int64_t changed_ms;
};

void ckt_ctl_watch_begin(struct ckt_watch *watch);
/* Looks again.  Returns for how many milliseconds nothing has changed. */
int64_t ckt_ctl_watch_look(struct ckt_watch *watch);
/* Kills all of them, and returns when they are over. */
void ckt_ctl_watch_kill(void);
/* Resident memory, in bytes, of a process and all below it. */
uint64_t ckt_ctl_watch_resident(pid_t pid);
