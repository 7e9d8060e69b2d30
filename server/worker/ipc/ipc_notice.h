/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How other sessions find a restored session that shares memory by its ID: a small file in the
 * host's shared memory, named by a hash of the server's directory and the session's id, and by its
 * worker, which holds it locked for as long as it lives.  So a dead one's is told from a living
 * one's, and a server removes it (server/daemon/session/worker_leftovers.c).  Anybody's image may
 * claim an id, so there may be several, and each is asked.
 *
 * Threading: any.
 */
#pragma once

#include <stdbool.h>

#include "rpc/ipc.h"

enum { CKT_IPC_NOTICES_MAX = 16 };

struct ckt_worker;

/* Makes this worker's notice, once; it stays until the process ends.  0 or -errno. */
int ckt_ipc_notice_leave(struct ckt_worker *worker, const char session[CKT_IPC_SESSION]);
/* The sockets of living workers of this server with a notice for the session; returns how many. */
unsigned ckt_ipc_notice_find(struct ckt_worker *worker, const char session[CKT_IPC_SESSION],
	char ret_sockets[CKT_IPC_NOTICES_MAX][CKT_IPC_SOCKET]);
