/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that share come back together, from one cut (group_cut.h), or not at all.
 *
 *	RESUME of a member whose worker died -> its client has seen more than the cut, and cannot replay? refused; the others go on
 *	  -> every other that lives is held: it has executed more, and its client cannot replay? refused, and all go on; else its worker is ended
 *	  -> not all clients have come? "ask again" -> all have: each starts from its images of the cut
 *
 * If nobody has seen more than the cut, every command behind it runs for the first time, in whatever
 * order.  Otherwise all clients replay, in one order: each worker gets the page of rpc/stamps.h, and
 * is told so before its client comes.  No worker is ended before the dead one's client has come and
 * could go on.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "rpc/session.h"
#include "server/daemon/durable/chain_store.h"
#include "server/daemon/server.h"

struct ckt_automatic_chain;
struct ckt_peer;
struct ckt_session;

/*
 * A member's client asks for its session, whose state that is and whose worker is gone.  0: it starts
 * now; -EAGAIN with the reason: not yet; -EBADMSG with the reason: it does not come back.
 */
int ckt_group_return(struct ckt_peer *peer, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX]);
/* The member starts: it gets the page if its group replays, and a new count if that got any further.  0 or -errno. */
int ckt_group_return_take(struct ckt_automatic_chain *chain);
/* Its worker is live, and its client comes next. */
void ckt_group_return_tell(struct ckt_session *session);
/* A worker died that had its session: what its group has agreed on is over. */
void ckt_group_return_over(const char *session);
void ckt_group_return_fini(void);
