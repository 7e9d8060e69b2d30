/* SPDX-License-Identifier: Apache-2.0 */
/* Small files by which workers find each other; see notice_file.h. */
#include "server/worker/session/notice_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/worker/worker.h"

size_t ckt_notice_server_length(const struct ckt_worker *worker)
{
	const char *slash = strrchr(worker->socket, '/');
	return slash ? (size_t)(slash - worker->socket) : 0;
}

int ckt_notice_leave(const char *path, const void *notice, size_t size, int *ret_fd)
{
	char fresh[256];
	if ((size_t)snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid()) >= sizeof fresh)
		return -ENAMETOOLONG;
	unlink(fresh);
	int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Locked before it has its name: nobody takes it for a dead worker's. */
	int error = ret_fd && flock(fd, LOCK_EX | LOCK_NB) ? -errno
		: write(fd, notice, size) == (ssize_t)size ? 0
							   : -EIO;
	if (!error && rename(fresh, path))
		error = -errno;
	if (error)
		unlink(fresh);
	if (error || !ret_fd)
		close(fd);
	else
		*ret_fd = fd;
	return error;
}

bool ckt_notice_read(int directory, const char *name, bool locked, void *ret_notice, size_t size)
{
	struct stat st;
	/* Neither a link nor a pipe, which anybody may put there, is followed or waited for. */
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool good = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		(!locked || (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)) &&
		read(fd, ret_notice, size) == (ssize_t)size;
	close(fd);
	return good;
}
