/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable sessions that begin again from nothing: their worker died before any image of them was
 * there, and their clients have every command from the first on (docs/durable.md).
 *
 *	worker died --HELLO RESUME with "afresh"--> the same id, key and owner, generation + 1 --REPLAY of all commands-->
 *
 * Such a session has the rights of a new one.  What ended on purpose does not begin again: the
 * server remembers the latest of these.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "rpc/session.h"
#include "server/daemon/server.h"

struct ckt_peer;
struct ckt_session;
struct ckt_session_spec;

/* Whether a hello asks for it. */
bool ckt_afresh_is_asked(const struct ckt_hello_args *hello);
/*
 * The session of a hello RESUME that is not here, and has no image here.  0 and the session, which
 * starts; -ENOENT: it does not begin again here; -EACCES: the id is not of the hello's key; else
 * -errno with the reason, for now.
 */
int ckt_afresh_resume(
	struct ckt_peer *peer, struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX]);
/* Tells the worker who it becomes, where the spec says afresh: before START.  0 or -errno. */
int ckt_afresh_tell(struct ckt_session *session, const struct ckt_session_spec *spec);
/* The session's worker is gone; crashed: not because the program or somebody else ended it. */
void ckt_afresh_note_end(const struct ckt_session *session, bool crashed);
