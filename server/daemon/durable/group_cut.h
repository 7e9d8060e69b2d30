/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Automatic images of sessions that share memory, events or communicators: all of one moment, a cut.
 *
 *	HOLD stop to every worker of the group -> all drained at one look? no: all go on, and it is tried later
 *	  (of ranks of communicators: steps for those that have issued fewer collectives; rpc/job_cut.h)
 *	  -> CUT, SAVE2 of each, side by side -> all have copied: all go on
 *	  -> every next state is on the disk, with the cut and all members -> it becomes the state, of each -> DURABLE
 *
 * A cut counts if the states of all members name it.  While next states become states, a server may
 * die: then some members have it in `state` and the others in `state.next`, and it counts
 * (ckt_group_settle).  Before that the cut before counts, whose images stay until then.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "rpc/worker.h"
#include "server/daemon/durable/chain_store.h"
#include "server/daemon/server.h"

struct ckt_automatic_chain;
struct ckt_group_cut;

/*
 * A chain's time has come, and its session has been connected with others.  True: a cut is being taken,
 * or not now; false: nobody else is left, and an image of it alone is good.
 */
bool ckt_group_cut_take(struct ckt_automatic_chain *chain, bool has_news);
/* Whether the chain's newest images are of a cut of all with whom the session shares now. */
bool ckt_group_is_covered(struct ckt_automatic_chain *chain);
/* Its worker is gone.  Precondition: it is of a cut, at whose end ckt_automatic_ended follows. */
void ckt_group_cut_leave(struct ckt_automatic_chain *chain);
/* Whether a cut is being taken of that session. */
bool ckt_group_cut_has(const char *session);
void ckt_group_cut_fini(void);

/*
 * Makes next states states where those of all members are of one cut, as the server before would have.
 * dir_fd: of that session.  Precondition: no cut is being taken of it.
 */
void ckt_group_settle(struct ckt_server *server, int dir_fd, const char *session);
/*
 * Whether the states or next states of all members are of that state's cut; ret_next: whose next
 * states they are.
 */
bool ckt_group_cut_is_whole(struct ckt_server *server, const struct ckt_chain_state *wanted,
	bool ret_next[CKT_CHAIN_MEMBERS_MAX]);

/* ---- automatic_image.c tells it of the image of one member */

/* It is on the disk, and so is the next state that names it; or it is not. */
void ckt_group_cut_saved(struct ckt_automatic_chain *chain, bool good);
/* The next state has become the state, or not. */
void ckt_group_cut_counted(struct ckt_automatic_chain *chain);
/* What the state says of the cut. */
void ckt_group_cut_name(const struct ckt_automatic_chain *chain, struct ckt_chain_state *state);
