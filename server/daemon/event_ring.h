/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last events of sessions, and the last decisions: two rings with one numbering, so that many
 * decisions push no event of a session out.  A reader that is further behind misses some, and learns
 * how many.  One event can stand for many: it has the number of the last of them.  Static memory: it
 * does not grow.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/control.h"
#include "rpc/session.h"
#include "server/daemon/events.h"

struct ckt_kept_event {
	uint64_t number; /* 0: empty */
	int64_t when;    /* seconds since the epoch */
	uint32_t uid;    /* the session's owner */
	bool general;    /* of no session: for administrators */
	enum ckt_event_name name;
	char session[CKT_SESSION_ID_SIZE + 1];
	char program[CKT_NAME_MAX + 1];
	char job[CKT_CONTROL_JOB_NAME + 1];
	char detail[CKT_MESSAGE_MAX];
	struct ckt_event_facts facts;
	/* after it, of facts.gpu */
	uint64_t budget_bytes, used_bytes, folded;
	int64_t at_ms;
};

/* A new one with a number and the times, which stands for so many more; the caller fills in the rest. */
struct ckt_kept_event *ckt_event_ring_add(bool decision, uint64_t folded);
/* Of the newest; 0: none yet. */
uint64_t ckt_event_ring_last(void);
/* The next one after that number; NULL: none.  decisions: of these, too. */
struct ckt_kept_event *ckt_event_ring_next(uint64_t after, bool decisions);
/* How many events after that number are no longer kept; 0 for the number 0. */
uint64_t ckt_event_ring_lost(uint64_t after);
