/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default socket of a user's own server; see identity.h.  In a file of its own, because clients
 * need no more of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/identity.h"

int ckt_local_socket_path(char *ret_path, size_t path_size, char *ret_message, size_t message_size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char directory[64];
	struct stat st;
	if (geteuid() == 0) {
		snprintf(ret_path, path_size, "/run/cricket/socket");
		return 0;
	}
	if (runtime && *runtime == '/') {
		snprintf(ret_path, path_size, "%s/cricket/socket", runtime);
		return 0;
	}
	/* Anyone can create a directory in /tmp under our name. */
	snprintf(directory, sizeof directory, "/tmp/cricket-%u", (unsigned)geteuid());
	if (lstat(directory, &st) == 0
			? !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 0022
			: mkdir(directory, 0700) && errno != EEXIST) {
		snprintf(ret_message, message_size,
			"%s is not a directory of this user alone: set XDG_RUNTIME_DIR, or name the socket",
			directory);
		return -EPERM;
	}
	snprintf(ret_path, path_size, "%s/socket", directory);
	return 0;
}
