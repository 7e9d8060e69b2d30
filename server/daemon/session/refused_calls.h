/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a worker's cage refuses, by name in our log.
 *
 *	open -> the worker passes its descriptor (server/worker/cage/cage.c) -> each refused call:
 *	we say EPERM, and log the call's first occurrence -> close
 *
 * The kernel makes the worker's thread wait for our answer, so a worker that makes such calls slows
 * itself down.  We take no more than some of them at a time.
 *
 * Nothing here believes the worker: it sends one descriptor, of one kind, and the kernel says which
 * calls it makes.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/loop.h"

struct ckt_server;

enum {
	CKT_REFUSED_CALLS = 1024,    /* the kernel numbers fewer than 500; all above are one */
	CKT_REFUSED_CALLS_NAMED = 16 /* of a worker: one that tries them all must not fill a log */
};

/* Of a session.  Zeroed memory is closed. */
struct ckt_refused_calls {
	struct ckt_server *server;
	const char *session; /* its id, which may change */
	/* The worker's socket until its descriptor has come, and then that. */
	struct ckt_source source;
	unsigned named;
	uint8_t seen[CKT_REFUSED_CALLS / 8];
};

/* session: the id, which lives as long as *calls. */
void ckt_refused_calls_init(
	struct ckt_refused_calls *calls, struct ckt_server *server, const char *session);
/* ret_fd: the worker's end, the caller's.  0 or -errno. */
int ckt_refused_calls_open(struct ckt_refused_calls *calls, int *ret_fd);
/* The worker's refused calls fail with ENOSYS from here on.  Again: nothing. */
void ckt_refused_calls_close(struct ckt_refused_calls *calls);
