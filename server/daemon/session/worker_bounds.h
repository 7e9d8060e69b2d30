/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker may take of its host where no cgroup bounds it.  The server looks twice a second, and
 * before it starts a worker, and ends the worker that takes too much:
 *
 *	threads		more than a cgroup would allow a worker
 *	threads		the workers of one user have nearly all that the kernel allows that user
 *			(RLIMIT_NPROC): the largest one of the owner who has most, so that others can start
 *	memory		the host has nearly none left: the largest one of the owner who has most, if that is a
 *			quarter of the host's or more
 *
 * Its client is told why when it asks for its session.  A bound that the kernel keeps is better
 * (worker_cgroup.h): between two looks a worker can take what it gets.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/session.h"
#include "server/daemon/loop.h"

struct ckt_server;
struct ckt_session;

enum { /* as many as share a GPU in space, and end together */ CKT_BOUNDS_TOLD = 64,
	CKT_BOUNDS_WHY = 160 };

struct ckt_worker_bounds {
	struct ckt_timer timer;
	/* The last ones that were ended. */
	struct ckt_bounds_told {
		char session[CKT_SESSION_ID_SIZE + 1];
		char why[CKT_BOUNDS_WHY];
	} told[CKT_BOUNDS_TOLD];
	unsigned next;
};

/* What one worker has. */
struct ckt_worker_use {
	unsigned uid, owner; /* the same number: of the same owner */
	uint64_t threads;
	uint64_t memory_bytes; /* mapped, of its own or shared, and swapped out */
	bool spare;            /* a warm one: counted, and not ended for this */
};

struct ckt_worker_host {
	uint64_t threads;      /* of one user; 0: no limit */
	uint64_t memory_bytes; /* 0: not known */
	uint64_t available_bytes;
};

/* Begins to look, where no cgroup bounds workers; while there are none it rests. */
void ckt_worker_bounds_init(struct ckt_server *server);
/*
 * Looks now, and waits a second at most until a worker that it ends is gone: a worker is about to be
 * started.
 */
void ckt_worker_bounds_make_room(struct ckt_server *server);
/* Its client is to be told this when it asks for its session. */
void ckt_worker_bounds_tell(const struct ckt_session *session, const char *why);
/* Why the server ended this session; NULL: not for this reason, or long ago.  Until the next turn. */
const char *ckt_worker_bounds_why(const struct ckt_server *server, const char *session);

/* The rest is for tests. */
/* From a file like /proc/PID/status.  0, -errno or -EBADMSG. */
int ckt_worker_use_read(const char *path, struct ckt_worker_use *ret_use);
/* Which of these workers is to end, and why; -1: none. */
int ckt_worker_bounds_choose(const struct ckt_worker_use *uses, unsigned count,
	const struct ckt_worker_host *host, char ret_why[CKT_BOUNDS_WHY]);
