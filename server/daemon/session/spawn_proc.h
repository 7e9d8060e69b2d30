/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's own view of /proc, in the mount namespace that it has (spawn_mounts.h): a fresh procfs
 * with hidepid=ptraceable, which shows no process but those that the worker may trace.  These are
 * its own threads alone.  So it cannot read in /proc/PID/net what another network has, nor learn
 * who else is there.
 *
 * Mounts below the host's /proc (those of a container's masks, those that NVIDIA's container
 * runtime makes in /proc/driver/nvidia) are bound to the same places of the new one.
 *
 * It needs Linux 5.8, before which the option is of the whole host.  It also needs SO_PEERPIDFD
 * (Linux 6.5), by which a worker knows its client's process without /proc.
 */
#pragma once

#include <stdbool.h>

enum { CKT_SPAWN_PROC_KEPT_MAX = 32, CKT_SPAWN_PROC_PATH = 128 };

struct ckt_spawn_proc {
	bool hidden; /* workers get their own */
	unsigned kept_count;
	char kept[CKT_SPAWN_PROC_KEPT_MAX][CKT_SPAWN_PROC_PATH]; /* mounts of the host's */
};

/*
 * Whether this host lets the server do it, which a child tries; without `wanted' it is not tried.
 * One thread.
 */
void ckt_spawn_proc_probe(struct ckt_spawn_proc *proc, bool wanted);
/*
 * For the child, while it is root and in a mount namespace of its own.  It allocates nothing.
 * 0, or -1 and errno.
 */
int ckt_spawn_proc_enter(const struct ckt_spawn_proc *proc);
/*
 * Reads the mounts below /proc from a file like /proc/self/mountinfo, without those in others of
 * them.  0; -errno: it cannot be read, or has more or longer ones than there is room for.  For tests.
 */
int ckt_spawn_proc_read(struct ckt_spawn_proc *proc, const char *path);
