/* SPDX-License-Identifier: Apache-2.0 */
/* Whose files a process may run; see trusted_file.h. */
#include "base/trusted_file.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_one_of(uid_t uid, const uid_t *users, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (users[i] == uid)
			return true;
	return uid == 0;
}

static bool group_is_roots(gid_t gid)
{
	char buffer[4096];
	struct group entry, *found = NULL;
	if (gid == 0)
		return true;
	return getgrnam_r("staff", &entry, buffer, sizeof buffer, &found) == 0 && found &&
		found->gr_gid == gid;
}

static int check(
	const char *path, const uid_t *users, size_t count, char *ret_message, size_t message_size)
{
	struct stat status;
	if (lstat(path, &status)) {
		int error = errno;
		snprintf(ret_message, message_size, "'%.300s': %s", path, strerror(error));
		return -error;
	}
	if (S_ISLNK(status.st_mode)) {
		snprintf(ret_message, message_size,
			"'%.300s' is a symbolic link; name the file itself", path);
		return -ELOOP;
	}
	if (!is_one_of(status.st_uid, users, count)) {
		snprintf(ret_message, message_size,
			"'%.300s' belongs to user %u: give it to root or to the user "
			"who runs cricket-server",
			path, status.st_uid);
		return -EPERM;
	}
	bool sticky = S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX;
	bool open = status.st_mode & S_IWOTH ||
		(status.st_mode & S_IWGRP && !group_is_roots(status.st_gid));
	if (open && !sticky) {
		snprintf(ret_message, message_size,
			"other users can write '%.300s': run chmod go-w on it", path);
		return -EPERM;
	}
	return 0;
}

int ckt_trusted_path(const char *path, const uid_t *users, size_t user_count, char *ret_message,
	size_t message_size)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	if (*path != '/' || length >= sizeof part) {
		snprintf(ret_message, message_size, "'%.300s' is not an absolute path", path);
		return -EINVAL;
	}
	int error = check("/", users, user_count, ret_message, message_size);
	for (size_t at = 1; !error && at <= length; at++) {
		if (path[at] && path[at] != '/')
			continue;
		memcpy(part, path, at);
		part[at] = 0;
		if (part[at - 1] != '/')
			error = check(part, users, user_count, ret_message, message_size);
	}
	return error;
}
