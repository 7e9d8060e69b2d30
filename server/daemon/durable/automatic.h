/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that the server takes of its sessions by itself (--auto-checkpoint), and sessions that come
 * back from them.
 *
 *	live, its time has come --executed nothing--> wait
 *	                        --SAVE2--> image is written --state names it--> DURABLE to the worker, older ones go
 *	worker died             --> the chain stays, unlocked --HELLO RESUME--> a new worker, from the chain
 *	session ended           --> the chain is removed
 *
 * An image builds on the one before.  One that builds on none comes where those that build on the
 * first have grown as large as it, or are many; then the older ones go.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/worker.h"
#include "server/daemon/durable/chain_store.h"
#include "server/daemon/server.h"

struct ckt_automatic_chain;
struct ckt_broker;
struct image;
struct ckt_group_cut;
struct ckt_control_durable;
struct ckt_image_space;
struct ckt_peer;
struct ckt_session;

/* The server's, while it takes images. */
struct ckt_automatic {
	unsigned seconds; /* between two images; 0: only of sessions that fall asleep */
	bool asked;       /* only of sessions whose client asks */
	int dir_fd;
	char dir[CKT_PATH_MAX];
	struct ckt_timer sweep; /* removes chains of which nobody came for a day */
};

/* One session's. */
struct ckt_automatic_chain {
	struct ckt_server *server;
	struct ckt_session *session; /* NULL: none any more, and it is removed at `timer` */
	struct ckt_automatic_chain *next_waiting;
	char id[CKT_SESSION_ID_SIZE + 1];
	int dir_fd, lock_fd; /* -1 until its first image */
	struct ckt_chain_state state;
	struct ckt_timer timer;
	struct ckt_sleeper *sleeper;   /* of a session that falls asleep or sleeps; sleep.h; NULL */
	struct ckt_image_space *space; /* counts state.images; NULL: not yet */
	struct ckt_broker *broker;     /* of an image that is written, or of the restore */
	bool busy, whole_next;
	bool committing;           /* a thread writes in the directory */
	bool keep;                 /* of what has no session: its images stay */
	bool shares;               /* with other sessions, see automatic_share.c */
	bool unfit;                /* its worker died, and the state does not say that it shares */
	struct ckt_group_cut *cut; /* that is being taken, of it and others; NULL: none */
	/* Of a return in which its group replays: the page, until its worker has it (rpc/stamps.h); -1. */
	struct {
		int fd;
		unsigned slot, count;
	} stamps;
	struct image *image;                 /* in the making; see automatic_image.c */
	uint64_t number, counted, last_copy; /* last_copy: of the worker before this one */
	int64_t alive_ms; /* CLOCK_MONOTONIC, of its restore; 0: it was not restored */
	unsigned wait;    /* that many times the usual time until the next try */
	uint64_t taken;
	char problem[128]; /* why no image was taken last time; empty: nothing */
};

/* Opens --auto-dir, if images are wanted. -errno with the reason. */
int ckt_automatic_init(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_automatic_fini(struct ckt_server *server);

/* The value of a capability in a hello; 0: it is not there. */
uint64_t ckt_automatic_told(const struct ckt_hello_args *hello, const char *name);
/* Whether a hello asks for images. */
bool ckt_automatic_is_asked(const struct ckt_hello_args *hello);
/* A client that asks has come to the session. */
void ckt_automatic_ask(struct ckt_session *session);
/* The session is live: new, restored, or found by a server that was started again. */
void ckt_automatic_begin(struct ckt_session *session);
/* Its worker is gone; crashed: not because the program or somebody else ended it. */
void ckt_automatic_end(struct ckt_session *session, bool crashed);

/*
 * The chain of no session any more, which goes with this call: its images stay for its client's
 * return, and are removed after --claim-timeout.
 */
void ckt_automatic_leave(struct ckt_automatic_chain *chain);
/* The one whose images stay so; NULL: none. */
const struct ckt_automatic_chain *ckt_automatic_left(const char *session);
/* Its client asks, and has to wait: its images stay as long again. */
void ckt_automatic_prolong(const char *session);
/* The client has returned.  Whether there was one. */
bool ckt_automatic_forget(const char *session);

/* ---- automatic_restore.c */

/* From one image, without another since: what dies more often is not started again. */
enum { CKT_AUTOMATIC_RESTORES_MAX = 3 };

/* Whether that peer may be the client of the session of that state: as for a session that is here. */
int ckt_automatic_check_peer(const struct ckt_peer *peer, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX]);
/*
 * The session of a hello RESUME that is not here: from its chain.  0 and the session, which starts;
 * -ENOENT: there is none; -EACCES: the hello's secret is not its; else -errno with the reason.
 */
int ckt_automatic_resume(
	struct ckt_peer *peer, struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX]);
/* Tells a worker that is to restore the chain whose it is: before START.  0 or -errno. */
int ckt_automatic_tell(struct ckt_session *session);
/* Whether the restored worker has the session that its chain names; if not, why. */
bool ckt_automatic_fits(const struct ckt_session *session,
	const struct ckt_worker_origin_res *origin, char ret_message[CKT_MESSAGE_MAX]);

/* ---- automatic_image.c */

/* Takes an image if it is time; sets the timer for the next one. */
void ckt_automatic_tick(struct ckt_timer *timer);
/*
 * Takes one now and holds the session, whose chain has a sleeper.  0: ckt_sleep_held or ckt_sleep_failed
 * will be called; else -errno.
 */
int ckt_automatic_take_held(struct ckt_automatic_chain *chain);

/* Takes one that is a part of chain->cut.  False: not, and `problem` says why; else ckt_group_cut_saved. */
bool ckt_automatic_take_of_cut(struct ckt_automatic_chain *chain);
/* That image counts from now on; ckt_group_cut_counted follows. */
void ckt_automatic_image_count(struct ckt_automatic_chain *chain);
/* It is removed: the cut has failed. */
void ckt_automatic_image_drop(struct ckt_automatic_chain *chain);
/* Why there is no image. */
void ckt_automatic_failed(struct ckt_automatic_chain *chain, const char *why);

/* ---- automatic_share.c */

#define CKT_AUTOMATIC_SHARES                                          \
	"it shares memory, events or communicators with others, and " \
	"all would have to go back together"
/* The session has been connected with another one of its group: no image of it alone is good. */
void ckt_automatic_share(struct ckt_session *session);

/* ---- For these files */

struct ckt_automatic_chain *ckt_automatic_chain_new(struct ckt_server *server, const char *session);
/* Closes what it has; the images stay. */
void ckt_automatic_chain_free(struct ckt_automatic_chain *chain);
/* What the chain's images say of a group is true of the session. */
void ckt_automatic_join_group(struct ckt_session *session, const struct ckt_automatic_chain *chain);
/* Counts what the state names for the session's owner, and no longer what it named before. */
void ckt_automatic_count(struct ckt_automatic_chain *chain, uint32_t owner);
void ckt_automatic_wait(struct ckt_automatic_chain *chain);
/* Writes that it shares, unless that is done. */
void ckt_automatic_note_share(struct ckt_automatic_chain *chain);
/* Of no session: waits for its client for so long, and then its images are removed. */
void ckt_automatic_wait_for_client(struct ckt_automatic_chain *chain, int64_t delay_ms);
/* Removes the images of a chain of no session, and the chain. */
void ckt_automatic_drop(struct ckt_automatic_chain *chain);
/* It has no session any more, and no thread: it stays or goes, as `keep` says. */
void ckt_automatic_ended(struct ckt_automatic_chain *chain);
