/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --warm: workers that are started before anybody asks for a session, with the driver opened and the first GPU's
 * context made.  They are no sessions: nobody lists or counts them.
 *
 *	        fill                WARM answered            a session fits
 *	(none) ------> being made ----------------> ready ------------------> the session's (session.h)
 *	                    \______________________/   \
 *	                       it died: later again     ended: memory is short, or it is for others now
 *
 * Each GPU has a list of the GPUs that its workers see, it first, and an owner:
 *
 *	nobody         the workers are in one group (uid_group.h, group_domain.h) that is called "next".  It becomes the
 *	               group of the first owner without one who takes a worker, with all workers in it.
 *	an owner       who started a session on this GPU last.  The workers are born in that group, because
 *	               nobody can enter it later.  Some time after the owner's last session they are nobody's again.
 *
 * If owners' workers share nothing, all are nobody's, and fit everybody.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct ckt_mps_daemon;
struct ckt_server;
struct ckt_session;

enum { CKT_WARM_MAX = 64 };

/* At the start, after the earlier server's sessions are found.  Without memory there are none. */
void ckt_warm_init(struct ckt_server *server);
/* Ends them all; none is started any more. */
void ckt_warm_fini(struct ckt_server *server);

/*
 * A warm worker that can become this session, which has no worker yet; the caller's, and in its owner's group.
 * NULL: none fits.
 */
struct ckt_session *ckt_warm_take(struct ckt_server *server, const struct ckt_session *wanted);
/* A session began, on a warm worker or a fresh one: the next warm workers are like it. */
void ckt_warm_follow(struct ckt_server *server, const struct ckt_session *session);
/* A session ended: its owner may have been the reason of some. */
void ckt_warm_session_gone(struct ckt_server *server);

/*
 * Memory of this GPU, which the session sees, is short: its warm workers end, and the next ones wait for a session's end, or for a while.
 * asker: a socket that stays the caller's; CKT_GROUP_FREED goes there once they are dead, CKT_GROUP_NOBODY at once
 * if there are none.
 */
void ckt_warm_give_up(const struct ckt_session *session, unsigned gpu, int asker);

/* Those that share a GPU in space by this daemon, whose clients all have failed. */
void ckt_warm_end_of(struct ckt_server *server, const struct ckt_mps_daemon *daemon);

/* How many of each GPU there should be, and how many there are of all. */
void ckt_warm_count(const struct ckt_server *server, unsigned *ret_wanted, unsigned *ret_making,
	unsigned *ret_ready);

/* Each of them that is a process. */
void ckt_warm_visit(
	const struct ckt_server *server, void (*visit)(pid_t pid, void *opaque), void *opaque);

/* No user id is free: ends those of owners without a session, and waits for that.  False: there are none. */
bool ckt_warm_free_ids(struct ckt_server *server);

/* Of session.c: it has answered WARM, with 0 or -errno and a sentence; it died, for this reason. */
void ckt_warm_ready(struct ckt_session *session, int error, const char *message);
void ckt_warm_gone(struct ckt_session *session, const char *how);
