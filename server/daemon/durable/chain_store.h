/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The automatic images of one session on the disk: a directory below --auto-dir, of the server's user,
 * mode 0700.
 *
 *	DIR/SESSION/lock	locked (F_OFD_SETLK) by everybody for whom the session lives: its server and its worker
 *	DIR/SESSION/state	who the session is, and which images are its chain; replaced as a whole
 *	DIR/SESSION/state.next	the same, once all of its group have one of that cut: see group_cut.h
 *	DIR/SESSION/N/		an image; no part of the chain before the state names it
 *
 * The state's rename is the moment from which an image counts.  What it does not name is a rest of
 * something that failed, and is removed.
 *
 * A lock is shared between the server and the worker, and exclusive for whoever wants to start the
 * session again.  So it is free once worker and server are gone, on any host that shares DIR.
 *
 * Errors: 0 or -errno.  Threading: one thread at a time for each store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/worker.h"

enum {
	CKT_CHAIN_IMAGES_MAX = 48, /* CKT_IMAGE_CHAIN_MAX, and room for one that fails */
	CKT_CHAIN_HASH = 32,
	CKT_CHAIN_CUT = 16,
	CKT_CHAIN_MEMBERS_MAX = 64, /* of a group that goes back together: a state stays small */
};

struct ckt_chain_image {
	uint64_t number; /* its directory's name */
	uint64_t bytes;  /* on the disk */
};

struct ckt_chain_state {
	char session[CKT_SESSION_ID_SIZE + 1];
	uint32_t owner; /* as struct ckt_session's uid */
	uint8_t secret_hash[CKT_SECRET_HASH_SIZE];
	uint64_t generation, copy; /* of the last worker that ran it */
	uint64_t executed;         /* in the newest image */
	int64_t when;              /* of that; seconds since the epoch */
	uint8_t last[CKT_IMAGE_ID_SIZE];
	/* SHA-256 of the newest image's manifest, see chain_mac.h; only with a key */
	bool has_manifest;
	uint8_t manifest[CKT_CHAIN_HASH];
	unsigned restores; /* from it, without a newer one and without progress since */
	uint64_t acked;    /* at the last of these: what the client knew to be executed */
	int gpu;           /* ordinal; -1: any */
	bool asked;        /* its client asked for images */
	bool shared;       /* with other sessions: it does not come back, as no cut has them all */
	/* Its newest image is of that cut of all these, itself included, sorted; none: of itself alone. */
	uint8_t cut[CKT_CHAIN_CUT];
	unsigned member_count;
	char members[CKT_CHAIN_MEMBERS_MAX][CKT_SESSION_ID_SIZE + 1];
	/* Only with a key, as what the files of replica.h say: */
	unsigned replica_ms; /* another server's session, with a lease of that length; 0: our own */
	bool replicated;     /* a replica of it may count at another server */
	bool asleep;         /* its worker ended when the newest image was complete: see sleep.h */
	/* Oldest first; each but the first builds on those before it. */
	unsigned count;
	struct ckt_chain_image images[CKT_CHAIN_IMAGES_MAX];
};

/* Whether that session is among the members. */
bool ckt_chain_has_member(const struct ckt_chain_state *state, const char *session);
/* Whether both are of one cut of the same sessions, of one owner. */
bool ckt_chain_same_cut(const struct ckt_chain_state *a, const struct ckt_chain_state *b);
/* Whether it can be the name of a session's directory: peers choose ids. */
bool ckt_chain_id_good(const char *session);
/*
 * The session's directory, the caller's; -ENOENT if there is none and it is not to be made, -EPERM
 * if it is another user's or others may write there.
 */
int ckt_chain_open(int parent_fd, const char *session, bool make);
/*
 * The lock, the caller's: -EBUSY if somebody else has it.  beside: the session's worker lives and
 * may have it.
 */
int ckt_chain_lock(int dir_fd, bool beside);
/* Whether the worker said, by a byte in the lock's file, that the session ended as it should. */
bool ckt_chain_is_over(int dir_fd);
/*
 * -ENOENT: none; -EBADMSG: damaged, or of another session; with keys (chain_mac.h) -ENOKEY: none
 * vouches for it, -EKEYREJECTED: it was changed.
 */
int ckt_chain_read(int dir_fd, const char *session, struct ckt_chain_state *ret_state);
/* On the disk when this returns, completely or not at all. */
int ckt_chain_write(int dir_fd, const struct ckt_chain_state *state);
/*
 * The next state, which does not count before all of its group have one of the same cut.  Write, as
 * above; read, with the same errors; settle: it becomes the state, or goes.
 */
int ckt_chain_next_write(int dir_fd, const struct ckt_chain_state *state);
int ckt_chain_next_read(int dir_fd, const char *session, struct ckt_chain_state *ret_state);
int ckt_chain_next_settle(int dir_fd, bool counts);
/* Text of a state and back, for the two above and for tests. */
int ckt_chain_state_parse(char *text, struct ckt_chain_state *ret_state);
/* The directory of an image, the caller's; make: a new, empty one. */
int ckt_chain_image_open(int dir_fd, uint64_t number, bool make);
/* The bytes that its files take. */
uint64_t ckt_chain_image_bytes(int image_fd);
void ckt_chain_image_remove(int dir_fd, uint64_t number);
/* Removes images that the state does not name; NULL: all. */
void ckt_chain_clean(int dir_fd, const struct ckt_chain_state *state);
/* The same, of those that neither the state on the disk nor the next one names. */
void ckt_chain_clean_beside(int dir_fd, const char *session, const struct ckt_chain_state *next);
/* The session and all that is its; the lock goes last.  Precondition: locked. */
void ckt_chain_remove(int parent_fd, int dir_fd, const char *session);
