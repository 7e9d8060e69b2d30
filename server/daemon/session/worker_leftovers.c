/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers on the soft GPU leave in /dev/shm when they are killed: pages of events that other
 * processes may open (softgpu/stream/event_shared.c).  Their maker holds a lock on each as long as
 * it lives, so one that can be locked is nobody's.
 */
#include "server/daemon/session/worker_leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/server.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/uid_group.h"

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

/* Takes the descriptor of a directory. */
static void sweep(const struct ckt_server *server, int fd, uid_t owner)
{
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (server->driver.soft && has_prefix(entry->d_name, EVENT_PREFIX) &&
			is_nobodys(dirfd(dir), entry->d_name, owner))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

/* What the workers of one owner have as their /dev/shm. */
static int open_shared(const char *path, uid_t owner)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &status) || status.st_uid != owner)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void sweep_user(const struct ckt_server *server, uid_t owner)
{
	char pattern[64];
	glob_t found;
	sweep(server, open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC), owner);
	snprintf(pattern, sizeof pattern, CKT_SPAWN_SHM_PREFIX "%u-*", owner);
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		sweep(server, open_shared(found.gl_pathv[i], owner), owner);
	globfree(&found);
}

void ckt_leftovers_sweep(const struct ckt_server *server)
{
	sweep_user(server, server->user.change ? server->user.uid : geteuid());
	ckt_uid_groups_each(server, sweep_user);
}
