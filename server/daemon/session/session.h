/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions as the server knows them: one worker process each, spoken to over its UNIX socket,
 * watched through a pidfd.
 *
 *	create -> STARTING --start answered--> LIVE --kill asked--> ENDING
 *	create_warm -> WARMING -> WARM --taken, create--> STARTING (warm_workers.h)
 *	adopt --------------------------------> LIVE      \________________\___> worker dead: waiters told, socket removed, freed
 *
 * Threading: the loop's thread.  Nothing here waits.
 */
#pragma once

#include "server/daemon/image/image_mac.h"
#include "server/daemon/policy/identity.h"
#include "rpc/job.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "server/daemon/server.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/quanta.h"
#include "server/daemon/session/turn.h"
#include "server/daemon/session/swap.h"
#include "server/daemon/session/worker_cgroup.h"
#include "server/daemon/session/refused_calls.h"
#include "server/daemon/session/mps.h"
#include "server/daemon/session/session_metrics.h"

struct ckt_peer;
struct ckt_daemon_request;
struct ckt_restore_again;
struct ckt_automatic_chain;
struct ckt_uid_group;

/*
 * A worker serves each connection in order, so long calls have a connection of their own and STATUS
 * need not wait for them.
 */
enum ckt_link_kind {
	CKT_LINK_SHORT,
	CKT_LINK_LONG,
	CKT_LINK_LEASE, /* others wait for what a worker gives back, even while it starts */
	CKT_LINKS
};

struct ckt_link {
	struct ckt_record_stream stream; /* source.fd is -1 while not connected */
	struct ckt_session *session;
	struct ckt_daemon_request *requests;
};

/* error: 0, or -errno with a sentence in message. */
typedef void (*ckt_session_waiter)(
	struct ckt_session *session, void *context, int error, const char *message);
/*
 * result: the worker's reply, decoded, freed by the caller; NULL with an error (-ETIMEDOUT,
 * -ECONNRESET, -EPROTO).
 */
typedef void (*ckt_request_done)(
	struct ckt_session *session, void *context, int error, void *result);

struct ckt_wait {
	struct ckt_wait *next;
	ckt_session_waiter call;
	void *context;
};

/* Of a session that could sleep; see durable/sleep.h. */
struct ckt_daemon_sleep {
	bool falls;            /* its worker ends, and its image is complete */
	unsigned failures;     /* one after the other */
	int64_t skip_until_ms; /* CLOCK_MONOTONIC: it is not tried again before */
	char note[128];        /* why it stays awake; empty: nothing known */
};

/* Who asked for a restore; see restore_claim.h. */
struct ckt_claimant {
	uint32_t owner; /* ckt_peer_owner */
	uint64_t shown; /* serial of the session whose key it proved; 0 */
	/* of ckt_control_facts */
	uint32_t uid, token;
	enum ckt_role role;
	bool for_others; /* administrators, and the holders of the token of --token-file */
};

struct ckt_session {
	struct ckt_server *server;
	struct ckt_session *next;
	char id[CKT_SESSION_ID_SIZE + 1];
	/* from 1, never reused: ids are inherited, and pids come again */
	uint64_t serial;
	enum {
		CKT_SESSION_STARTING,
		CKT_SESSION_LIVE,
		CKT_SESSION_ENDING,
		CKT_SESSION_WARMING,
		CKT_SESSION_WARM
	} phase;
	struct ckt_restore_again *again; /* of a restore on a warm worker; NULL */
	bool warm;  /* a worker and no session yet: of warm_workers.h, and in no list here */
	bool child; /* of this process, not adopted */
	bool restore;
	pid_t pid;
	struct ckt_uid_group *uid_group; /* NULL without --uid-range */
	struct ckt_group_domain *domain; /* NULL: none, or an earlier server's */
	char cgroup[CKT_CGROUP_NAME];    /* empty: none of its own */
	char end_reason[CKT_BOUNDS_WHY]; /* why the server killed its worker; else empty */
	struct ckt_source pidfd;
	struct ckt_link links[CKT_LINKS];
	struct ckt_refused_calls refused;
	struct ckt_group_member group;
	struct ckt_daemon_lease lease;
	struct ckt_daemon_turn turn;
	struct ckt_mps_member mps;
	struct ckt_daemon_metrics metrics;
	struct ckt_daemon_swap swap;
	struct ckt_daemon_quantum quantum;
	/* the cgroup of the program, of a local client; empty: not known */
	char container[CKT_LIMIT_NAME_MAX + 1];
	uint32_t next_xid;
	unsigned last_replies;  /* turns that the loop took to read them after the worker's end */
	struct ckt_timer timer; /* start, or kill */
	struct ckt_wait *on_started, *on_gone;
	/*
	 * Why it did not start: reported once the worker is gone, so that a failed start leaves
	 * nothing by then.
	 */
	int failure;
	bool claim_refused; /* because of whose the session is, see restore_claim.h */
	char failure_message[CKT_MESSAGE_MAX];
	uint32_t uid;                 /* the owner; CKT_UID_UNKNOWN if not known */
	struct ckt_identity identity; /* whom it counts for */
	bool has_modules;             /* its worker has the cache of modules of */
	struct ckt_identity modules_owner;
	struct ckt_claimant claimant; /* of a restore */
	bool proven;                  /* that the id is its own, and not only the image's word */
	/*
	 * restored for a user who is not known yet: whoever shows the secret over the UNIX socket
	 */
	bool unclaimed;
	uint8_t secret_hash[CKT_SECRET_HASH_SIZE];
	uint64_t generation;
	time_t started;
	int gpu; /* wanted by a restore; -1 */
	/* the program asked for these alone, by CUDA_VISIBLE_DEVICES */
	bool narrowed;
	unsigned visible[CKT_DEVICES_MAX], visible_count;
	struct ckt_peer *holder; /* the connection that keeps it frozen, see image.c */
	/* the connection for which it is preloaded; STARTING until that is done */
	struct ckt_peer *preloader;
	bool preloading;              /* an answer is awaited */
	struct ckt_timer pause_timer; /* see pause.c */
	/* See pause.c; times in seconds since the epoch, 0: for ever. */
	struct {
		struct ckt_session_pause
			*asked; /* what the worker has not answered, in its order */
		int64_t until;  /* while metrics.paused */
		bool marked;
		int64_t marked_until;
	} pause;
	char job[CKT_JOB_NAME_MAX + 1]; /* as its client last reported; empty: none */
	struct ckt_job_hold *job_hold;  /* stopped with its job, see job.c; NULL: not */
	struct ckt_image_bond bond;     /* of a restore */
	struct ckt_event_fold folds[CKT_DECISION_EVENTS]; /* see decision_events.h */
	/* takes that name once the session that has it is gone */
	char successor_of[CKT_SESSION_ID_SIZE + 1];
	/* of its automatic images, see durable/automatic.h; NULL: none */
	struct ckt_automatic_chain *chain;
	bool asks_for_images; /* its client does */
	struct ckt_daemon_sleep sleep;
	bool cut_off; /* nobody ended it on purpose: its client may ask for it again */
	/* The latest reply to STATUS; filled in from the hello until then. */
	struct ckt_worker_status_res status;
};

/* What a new worker becomes. */
struct ckt_session_spec {
	uint32_t uid;
	struct ckt_identity identity;       /* the identity for which it counts */
	struct ckt_claimant claimant;       /* of a restore */
	const struct ckt_hello_args *hello; /* NULL for a restore */
	bool afresh;           /* the hello's session begins again from nothing: durable/afresh.h */
	const char *container; /* of the client; NULL: not known */
	/* restore: the broker of the image's files, stays the caller's; -1 */
	int image_fd;
	const int *image_fds; /* restore of a chain: all of it, newest first */
	unsigned image_count;
	const struct ckt_memory_image *kept; /* restore: an image in memory, with image_fd -1 */
	int gpu;                             /* -1: as --gpus */
	bool ahead;                          /* restore: preload, see ckt_session_preload */
	struct ckt_automatic_chain *chain;   /* restore: the images are of it; NULL */
	struct ckt_image_bond bond;          /* restore: the manifest that must be found */
};

/* What a worker is started for while nobody asks; see warm_workers.h. */
struct ckt_warm_spec {
	struct ckt_identity owner; /* whose group it joins */
	const unsigned *gpus;      /* that it sees; copied */
	unsigned gpu_count;
	struct ckt_mps_kind kind;
};

/*
 * A worker that is WARMING: ckt_warm_ready is called once it is WARM, ckt_warm_gone when it has died.  -errno with the
 * reason.
 */
int ckt_session_create_warm(struct ckt_server *server, const struct ckt_warm_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size);
/* Kills it; ckt_warm_gone follows. */
void ckt_session_end_warm(struct ckt_session *session, const char *why);
/* The same, and waits some seconds at most until it is dead and gone. */
void ckt_session_await_warm_end(struct ckt_session *session);
/* The GPUs that its worker sees, or will see, in their order; their number. */
unsigned ckt_session_gpus(const struct ckt_session *session, unsigned ret_gpus[CKT_DEVICES_MAX]);
/* -errno with the reason.  The session is STARTING. */
int ckt_session_create(struct ckt_server *server, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size);
/* Adopts the workers that live in the socket directory and removes the files of dead ones. */
int ckt_session_adopt_all(struct ckt_server *server);
/*
 * Another image for a session that was created with spec->ahead, or, with spec->ahead false, the
 * last one, which the session becomes. ckt_session_wait_started tells when it is loaded.  0 or
 * -errno.
 */
int ckt_session_preload(struct ckt_session *session, const struct ckt_session_spec *spec);
struct ckt_session *ckt_session_find(struct ckt_server *server, const char *id);
/* Whether a worker is being ended, whose session's place comes free soon. */
bool ckt_session_any_ends(const struct ckt_server *server);
/* Calls once, when a STARTING session is live or has failed; at once if it is already live. */
int ckt_session_wait_started(struct ckt_session *session, ckt_session_waiter call, void *context);
/* Calls once, when the worker is gone. */
int ckt_session_wait_gone(struct ckt_session *session, ckt_session_waiter call, void *context);
/* Asks the worker to end, and kills it if it does not. */
void ckt_session_kill(struct ckt_session *session, const char *why);
/* The same, but nobody wants it to end: its automatic images stay, and its client may come back. */
void ckt_session_give_up(struct ckt_session *session, const char *why);
/* The same at once, without a word to the worker: it has no part in how its session goes on. */
void ckt_session_cut_off(struct ckt_session *session, const char *why);
/* Whether the session, whose worker is gone, was not ended on purpose. */
bool ckt_session_may_return(const struct ckt_session *session, bool crashed);

/*
 * Its worker dies now.  One that shares its GPU in space is terminated by MPS first, so that the others are not
 * disturbed.
 */
void ckt_session_kill_worker(struct ckt_session *session);

/* The worker is about to end by itself; kills it if it does not. */
void ckt_session_expect_end(struct ckt_session *session);

/*
 * Sends a call to the worker.  pass_fd becomes the session's in every case (-1: none).  done is
 * called exactly once, never from within, unless an error is returned.  timeout_ms 0: waits as long
 * as the worker lives; use it only if something else limits the wait: the start's or the end's
 * timer, or ckt_session_call_long.
 */
int ckt_session_call(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args, void *args,
	int pass_fd, xdrproc_t xdr_result, size_t result_size, int timeout_ms,
	ckt_request_done done, void *context);
/*
 * Passes a client's socket to the worker; fd becomes the session's in every case.  peer->uid: its
 * owner, see ckt_peer_owner.
 */
/* Precedes it: the file of the client's pinned memory, the callee's from here on; -1: none came. */
int ckt_session_host_memory(struct ckt_session *session, int fd);
int ckt_session_hand_over(struct ckt_session *session, uint32_t xid,
	const struct ckt_hello_args *hello, const struct ckt_auth_peer *peer, int fd, bool is_new);
