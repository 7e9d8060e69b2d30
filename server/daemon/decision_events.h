/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of decisions: who waits for memory, gets it or not, is swapped, keeps a turn too long; with
 * all that a policy needs to know (server/daemon/policy/policy.h).
 *
 * One event a decision, as long as a session has few of a kind: what is more within a second, and of
 * refusals within ten, is told at the end as one event that says how many it stands for.
 *
 * They are told at the next turn of the loop, so that who decides may be in the middle of it.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/events.h"
#include "server/daemon/loop.h"

/* Of a session and a kind of event.  Zeroed memory has none. */
struct ckt_event_fold {
	int64_t until_ms; /* 0: none was told lately */
	unsigned told;
	uint64_t folded, bytes; /* since then, and what they came to */
	struct ckt_event_facts facts;
};

/* Of the server. */
struct ckt_decision_events {
	struct ckt_timer deliver, unfold;
};

/* session: NULL: of none, for administrators.  The format: a sentence for people. */
void ckt_decision_event(struct ckt_server *server, struct ckt_session *session,
	enum ckt_event_name name, const struct ckt_event_facts *facts, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* The session ends: tells what is folded. */
void ckt_decision_events_gone(struct ckt_session *session);
void ckt_decision_events_init(struct ckt_server *server);
void ckt_decision_events_fini(struct ckt_server *server);

/* events.c: the peer is told of the next event, or its connection ends. */
void ckt_daemon_events_listen(struct ckt_peer *peer);
/* peer/fact_calls.c: answers a call of FACTS; false: there is nothing for the peer yet. */
bool ckt_daemon_facts_tell(struct ckt_peer *peer);
