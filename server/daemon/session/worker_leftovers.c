/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers leave in /dev/shm when they end: where a restored session that shares memory is
 * found (server/worker/ipc/ipc_notice.h), and, killed on the soft GPU, pages of events that other
 * processes may open (softgpu/stream/event_shared.c).  Their maker holds a lock on each as long as
 * it lives, so one that can be locked is nobody's.
 */
#include "server/daemon/session/worker_leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/ipc.h"
#include "server/daemon/server.h"

#define EVENT_PREFIX "cricket-shared-event-"

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_nobodys(int dir, const char *name, uid_t owner)
{
	struct stat st;
	/* Follows no link and waits for no pipe, because anybody may put them there. */
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool result = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == owner &&
		flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (fd >= 0)
		close(fd);
	return result;
}

void ckt_leftovers_sweep(const struct ckt_server *server)
{
	uid_t owner = server->user.change ? server->user.uid : geteuid();
	DIR *dir = opendir("/dev/shm");
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (((server->driver.soft && has_prefix(entry->d_name, EVENT_PREFIX)) ||
			    has_prefix(entry->d_name, CKT_IPC_NOTICE_PREFIX)) &&
			is_nobodys(dirfd(dir), entry->d_name, owner))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}
