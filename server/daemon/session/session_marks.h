/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a session while its worker is gone, or after a restart of the server: small files
 * beside the sessions' sockets,
 *
 *	SOCKET.d/SESSION.parked	it was stopped on purpose: a client that asks for it is told to wait
 *	SOCKET.d/SESSION.moved	it moved: its new address
 *	SOCKET.d/SESSION.paused	it is paused: seconds since the epoch at which it resumes, 0 for never
 *
 * The first two are removed when the session is restored here, or after a day; the third with the
 * pause or the session.  Each names its owner, under a MAC by the server's key: only the owner,
 * root and the server's user replace or remove a mark.  It also says whether the session's ID was
 * proven (restore_claim.h): a mark under an ID that only an image named means nothing to the ID's
 * real session or client.
 *
 * Errors: 0 or -errno.  Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/server.h"

enum ckt_session_mark { CKT_MARK_PARKED, CKT_MARK_MOVED, CKT_MARK_PAUSED, CKT_MARKS };

/*
 * Replaces an older mark, completely or not at all.  -EPERM if that belongs to another user, unless
 * this one is proven and that one is not.
 */
int ckt_session_mark_write(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t owner_uid, bool proven, const char *text);
/* Whether there is a mark for a proven id. */
bool ckt_session_mark_is_proven(
	const struct ckt_server *server, const char *session, enum ckt_session_mark mark);
/*
 * False if there is none.  Without the newline at the end.  The owner is CKT_UID_UNKNOWN in a mark
 * of an earlier build.
 */
bool ckt_session_mark_read(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t *ret_owner, char *ret_text, size_t text_size);
/* A mark of this user; 0: of any user. */
void ckt_session_mark_remove(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t uid);
/* Whether the session is stopped, moved away or paused. */
bool ckt_session_mark_exists(const struct ckt_server *server, const char *session);
/* Removes marks that are too old, now and every hour. */
void ckt_session_marks_watch(struct ckt_server *server);
