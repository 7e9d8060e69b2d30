/*
 * What has to be known of a session while its worker is gone, or after the server itself was: small
 * files beside the sessions' sockets,
 *
 *	SOCKET.d/SESSION.parked	it was stopped on purpose: a client that asks for it is told to wait
 *	SOCKET.d/SESSION.moved	it lives elsewhere: the address
 *	SOCKET.d/SESSION.paused	it is paused: seconds since the epoch at which it goes on, 0 for never
 *
 * The first two go when the session is restored here, or after a day; the third with the pause or
 * the session.  Each says whose it is, under a MAC by the server's key: only its owner, root and
 * the server's user replace or remove one.  It says too whether the session's id was proven
 * (restore_claim.h): a mark under an id that an image alone named says nothing to a session, or a
 * client, whose the id is.
 *
 * Errors: 0 or -errno.  Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/server.h"

enum ckt_mark { CKT_MARK_PARKED, CKT_MARK_MOVED, CKT_MARK_PAUSED, CKT_MARKS };

/*
 * Replaces what is there, whole or not at all.  -EPERM where that is another user's, unless this
 * one is proven and that is not.
 */
int ckt_mark_write(const struct ckt_server *server, const char *session, enum ckt_mark mark,
	uint32_t owner_uid, bool proven, const char *text);
/* Whether there is one that was written for a proven id. */
bool ckt_mark_is_proven(const struct ckt_server *server, const char *session, enum ckt_mark mark);
/*
 * False where there is none.  Without the newline at the end.  The owner is CKT_UID_UNKNOWN in a
 * mark of a build before this.
 */
bool ckt_mark_read(const struct ckt_server *server, const char *session, enum ckt_mark mark,
	uint32_t *ret_owner, char *ret_text, size_t text_size);
/* One of this user's; 0: whosever it is. */
void ckt_mark_remove(
	const struct ckt_server *server, const char *session, enum ckt_mark mark, uint32_t uid);
/* Whether the session is stopped, sent away or paused. */
bool ckt_mark_exists(const struct ckt_server *server, const char *session);
/* Removes those that are too old, now and every hour. */
void ckt_marks_watch(struct ckt_server *server);
