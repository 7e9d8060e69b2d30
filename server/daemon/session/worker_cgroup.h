/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup (version 2) for each worker, beside the server's own in a cgroup that was delegated:
 *
 *	PARENT			delegated; the server enables memory, pids and cpu for what is in it
 *	  server		of the server, in which somebody started it
 *	  worker-PID-N		of a worker, with its limits; PID is the server's
 *
 * Where the server is in the delegated cgroup itself, the kernel allows no limits below, and a service
 * manager could start no server beside workers that it left.  So it needs a cgroup of its own in there: systemd puts it
 * there (Delegate= and DelegateSubgroup=), or PARENT/server is there when it starts, and it moves
 * there.  Before 254 systemd must take the limits off PARENT before it starts a server beside workers
 * (systemd-before-254.conf); the server sets them again.
 *
 * Threading: the loop's thread, but for _enter.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ckt_server;

enum { CKT_CGROUP_NAME = 48 };

struct ckt_cgroup_limits {
	uint64_t memory_bytes; /* 0: none */
	unsigned tasks;        /* processes and threads */
};

/*
 * Looks whether there is one; mounts and own: /proc/self/mountinfo and /proc/self/cgroup (NULL) or
 * files like these.  Fills server->cgroup_dir, or leaves it empty.  ret_text: a sentence for the log.
 */
void ckt_worker_cgroups_init(struct ckt_server *server, const char *mounts, const char *own,
	char *ret_text, size_t text_size);
/* The limits of a session's worker: those that the session has, and what they do not count. */
struct ckt_cgroup_limits ckt_worker_cgroup_limits(
	const struct ckt_server *server, uint64_t host_memory_bytes, uint64_t device_memory_bytes);
/*
 * Sets the limits of one that is there; name empty: nothing.  Not that of memory, if it has more already.
 * 0 or -errno.
 */
int ckt_worker_cgroup_limit(
	const struct ckt_server *server, const char *name, const struct ckt_cgroup_limits *limits);
/*
 * Makes one with these limits; those whose controller is missing are left out.  ret_name: empty if there
 * is no delegated cgroup.  0 or -errno.
 */
int ckt_worker_cgroup_create(const struct ckt_server *server, uint64_t number,
	const struct ckt_cgroup_limits *limits, char ret_name[CKT_CGROUP_NAME]);
/* For the child: moves it there.  0, or -1 and errno. */
int ckt_worker_cgroup_enter(const struct ckt_server *server, const char *name);
/* The one of a worker that an earlier server started; empty: none of ours. */
void ckt_worker_cgroup_adopt(
	const struct ckt_server *server, pid_t pid, char ret_name[CKT_CGROUP_NAME]);
/* Its worker is gone: kills what is left in it, and removes it. */
void ckt_worker_cgroup_remove(const struct ckt_server *server, const char *name);
/* Removes all empty ones. */
void ckt_worker_cgroups_sweep(const struct ckt_server *server);
