/*
 * Whose files a process may run: those that nobody could have put there or changed but root and
 * named users.
 *
 * Threading: any.  Errors: -EPERM and the like, with a sentence.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * The path, which has no symbolic links (realpath), and every directory above it: owned by root or
 * by one of the users, and writable by nobody else.  A directory with the sticky bit may be
 * writable for all, because what lies in it is only its owner's to replace; one that the group may
 * write counts as root's own where the group is root's, or `staff`, as Debian has it for
 * /usr/local.
 */
int ckt_trusted_path(const char *path, const uid_t *users, size_t user_count, char *ret_message,
	size_t message_size);
