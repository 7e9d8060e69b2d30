/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that only root and named users could have placed or changed a file that a process is about
 * to run.  Threading: any.  Errors: -EPERM and others, with a sentence.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Checks the path, which has no symbolic links (realpath), and every directory above it: each must
 * belong to root or one of the users, and nobody else may write it.  A directory with the sticky
 * bit may be writable for all, because only an entry's owner can replace it. A directory that its
 * group may write passes if the group is root's, or `staff`, which Debian uses for /usr/local.
 */
int ckt_trusted_path(const char *path, const uid_t *users, size_t user_count, char *ret_message,
	size_t message_size);
