/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing a GPU in space (--share space): the sessions of one owner that have the same GPU first are clients of one
 * MPS control daemon, which the server starts as their user, inside of what their group shares (group_domain.h).
 * Owners whom an administrator named with one share-group= are one owner in this: their workers in space have one
 * user, one domain and one daemon.  Those in time stay apart.
 *
 *	          first session        last one gone          ended            removed
 *	(none) ----------------> RUNS ---------------> QUITS -------> REMOVES ---------> (none)
 *	                         |  ^
 *	                    died |  | started again
 *	                         v  |
 *	                         DOWN
 *
 * A kernel's fault reaches all clients of a daemon (mps_fault): their workers end, and no session joins the
 * daemon any more.
 *
 * A session is in time instead where there is no MPS, where the daemon does not answer, and beyond
 * CKT_MPS_MEMBERS_MAX; the log says so once.  Which it is, is decided before its worker starts, and stays so.
 * An earlier server's daemons serve the workers that live on, and are ended once those are gone.  The file of a
 * session's owner (owner_file.h) names its daemon.  Nobody else joins one if workers have a group_domain.h: the
 * sessions of its owner that come later have a daemon of their own.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "server/daemon/policy/identity.h"
#include "server/daemon/policy/limit_rule.h"

struct ckt_group_domain;
struct ckt_mps_daemon;
struct ckt_server;
struct ckt_session;
struct ckt_worker_user;

enum {
	/* Of NVIDIA's MPS, contexts of a GPU, since Volta. */
	CKT_MPS_MEMBERS_MAX = 48,
	CKT_MPS_VARIABLES = 5,
	CKT_MPS_VARIABLE_MAX = 512,
	CKT_MPS_NOTE = 64,
};

/* What a worker is told before it opens the driver; it cannot change. */
struct ckt_mps_kind {
	bool space;
	unsigned percent;                    /* of the processors; 0: all */
	bool below;                          /* other clients go first */
	char group[CKT_SHARE_GROUP_MAX + 1]; /* of owners that agree; "": its owner alone */
};

/* NAME=VALUE; empty ones are none. */
struct ckt_mps_variables {
	char directory[CKT_MPS_VARIABLE_MAX]; /* of the pipes */
	char text[CKT_MPS_VARIABLES][CKT_MPS_VARIABLE_MAX];
};

/* Of a session.  Zeroed memory is in time. */
struct ckt_mps_member {
	struct ckt_mps_daemon *daemon; /* NULL: in time */
	struct ckt_mps_kind asked; /* where there is room; of a warm worker, by warm_workers.h */
	bool ends;                 /* its client is being terminated */
	bool told_end;             /* its worker wanted that, to exit with this status: */
	int status;
	const char *reason; /* why it is in time, although it should be in space; NULL */
};

/* Finds the control program. */
void ckt_mps_init(struct ckt_server *server);
/* Why this host's GPUs cannot be shared in space; NULL: they can. */
const char *ckt_mps_obstacle(const struct ckt_server *server);
/* What the next server has to know of its daemon, one line; "": it is in time. */
void ckt_mps_note(const struct ckt_session *session, char ret_text[CKT_MPS_NOTE]);
/* For a session whose worker is found again: by the note in its file, if it is in space. */
void ckt_mps_adopt(struct ckt_session *session);
/* All sessions that can be found are: ends the daemons of an earlier server that serve nobody. */
void ckt_mps_settle(struct ckt_server *server);
/* Ends all. */
void ckt_mps_fini(struct ckt_server *server);

/* What the server says of a session that no rule fits; of a warm worker that is nobody's. */
struct ckt_mps_kind ckt_mps_kind_default(const struct ckt_server *server);
/* What its limits and the server say, and this host allows. */
struct ckt_mps_kind ckt_mps_kind_of(const struct ckt_session *session);
/*
 * Whose workers its worker belongs to, by user, group_domain.h and MPS: its owner's, or those of all owners of its
 * share-group=.
 */
struct ckt_identity ckt_mps_group(const struct ckt_session *session);
/* Whether it is with other owners, and a session of its owner's that starts now would be, too. */
bool ckt_mps_in_group(const struct ckt_session *session, bool *ret_agreed);
bool ckt_mps_same_kind(const struct ckt_mps_kind *a, const struct ckt_mps_kind *b);
/*
 * For a session whose worker is about to start as this user in this domain.  May wait a moment for a new daemon.
 * ret_variables: of the worker's environment.  False: it is in time.
 */
bool ckt_mps_join(struct ckt_session *session, const struct ckt_worker_user *user,
	struct ckt_mps_variables *ret_variables);
/* Its worker is gone. */
void ckt_mps_leave(struct ckt_session *session);
/* Daemons of nobody's in this domain are this owner's. */
void ckt_mps_give(struct ckt_server *server, const struct ckt_group_domain *domain,
	const struct ckt_identity *owner);
/* How many sessions its daemon has. */
unsigned ckt_mps_members(const struct ckt_session *session);

/*
 * Has the daemon terminate what its worker has on the GPU, and kills the worker then.  0; -errno: nobody does, the
 * caller kills it.
 */
int ckt_mps_terminate(struct ckt_session *session);
/* A kernel of its worker, which is gone, has failed, and with it all that share the GPU with it: they end. */
void ckt_mps_fault(struct ckt_session *session);
/*
 * Its worker asks to be terminated, which is then taken for an exit with that status.  False: it shares nothing in
 * space, or no worker exits so.
 */
bool ckt_mps_wants_end(struct ckt_session *session, int status);
/*
 * Its worker did not start, for this reason: if that is MPS, the next ones are in time for a while.
 */
void ckt_mps_unusable(const struct ckt_session *session, const char *message);
