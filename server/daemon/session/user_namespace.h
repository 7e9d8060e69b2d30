/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user namespace for --uid-range where the server is not root: newuidmap and newgidmap give it the subordinate
 * ids of the server's user.
 *
 *	in it             outside
 *	FIRST to LAST     the same numbers, so that files, SO_PEERCRED and /proc name one id everywhere
 *	the server's      the same, so that a worker knows its server
 *
 * No process stays in it: the descriptor keeps it, and so do workers that outlive the server.  The next server
 * makes another with the same ids.  Whoever enters it has all capabilities there, which reach no file or process of
 * other ids, and gives them up.
 *
 * Threading: one thread.  A descriptor of 0 is none: the functions then act in the namespace of the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ckt_uid_range;

/*
 * *ret_fd: the caller's.  0, or -errno and a sentence with cause and remedy, as where a host refuses user namespaces
 * or the ids are not this user's.
 */
int ckt_user_namespace_open(
	const struct ckt_uid_range *range, int *ret_fd, char *ret_message, size_t message_size);
/*
 * For a child that becomes a worker of that group: it can mount then, and become any user of the
 * range.  0, or -1 and errno.
 */
int ckt_user_namespace_enter(int fd, gid_t gid);
/*
 * Has `call' run as the effective user and group id, with capabilities over the range, by a child.  Processes of id
 * may not kill it.  The result of call, which is 0 or -errno, or -errno.
 */
int ckt_user_namespace_run(int fd, uid_t id, int (*call)(void *data), void *data);
/*
 * Whether workers need the server's groups, with which they could read what is a group's of the server: where one of
 * these devices (a pattern; NULL: NVIDIA's) is not open to all users.
 */
bool ckt_user_namespace_needs_groups(const char *devices);
/* For a child: its capabilities are gone for good.  0, or -1 and errno. */
int ckt_user_namespace_drop(void);
