/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of groups (rpc/group.h): which workers may find each other.  Two sessions are of
 * one group if they belong to one owner, as the daemon knows it; sessions that are still being
 * restored, if one claimant restores both: their owners are known only afterwards.
 *
 * What a worker sends is not believed, only compared: the name it asks for is looked up among the
 * sessions of its group, and the socket that it sends is passed on and never read.  Whoever asks for
 * a session of another owner gets the same answer as for none, and the audit log says so once.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rpc/group.h"
#include "rpc/session.h"
#include "server/daemon/loop.h"

struct ckt_session;

/* Another session with which one was connected. */
struct ckt_group_partner {
	uint64_t serial; /* of the live one; 0: it is awaited */
	char id[CKT_SESSION_ID_SIZE + 1];
	int64_t until_ms; /* CLOCK_MONOTONIC: of an awaited one, so long */
};

/* Of a session.  Zeroed memory is no member. */
struct ckt_group_member {
	struct ckt_source channel; /* fd 0 in zeroed memory, else -1 while closed */
	bool open;
	bool shares; /* it was connected with another session of its group */
	/*
	 * Serials of sessions of which it asked for memory or events, or that asked for its own, and of
	 * those with ranks of its communicators.
	 */
	uint64_t *mates;
	size_t mate_count, mate_room;
	bool refused; /* that it asked for another owner's session is in the audit log */
	struct ckt_group_name *claims;
	size_t claim_count, claim_room;
	struct ckt_group_partner *partners;
	size_t partner_count, partner_room;
};

/* Makes the session's channel and gives its worker the other end.  0 or -errno. */
int ckt_group_open(struct ckt_session *session);
/*
 * Its worker has ended, or its channel: those that asked it for memory, or that it asked, are told,
 * and what it had leased is nobody's until they have answered (lease_left.h).
 */
void ckt_group_ended(struct ckt_session *session);
/* Does nothing if the channel is closed already. */
void ckt_group_close(struct ckt_session *session);
/* Whether it has said that it has a rank of a communicator of several. */
bool ckt_group_has_ranks(const struct ckt_session *session);
/* Whether they may share memory, events and communicators. */
bool ckt_group_is_same(const struct ckt_session *a, const struct ckt_session *b);

/* ---- group_partners.c */

/* They can see what the other has, from now on. */
void ckt_group_connect(struct ckt_session *a, struct ckt_session *b);
/*
 * Its worker is gone.  returns: its client may come back for it, under that id, and until then it is of
 * the group.  One that died while it was restored has another id of its own.
 */
void ckt_group_leave(struct ckt_session *session, const char *id, bool returns);
/* What an image says of a session: it is of one group with those.  Nothing is known of where they are. */
void ckt_group_await(struct ckt_session *session, const char *id);
/*
 * Calls with the ids of all sessions that could see what this one has, itself included; member NULL: its worker is
 * gone, and its client may come back.  False: `look` said so, and not all were shown.
 */
typedef bool (*ckt_group_look)(struct ckt_session *member, const char *id, void *context);
bool ckt_group_each(struct ckt_session *session, ckt_group_look look, void *context);
