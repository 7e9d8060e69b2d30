/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler outside of the server, with --wait-policy external: it follows the events of decisions
 * (decision_events.h), and decides by control calls.
 *
 *	nothing open --requests can be granted--> open: event "choose" --decision---------> granted, refused
 *	                                           |    (again if they change)  \--wait---> asked again later
 *	                                           \--timeout, or nobody follows--> the fallback policy grants
 *
 * The first decision for an event wins.  Each decision is checked as a grant of the server's own is.
 * After a timeout the fallback decides at once, until somebody decides anything or begins to follow:
 * so one that only watches, or hangs, costs one timeout.
 *
 * Threading: the loop's thread.  Nothing here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/control.h"
#include "server/daemon/loop.h"
#include "server/daemon/policy/wait_queue.h"

struct ckt_server;

enum { CKT_CHOICES_KEPT = 32, CKT_CHOICE_TEXT = 120 };

/* A choice that is over, so that a late decision learns how. */
struct ckt_choice_past {
	uint64_t event;
	char how[CKT_CHOICE_TEXT];
};

struct ckt_scheduler {
	struct ckt_wait_external external;
	struct ckt_wait_policy policy; /* the fallback, for the queue */
	char name[48];                 /* of the policy */
	struct ckt_timer timer;
	bool silent;           /* it missed a timeout, and has decided nothing since */
	uint64_t choice;       /* the event that is open; 0: none */
	int64_t due_ms;        /* of the choice */
	int64_t held_until_ms; /* it said wait; 0: it did not */
	unsigned count;
	struct ckt_wait_facts candidates[CKT_CONTROL_CANDIDATES_MAX];
	struct ckt_choice_past past[CKT_CHOICES_KEPT];
	unsigned past_count; /* ever */
};

/* As text says (ckt_wait_external_parse); the queue is made afterwards.  0 or -EINVAL. */
int ckt_scheduler_open(struct ckt_server *server, const char *text);
/* Asks it from now on, for the queue of the server. */
void ckt_scheduler_attach(struct ckt_server *server);
void ckt_scheduler_close(struct ckt_server *server);
/* Somebody who may decide begins to follow the events, or ends. */
void ckt_scheduler_came(struct ckt_server *server);
void ckt_scheduler_gone(struct ckt_server *server);

/*
 * A decision for the open choice of that number: GRANT, WAIT or REFUSE, of a candidate.  False: it is
 * refused, and ret_message says why.  by: whose it is, as "uid:0".
 */
bool ckt_scheduler_choose(struct ckt_server *server, uint64_t event, uint64_t request,
	ckt_control_action action, const char *by, char *ret_message, size_t message_size);
/* A decision of its own accord, about a request that waits: GRANT or REFUSE.  As above. */
bool ckt_scheduler_decide(struct ckt_server *server, uint64_t request, ckt_control_action action,
	const char *by, char *ret_message, size_t message_size);
