/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that share come back together, from one cut (group_cut.h), or not at all.
 *
 *	RESUME of a member whose worker died -> its client has seen more than the cut? refused; the others go on
 *	  -> every other that lives is held: it has executed more? refused, and all go on; else its worker is ended
 *	  -> not all clients have come? "ask again" -> all have: each starts from its images of the cut
 *
 * Nobody has seen more than the cut then, so every command behind it runs for the first time, in
 * whatever order.  No worker is ended before the dead one's client has come and could go on.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "rpc/session.h"
#include "server/daemon/durable/chain_store.h"
#include "server/daemon/server.h"

struct ckt_peer;

/*
 * A member's client asks for its session, whose state that is and whose worker is gone.  0: it starts
 * now; -EAGAIN with the reason: not yet; -EBADMSG with the reason: it does not come back.
 */
int ckt_group_return(struct ckt_peer *peer, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX]);
/* A worker died that had its session: what its group has agreed on is over. */
void ckt_group_return_over(const char *session);
void ckt_group_return_fini(void);
