/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this worker tells its server of whether it is idle (rpc/activity.h).  Without a page, as on
 * every server that swaps no session by itself, nothing is told and no clock is read.
 *
 * Threading: ckt_activity_use from any thread; the rest is the executor's.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "rpc/activity.h"

struct ckt_worker;

extern struct ckt_activity *_Atomic ckt_activity_page;

/* The file is the callee's in every case.  0, or -errno; -EINVAL: a file of another size. */
int ckt_activity_use(struct ckt_worker *worker, int fd);
void ckt_activity_end_idleness(struct ckt_activity *page);
/* It shares memory or events from now on; before its program knows. */
void ckt_activity_shares(void);
/*
 * The executor is about to sleep.  True: it has unfinished work, and has to look again soon although
 * nothing wakes it.
 */
bool ckt_activity_sleeps(struct ckt_worker *worker);

/* A command is about to be executed. */
static inline void ckt_activity_command(void)
{
	struct ckt_activity *page = atomic_load_explicit(&ckt_activity_page, memory_order_acquire);
	if (__builtin_expect(page != NULL, 0))
		ckt_activity_end_idleness(page);
}
