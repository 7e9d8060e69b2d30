/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page in which a session's worker counts (rpc/session_metrics.h), as the server reads it.
 *
 * A worker can write anything there.  It can lie about itself, and its owner's sums then hold that
 * lie; it can neither make a sum of another owner wrong, nor make one smaller, nor stop the server:
 * the file's size is sealed.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session_metrics.h"

struct ckt_session;

/* Of a session.  Zeroed memory has none. */
struct ckt_daemon_metrics {
	const struct ckt_session_metrics *page; /* NULL: none */
	struct ckt_session_metrics seen;        /* as last added to the sums */
	bool paused;                            /* its memory is not on the GPU */
	uint64_t turn_ns[CKT_DEVICES_MAX];      /* as last added */
};

/*
 * With --metrics gives the worker its page: once it has answered START, or again to an earlier
 * server's worker.  Without a page its session is missing in some sums, and nothing else happens.
 */
void ckt_session_metrics_open(struct ckt_session *session);
/* Adds what is new to the sums of its owner, and forgets the page. */
void ckt_session_metrics_close(struct ckt_session *session);
/*
 * Adds the counts that are new since the last time to sums, each at most 2^53; memory_bytes and
 * state are replaced by what is now, 0 without a page.
 */
void ckt_session_metrics_add(struct ckt_session *session, struct ckt_session_metrics *sums);
/* The same of its turns (turn.h): adds the time since the last call. */
void ckt_session_metrics_add_turns(struct ckt_session *session, uint64_t turn_ns[CKT_DEVICES_MAX]);
