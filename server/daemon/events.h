/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of sessions, for cricketctl events and for executables in --hooks DIR.  The server keeps
 * the last events in memory. Hooks run one event after the other in a child of the server, each
 * with a time limit, so that neither a slow follower nor a slow hook holds up the loop.  Threading:
 * the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/daemon/policy/policy.h"

struct ckt_peer;
struct ckt_server;
struct ckt_session;

enum ckt_event_name {
	CKT_EVENT_STARTED,
	CKT_EVENT_ENDED,
	CKT_EVENT_FROZEN,
	CKT_EVENT_SAVED,
	CKT_EVENT_RESTORED,
	CKT_EVENT_MOVED,
	CKT_EVENT_PAUSED,
	CKT_EVENT_RESUMED,
	CKT_EVENT_MEMORY_LOW,
	CKT_EVENT_LOST,
	CKT_EVENT_UNSAVED,
	CKT_EVENT_SWAPPED_OUT,
	CKT_EVENT_SWAPPED_IN,
	CKT_EVENT_NOT_SWAPPED, /* others wait for its memory, and it could not leave */
	CKT_EVENT_ASLEEP,      /* its worker has ended: durable/sleep.h */
	CKT_EVENT_AWAKE,
	CKT_EVENT_NOT_ASLEEP, /* it is idle for long, and cannot sleep */
	/* Decisions, and what they depend on: decision_events.h. */
	CKT_EVENT_CAME,      /* a session has a lease; bytes: its declared maximum, 0: none */
	CKT_EVENT_LEASED,    /* it got memory at once */
	CKT_EVENT_WAIT,      /* it waits for memory */
	CKT_EVENT_GRANTED,   /* it got what it waited for */
	CKT_EVENT_REFUSED,   /* it got no memory: at once, or after waiting */
	CKT_EVENT_WITHDRAWN, /* it waits no more: its client has gone, or asks again */
	CKT_EVENT_FREED,     /* it gave memory back */
	CKT_EVENT_LEFT,      /* it gave back all */
	CKT_EVENT_CHOOSE,    /* the server asks a scheduler which request is next */
	CKT_EVENT_DECIDED,   /* a scheduler or an administrator decided */
	CKT_EVENT_FALLBACK,  /* nobody did in time, and the server decides itself */
	CKT_EVENT_OVERDUE,   /* it does not give its turn back */
	CKT_EVENT_BACK,      /* it has, after all */
	CKT_EVENT_CAPPED,    /* its cap= keeps it from a turn */
	CKT_EVENTS
};

enum { CKT_DECISION_EVENTS = CKT_EVENTS - CKT_EVENT_CAME };

/* As events and metrics name it: "started", "memory-low". */
const char *ckt_daemon_event_text(enum ckt_event_name name);
void ckt_daemon_event(struct ckt_session *session, enum ckt_event_name name, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Answers those that wait for events, where there are any for them. */
void ckt_daemon_events_deliver(struct ckt_server *server);
/* Checks --hooks and begins to watch memory. -errno with the reason. */
int ckt_daemon_events_init(struct ckt_server *server, char *ret_message, size_t message_size);

/* hooks.c: queues a run of every executable in the directory. */
struct ckt_control_event;
int ckt_hooks_check(const char *directory, char *ret_message, size_t message_size);
/*
 * A peer's text as hooks find it in their environment: without characters that mean anything to a
 * shell.
 */
void ckt_hooks_clean(const char *text, bool is_name, char *ret_text, size_t text_size);
void ckt_hooks_run(struct ckt_server *server, const struct ckt_control_event *event);
