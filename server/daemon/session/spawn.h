/* SPDX-License-Identifier: Apache-2.0 */
/* Starting workers. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct ckt_group_domain;
struct ckt_identity;
struct ckt_server;
struct ckt_worker_user;

/*
 * What the worker inherits (rpc/worker_descriptors.h), and where it is put; all stays the caller's.
 */
struct ckt_spawn_descriptors {
	int listener;                        /* of its control socket */
	int refused;                         /* -1: none */
	int compiler;                        /* -1: none */
	const char *cgroup;                  /* see worker_cgroup.h; NULL or empty: the server's */
	struct ckt_group_domain *domain;     /* NULL: no group's */
	const struct ckt_mps_variables *mps; /* of a worker that shares its GPU in space; NULL */
};

/*
 * Starts a worker of this owner, as this user.  owner NULL: it is not yet known, and the worker has no cache of
 * compiled kernels (kernel_cache.h).  The worker is the one that the kernel names as the other end of a
 * later connection to its control socket (SO_PEERCRED).
 */
int ckt_spawn_worker(struct ckt_server *server, const struct ckt_identity *owner,
	const struct ckt_worker_user *user, const struct ckt_spawn_descriptors *descriptors,
	pid_t *ret_pid, char *ret_message, size_t message_size);

/*
 * Starts the process that compiles for workers (server/worker/compiler/compile_server.h), as the
 * user of --user, which no owner's workers have with --uid-range.  control: stays the caller's.
 */
int ckt_spawn_compiler(struct ckt_server *server, int control, pid_t *ret_pid, char *ret_message,
	size_t message_size);
