/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace for each worker, if root started the server, or its workers have a user namespace
 * (user_namespace.h):
 *
 *	/dev/shm            in memory, that of its group (group_domain.h): what the workers of one group share
 *	/tmp, /var/tmp      the worker's alone, in memory, gone with it
 *	that of the socket  empty, so that no worker connects to the server or to another worker:
 *	                    Landlock does not restrict that
 *	/proc               the worker's own processes alone, if this host can (spawn_proc.h)
 *	a closed home       empty, if the worker's program lies in it and the server is not root
 *
 * What a worker needs and lies below one of the others but /proc stays where it is: its program, the
 * driver, and what the server's environment names.  One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_server;
struct ckt_spawn_proc;
struct ckt_worker_user;

enum { CKT_SPAWN_AREAS = 4, CKT_SPAWN_KEPT_MAX = 48 };

struct ckt_spawn_mounts {
	bool wanted;
	bool own_shm; /* it has no group */
	/* /tmp, /var/tmp, the directory of the socket, and one that is closed to the worker's user */
	char areas[CKT_SPAWN_AREAS][128];
	bool shared[CKT_SPAWN_AREAS]; /* the whole area is needed, and stays the host's */
	char *kept[CKT_SPAWN_KEPT_MAX];
	unsigned kept_count;
	unsigned uid, gid;
	const struct ckt_spawn_proc *proc; /* the server's */
	const char *cache; /* of compiled kernels (kernel_cache.h), or empty; the caller's */
};

/*
 * Whether this host lets the server do it, which a child tries; the server asks it once, at its start, and
 * workers start without where it does not.
 */
void ckt_spawn_mounts_probe(struct ckt_server *server);
/*
 * in_group: the process is born where its group's /dev/shm is, or enters it first.  cache: a directory that stays
 * visible; empty: none.  Free the result with _fini.
 */
void ckt_spawn_mounts_init(struct ckt_spawn_mounts *mounts, const struct ckt_server *server,
	const struct ckt_worker_user *user, bool in_group, const char *cache);
/* A directory, and that of a file, stay visible. */
void ckt_spawn_mounts_keep(struct ckt_spawn_mounts *mounts, const char *directory);
void ckt_spawn_mounts_keep_directory_of(struct ckt_spawn_mounts *mounts, const char *file);
void ckt_spawn_mounts_fini(struct ckt_spawn_mounts *mounts);
/*
 * For the thread of a group, or a child in the workers' user namespace, and for good: a mount namespace with the
 * /dev/shm of workers of this user.  0, or -1 and errno.
 */
int ckt_spawn_mounts_make_shm(const struct ckt_server *server, const struct ckt_worker_user *user);
/* For the child, while it is root or has entered its user namespace.  0, or -1 and errno. */
int ckt_spawn_mounts_enter(const struct ckt_spawn_mounts *mounts);
