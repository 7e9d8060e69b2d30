/*
 * Who may restore a session under the id that its image names, and whose it is then.
 *
 * An image's word counts for nothing: anybody writes one.  What counts is who asked, what is here,
 * and what the server's own key says:
 *
 *	the owner	is who asked.  Only root, the server's user and holders of the token restore for somebody else: for the user that a seal
 *			of this server names, or, without a seal, for whoever shows the session's secret first.
 *	the id		is proven by a seal of this server, or by being the hash of the session's secret.  An id that somebody else has here, as a
 *			session or as a mark, is refused; what is proven ends what was restored here under the same id without a proof.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

/* What of the peer counts for a restore that it asks for; a copy, since the peer may go first. */
struct ckt_claimant ckt_claimant_of(const struct ckt_peer *peer);
/* Whether it may end or replace what this user has here. */
bool ckt_claimant_may(
	const struct ckt_server *server, const struct ckt_claimant *claimant, uint32_t owner_uid);

/*
 * Settles the session's owner and whether it may have the id.  0: at once; 1: it replaces
 * *ret_other, which is held or to be ended (*ret_end) and whose end it waits for; -errno with the
 * reason.
 */
int ckt_claim_check(struct ckt_session *session, const struct ckt_worker_origin_res *origin,
	struct ckt_session **ret_other, bool *ret_end, char ret_message[CKT_MESSAGE_MAX]);
