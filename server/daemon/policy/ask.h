/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's questions to its policy, with the facts as they are now; see policy.h.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/policy/ledger.h"
#include "server/daemon/policy/policy.h"

struct ckt_peer;
struct ckt_server;
struct ckt_session;

struct ckt_policy_server ckt_policy_server_of(const struct ckt_server *server);
/* The identity for which the peer's sessions, connections and bytes count. */
struct ckt_identity ckt_identity_of_peer(const struct ckt_peer *peer);

/* After its hello: a place among those that wait for a worker, a control connection. */
void ckt_ask_waiting(const struct ckt_peer *peer, struct ckt_decision *ret_decision);
void ckt_ask_control_connection(const struct ckt_peer *peer, struct ckt_decision *ret_decision);
void ckt_ask_event_listener(const struct ckt_peer *peer, struct ckt_decision *ret_decision);
/* A descriptor that the peer passed and that the server keeps open. */
void ckt_ask_descriptor(const struct ckt_peer *peer, struct ckt_decision *ret_decision);
void ckt_ask_stage(const struct ckt_peer *peer, struct ckt_decision *ret_decision);
/* gpu: that a restore wants; -1: any. */
void ckt_ask_session(
	const struct ckt_peer *peer, bool restore, int gpu, struct ckt_decision *ret_decision);
/* subject: whom limits may fit; NULL: nobody. */
void ckt_ask_share(struct ckt_server *server, const struct ckt_identity *identity,
	const struct ckt_limit_subject *subject, struct ckt_share *ret_share);
/* Of a session that the peer would make. */
void ckt_ask_share_of_peer(const struct ckt_peer *peer, struct ckt_share *ret_share);
/* What its limits have for it in all, and what is left; CKT_LEDGER_NO_LIMIT. */
void ckt_ask_memory_of_peer(
	const struct ckt_peer *peer, unsigned gpu, uint64_t *ret_total, uint64_t *ret_left);
/*
 * peer: who asks for the save; NULL: the server.  beside: also while another checkpoint or
 * migration holds the session.
 */
void ckt_ask_save(const struct ckt_session *session, const struct ckt_peer *peer, bool beside,
	struct ckt_decision *ret_decision);
void ckt_ask_pause(const struct ckt_session *session, struct ckt_decision *ret_decision);
void ckt_ask_resume(const struct ckt_session *session, struct ckt_decision *ret_decision);
