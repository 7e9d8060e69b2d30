/* SPDX-License-Identifier: Apache-2.0 */
/* What a user id left; see uid_files.h. */
#include "server/daemon/session/uid_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where others may make names, and files outlive processes.  Missing ones are skipped. */
static const char *const areas[] = {"/dev/shm", "/tmp", "/var/tmp", "/run/lock"};

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_directory(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

/* 0, or -ENOTEMPTY for a directory with something in it, or -errno. */
static int remove_one(int parent, const char *name)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
		return 0;
	return errno == EEXIST ? -ENOTEMPTY : -errno;
}

/* Under a name that nobody took; who took many paid for each. */
static int move_up(int dir, const char *name, int top, unsigned long *number)
{
	char moved[64];
	do {
		snprintf(moved, sizeof moved, "cricket-cleaning-%lu", (*number)++);
		if (renameat(dir, name, top, moved) == 0)
			return 0;
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	return -errno;
}

/*
 * Empties a directory `name' of `top'.  Full directories in it move up into `top' under names of
 * ours, so that no depth that somebody made costs us descriptors or stack.
 */
static int flatten(int top, const char *name, unsigned long *number)
{
	DIR *dir = open_directory(top, name);
	int result = dir ? 0 : -errno;
	for (const struct dirent *entry; dir && !result && (entry = readdir(dir));) {
		if (is_dots(entry->d_name))
			continue;
		result = remove_one(dirfd(dir), entry->d_name);
		if (result == -ENOTEMPTY)
			result = move_up(dirfd(dir), entry->d_name, top, number);
	}
	if (dir)
		closedir(dir);
	if (!result)
		result = remove_one(top, name);
	/* The names that moved up while it was read. */
	return result == -ENOTEMPTY ? 0 : result;
}

/* Empties the directory, which is nobody else's any more. */
static int empty(DIR *dir)
{
	unsigned long number = 0;
	for (bool again = true; again;) {
		again = false;
		rewinddir(dir);
		for (const struct dirent *entry; (entry = readdir(dir));) {
			if (is_dots(entry->d_name))
				continue;
			int result = remove_one(dirfd(dir), entry->d_name);
			if (result == -ENOTEMPTY)
				result = flatten(dirfd(dir), entry->d_name, &number);
			if (result)
				return result;
			again = true;
		}
	}
	return 0;
}

static int remove_tree(int parent, const char *name, uid_t uid)
{
	struct stat status;
	int result = remove_one(parent, name);
	if (result != -ENOTEMPTY)
		return result;
	DIR *dir = open_directory(parent, name);
	/* It is what we looked at: others may not rename what that user owns. */
	if (!dir || fstat(dirfd(dir), &status) || status.st_uid != uid)
		result = -EBUSY;
	else
		result = empty(dir);
	if (dir)
		closedir(dir);
	return result ? result : remove_one(parent, name);
}

int ckt_uid_files_remove_from(const char *directory, uid_t uid)
{
	DIR *dir = open_directory(AT_FDCWD, directory);
	int result = 0;
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		struct stat status;
		if (is_dots(entry->d_name) ||
			fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
			status.st_uid != uid)
			continue;
		int error = remove_tree(dirfd(dir), entry->d_name, uid);
		result = result ? result : error;
	}
	closedir(dir);
	return result;
}

int ckt_uid_files_remove(uid_t uid)
{
	int result = 0;
	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
		int error = ckt_uid_files_remove_from(areas[i], uid);
		result = result ? result : error;
	}
	return result;
}

union semun {
	int value;
};

static int remove_object(char kind, int id)
{
	union semun none = {0};
	int result = kind == 's' ? shmctl(id, IPC_RMID, NULL)
		: kind == 'e'    ? semctl(id, 0, IPC_RMID, none)
				 : msgctl(id, IPC_RMID, NULL);
	return result && errno != EINVAL && errno != EIDRM ? -errno : 0;
}

/* Each kind's table has columns of its own: `format' reads the id, the owner and the maker. */
static int remove_kind(const char *path, const char *format, char kind, uid_t uid)
{
	FILE *file = fopen(path, "re");
	char line[512];
	int result = 0;
	while (file && fgets(line, sizeof line, file)) {
		int id;
		unsigned owner, maker;
		if (sscanf(line, format, &id, &owner, &maker) != 3 ||
			(owner != uid && maker != uid))
			continue;
		int error = remove_object(kind, id);
		result = result ? result : error;
	}
	if (file)
		fclose(file);
	return result;
}

int ckt_uid_files_remove_sysv(uid_t uid)
{
	/* key id perms size cpid lpid nattch uid gid cuid */
	int shm =
		remove_kind("/proc/sysvipc/shm", "%*d %d %*o %*u %*u %*u %*u %u %*u %u", 's', uid);
	/* key id perms nsems uid gid cuid */
	int sem = remove_kind("/proc/sysvipc/sem", "%*d %d %*o %*u %u %*u %u", 'e', uid);
	/* key id perms cbytes qnum lspid lrpid uid gid cuid */
	int msg =
		remove_kind("/proc/sysvipc/msg", "%*d %d %*o %*u %*u %*u %*u %u %*u %u", 'm', uid);
	return shm ? shm : sem ? sem : msg;
}
