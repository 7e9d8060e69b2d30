/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock on the file says that its process lives: the kernel releases it however the process ends.
 */
#include "client/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int ckt_trace_path_expand(const char *pattern, int pid, char *ret_path, size_t size)
{
	size_t used = 0;
	while (*pattern) {
		int n = strncmp(pattern, "%p", 2) == 0
			? snprintf(ret_path + used, size - used, "%d", pid)
			: snprintf(ret_path + used, size - used, "%c", *pattern);
		if (n < 0 || (size_t)n >= size - used)
			return -ENAMETOOLONG;
		used += (size_t)n;
		pattern += strncmp(pattern, "%p", 2) == 0 ? 2 : 1;
	}
	ret_path[used] = 0;
	return 0;
}

/* A descriptor with the lock; -EWOULDBLOCK: another process has it. */
static int open_locked(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return -EWOULDBLOCK;
	}
	/* Pipes and terminals have no length, and some file systems no locks. */
	if (ftruncate(fd, 0) && errno != EINVAL) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int ckt_trace_file_open(const char *pattern, int pid, char *ret_path, size_t size)
{
	int result = ckt_trace_path_expand(pattern, pid, ret_path, size);
	if (result)
		return result;
	int fd = open_locked(ret_path);
	if (fd != -EWOULDBLOCK)
		return fd;
	size_t length = strlen(ret_path);
	if (snprintf(ret_path + length, size - length, ".%d", pid) >= (int)(size - length))
		return -ENAMETOOLONG;
	return open_locked(ret_path);
}
