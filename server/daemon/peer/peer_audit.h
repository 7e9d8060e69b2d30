/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit log hears of peers and their control calls.
 *
 *	_begin --answered--> _end   one line
 *	       --closed----> _cut   one line: a caller that hangs up hides nothing
 *
 * Every function does nothing without --audit.  Threading: the loop's thread.
 */
#pragma once

#include <stdint.h>

struct ckt_audit_pieces;
struct ckt_identity;
struct ckt_peer;
struct ckt_server;

/* A control call with its decoded arguments. */
void ckt_peer_audit_begin(struct ckt_peer *peer, uint32_t proc, const void *args);
/* The ID of the session that the current call is about. */
void ckt_peer_audit_session(struct ckt_peer *peer, const char *id);
/* What the current call is about, if its arguments do not hold it as a text. */
void ckt_peer_audit_object(struct ckt_peer *peer, const char *object);
/*
 * Nobody has refused the current call, and its answer comes later: an error is then a failure.
 */
void ckt_peer_audit_tried(struct ckt_peer *peer);
/* Somebody has refused it after all. */
void ckt_peer_audit_refused_late(struct ckt_peer *peer);
/* The current call is answered with this; NULL: a void answer. */
void ckt_peer_audit_end(struct ckt_peer *peer, const void *result);
/* The connection ends; a call that is not answered has failed, or is refused, for this reason. */
void ckt_peer_audit_cut(struct ckt_peer *peer, const char *reason);
/* For the pieces of files that it moves after STAGE_DATA, its latest call. */
struct ckt_audit_pieces *ckt_peer_audit_pieces(const struct ckt_peer *peer);
/* Its hello, or a control call that is none, is refused; of a hello the first reason counts. */
void ckt_peer_audit_refused(struct ckt_peer *peer, const char *call, const char *reason);
/* A connection is dropped before its hello, and one of this source before it was a peer. */
void ckt_peer_audit_dropped(struct ckt_peer *peer, const char *reason);
void ckt_peer_audit_turned_away(
	struct ckt_server *server, const struct ckt_identity *source, const char *reason);
