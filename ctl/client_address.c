/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a client looks for its session: the file STATE_DIR/SESSION, whose first line is an
 * address.  A second one, "generation N", makes it one for clients of that generation and later: a
 * client that was restored together with its session.  See client/conn/resume.c for the reader.
 */
#include "ctl/client_address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault_point.h"

enum { PATH_SIZE = 4096 };

static int state_dir(char ret_path[PATH_SIZE])
{
	const char *own = getenv("CRICKET_STATE_DIR"), *home = getenv("HOME");
	int n = own && *own     ? snprintf(ret_path, PATH_SIZE, "%s", own)
		: home && *home ? snprintf(ret_path, PATH_SIZE, "%s/.local/state/cricket", home)
				: -1;
	return n < 0 ? -ENOENT : n >= PATH_SIZE - 32 ? -ENAMETOOLONG : 0;
}

/* Creates all of them that are missing, for this user only. */
int ckt_ctl_state_directory(char *path)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = 0;
		int failed = mkdir(path, 0700) && errno != EEXIST ? errno : 0;
		if (slash)
			*slash = '/';
		if (failed || !slash)
			return -failed;
	}
}

int ckt_ctl_state_write(
	const char *session, const char *address, char *ret_message, size_t message_size)
{
	char directory[PATH_SIZE];
	int result = state_dir(directory);
	if (result) {
		snprintf(ret_message, message_size,
			"no directory is known for the file: set HOME or "
			"CRICKET_STATE_DIR");
		return result;
	}
	return ckt_ctl_state_write_in(directory, session, address, ret_message, message_size);
}

int ckt_ctl_state_write_in(const char *state_directory, const char *session, const char *text,
	char *ret_message, size_t message_size)
{
	char directory[PATH_SIZE], path[PATH_SIZE + 32], temporary[PATH_SIZE + 48];
	snprintf(directory, sizeof directory, "%s", state_directory);
	int fd = -1, result = ckt_ctl_state_directory(directory);
	snprintf(path, sizeof path, "%s/%s", directory, session);
	snprintf(temporary, sizeof temporary, "%s/.%s.XXXXXX", directory, session);
	if (!result) {
		fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
		result = fd < 0 ? -errno : 0;
	}
	if (!result && (dprintf(fd, "%s\n", text) < 0 || fsync(fd)))
		result = -errno;
	ckt_fault(CKT_FAULT_CTL_STATE_FILE);
	if (!result && rename(temporary, path))
		result = -errno;
	if (fd >= 0)
		close(fd);
	if (result && fd >= 0)
		unlink(temporary);
	if (result)
		snprintf(ret_message, message_size, "%s: %s", path, strerror(-result));
	return result;
}
