/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What checkpoint/ keeps of a session.  The struct that its user, the worker, has of a session
 * begins with it; checkpoint/ knows no more of that struct (session.h says how it asks for the
 * rest).
 */
#pragma once

#include <stdbool.h>

#include "checkpoint/freeze/freeze.h"
#include "checkpoint/freeze/hold.h"
#include "checkpoint/journal.h"
#include "checkpoint/load/load.h"
#include "checkpoint/progress.h"

struct ckt_worker;

struct ckt_checkpoint {
	/* Set by START, constant afterwards. */
	struct ckt_image_source source;
	unsigned start; /* CKT_IMAGE_START_*: how this process was started */
	bool old_image; /* restored from one whose history has no hash kernel */

	/* The executor's. */
	struct ckt_journal journal;

	/* Any thread's; each says which lock it needs. */
	struct ckt_progress progress;
	struct ckt_freeze freeze;
	struct ckt_hold hold;
	bool paused; /* frozen, and its memory in the host's; the lock of session.h */
	/* with paused: a command of the client's ends it.  The lock of session.h. */
	bool swapped;
	int64_t swap_retry_ms; /* the executor's: CLOCK_MONOTONIC, before which it does not try */
};

static inline struct ckt_checkpoint *ckt_checkpoint_of(const struct ckt_worker *worker)
{
	return (struct ckt_checkpoint *)worker;
}
