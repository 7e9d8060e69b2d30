/*
 * What has to be known of a session while its worker is gone, or after the server itself was: small files beside the sessions' sockets,
 *
 *	SOCKET.d/SESSION.parked	it was stopped on purpose: a client that asks for it is told to wait
 *	SOCKET.d/SESSION.moved	it lives elsewhere: the address
 *	SOCKET.d/SESSION.paused	it is paused: seconds since the epoch at which it goes on, 0 for never
 *
 * The first two go when the session is restored here, or after a day; the third with the pause or the session.
 *
 * Errors: 0 or -errno.  Threading: the loop's thread.
 */
#pragma once

#include "server.h"

enum ckt_mark { CKT_MARK_PARKED, CKT_MARK_MOVED, CKT_MARK_PAUSED, CKT_MARKS };

/* Replaces what is there, whole or not at all. */
int ckt_mark_write(const struct ckt_server *server, const char *session, enum ckt_mark mark, const char *text);
/* False where there is none.  Without the newline at the end. */
bool ckt_mark_read(const struct ckt_server *server, const char *session, enum ckt_mark mark, char *ret_text, size_t text_size);
void ckt_mark_remove(const struct ckt_server *server, const char *session, enum ckt_mark mark);
/* Removes those that are too old, now and every hour. */
void ckt_marks_watch(struct ckt_server *server);
