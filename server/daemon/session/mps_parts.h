/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of mps.h share, for them alone.
 *
 *	mps.c        who shares a daemon; its start and its end
 *	mps_adopt.c  daemons of an earlier server
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/daemon/policy/identity.h"
#include "server/daemon/server.h"
#include "server/daemon/session/mps.h"
#include "server/daemon/session/mps_process.h"

#define CKT_MPS_PREFIX "mps-"

enum {
	CKT_MPS_FINI_MS = 2000,
	CKT_MPS_NAME = sizeof CKT_MPS_PREFIX + 8, /* of a daemon's directory */
};

enum ckt_mps_state { CKT_MPS_DOWN, CKT_MPS_RUNS, CKT_MPS_QUITS, CKT_MPS_REMOVES };

struct ckt_mps_daemon {
	struct ckt_mps_daemon *next;
	struct ckt_server *server;
	enum ckt_mps_state state;
	char owner[CKT_IDENTITY_FILE_NAME];
	unsigned gpu;
	unsigned members;
	bool faulted, full_told;
	bool adopted; /* an earlier server's: nobody knows its process */
	struct ckt_worker_user user;
	/* which its processes are in, as a worker is */
	struct ckt_uid_group *uid_group;
	struct ckt_group_domain *domain;
	struct ckt_mps_process_place place;
	struct ckt_source
		process; /* a pidfd: the daemon, what asks it to quit or what removes its files; -1: none */
	int64_t started_ms;
	struct ckt_timer timer; /* to start it again, or to kill it */
};

struct ckt_mps {
	char program[CKT_PATH_MAX];
	struct ckt_mps_daemon *list;
	int64_t again_ms; /* none is started before */
	bool told;        /* that there is none */
	bool leftovers;   /* directories of an earlier server */
};

/* In the list, with nothing of its own yet; NULL: no memory. */
struct ckt_mps_daemon *ckt_mps_daemon_new(struct ckt_server *server, const char *owner,
	const struct ckt_worker_user *user, unsigned gpu);
const char *ckt_mps_daemon_name(const struct ckt_mps_daemon *daemon);
