/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides who may restore a session under the ID that its image names, and who owns it then.
 *
 * The image proves nothing, because anybody can write one.  The decision depends on who asks, on
 * the sessions and marks that exist here, and on the server's own key:
 *
 *	the owner	is who asked.  Only administrators and holders of the token of --token-file restore for somebody else: for the
 *			user that a seal of this server names, or, without a seal, for whoever proves the session's key first.
 *	the id		is proven by a seal of this server, or by being the hash of the session's secret.  An id that somebody else has here, as a
 *			session or as a mark, is refused; what is proven ends what was restored here under the same id without a proof.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

/* A copy of the peer's facts that matter for its restore, since the peer may go first. */
struct ckt_claimant ckt_claimant_of(const struct ckt_peer *peer);
/* Whether it may end or replace what this user has here. */
bool ckt_claimant_may(
	struct ckt_server *server, const struct ckt_claimant *claimant, uint32_t owner_uid);

/*
 * Decides the session's owner and whether it may have the ID.  0: at once; 1: it replaces
 * *ret_other, which is held or must be ended (*ret_end), and waits for its end; -errno with the
 * reason.
 */
int ckt_claim_check(struct ckt_session *session, const struct ckt_worker_origin_res *origin,
	struct ckt_session **ret_other, bool *ret_end, char ret_message[CKT_MESSAGE_MAX]);
