/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container of a local client: the cgroup of the process that connected, for limits
 * (server/daemon/policy/limit_rule.h).
 *
 * Where the kernel has SO_PEERPIDFD (Linux 6.5), the process that is looked at is the one that
 * connected.  Older kernels know its number alone: then a process that ended since its connect may
 * be taken for one that has its number now, if that belongs to the same user.
 *
 * Threading: any.
 */
#pragma once

#include <stddef.h>

struct ckt_auth_peer;

/* Empty: not a local peer, or not known.  fd: its connection. */
void ckt_client_container(
	int fd, const struct ckt_auth_peer *who, char *ret_cgroup, size_t cgroup_size);
/* The cgroup of one of /proc/PID/cgroup's lines: of version 2, or where memory is counted. */
void ckt_client_container_read(const char *path, char *ret_cgroup, size_t cgroup_size);
