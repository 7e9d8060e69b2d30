/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of images on this host; see files.h. */
#include "ctl/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "base/file_io.h"
#include "ctl/cleanup.h"
#include "ctl/command.h"
#include "ctl/transfer.h"
#include "rpc/control.h"

enum { PATH_SIZE = CKT_CTL_PATH_SIZE, DEPTH_MAX = 8 };

int ckt_ctl_refuse(const char *path, const char *why)
{
	fprintf(stderr, "cricketctl: %s: %s\n", path, why);
	return CKT_EXIT_REFUSED;
}

int ckt_ctl_check_place(const struct ckt_ctl_args *args, bool here)
{
	const char *name = args->server_side;
	if (here == (name != NULL)) {
		fprintf(stderr,
			"cricketctl: %s: name either a directory here or --server-side NAME\n",
			args->command);
		return CKT_EXIT_USAGE;
	}
	if (name && (!ckt_ctl_name_good(name) || strncmp(name, "tmp-", 4) == 0)) {
		fprintf(stderr,
			"cricketctl: --server-side: '%s' is not valid: write at most "
			"%d of a-z, 0-9 and -, and do not begin with tmp-\n",
			name, CKT_CONTROL_NAME_MAX);
		return CKT_EXIT_USAGE;
	}
	return CKT_EXIT_DONE;
}

int ckt_ctl_check_kept(const char *name)
{
	if (ckt_ctl_name_good(name) && strlen(name) <= CKT_CONTROL_KEPT_NAME_MAX)
		return CKT_EXIT_DONE;
	fprintf(stderr,
		"cricketctl: '%s' is not a name of an image in memory: write at most "
		"%d of a-z, 0-9 and -\n",
		name, CKT_CONTROL_KEPT_NAME_MAX);
	return CKT_EXIT_USAGE;
}

const char *ckt_ctl_kept_name(const char *place)
{
	return strncmp(place, "memory:", 7) == 0 ? place + 7 : NULL;
}

int ckt_ctl_path_copy(const char *text, char ret_path[PATH_SIZE])
{
	size_t length = strlen(text);
	while (length > 1 && text[length - 1] == '/')
		length--;
	if (!length || length >= PATH_SIZE)
		return ckt_ctl_refuse(text, "the path is empty or too long");
	memcpy(ret_path, text, length);
	ret_path[length] = 0;
	return CKT_EXIT_DONE;
}

int ckt_ctl_path_parent(const char *path, char ret_parent[PATH_SIZE])
{
	strcpy(ret_parent, path);
	char *slash = strrchr(ret_parent, '/');
	if (!slash)
		strcpy(ret_parent, ".");
	else
		slash[slash == ret_parent] = 0;
	return slash ? (int)(slash - ret_parent) + 1 : 0;
}

/* An empty directory may be replaced; everything else that exists stays. */
static int check_target(const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		return errno == ENOENT ? CKT_EXIT_DONE : ckt_ctl_refuse(path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return ckt_ctl_refuse(path, "exists and is not a directory: name another");
	DIR *dir = opendir(path);
	if (!dir)
		return ckt_ctl_refuse(path, strerror(errno));
	unsigned entries = 0;
	while (readdir(dir))
		entries++;
	closedir(dir);
	return entries > 2
		? ckt_ctl_refuse(path,
			  "exists and is not empty: name another directory, or remove it first")
		: CKT_EXIT_DONE;
}

void ckt_ctl_tree_remove(int parent, const char *name, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir && fd >= 0)
		close(fd);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) && depth < DEPTH_MAX)
			ckt_ctl_tree_remove(dirfd(dir), entry->d_name, depth + 1);
	}
	if (dir)
		closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* Leftovers of a killed cricketctl for the same image. */
static void remove_stale(const char *path)
{
	char parent[PATH_SIZE], prefix[PATH_SIZE + 16];
	int base = ckt_ctl_path_parent(path, parent);
	snprintf(prefix, sizeof prefix, "%s.partial.", path + base);
	ckt_ctl_stale_remove(parent, prefix);
}

void ckt_ctl_stale_remove(const char *parent, const char *prefix)
{
	DIR *dir = opendir(parent);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		int fd = openat(
			dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			ckt_ctl_tree_remove(dirfd(dir), entry->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Whether the path leads to the open directory. */
static bool is_still(const char *path, int fd)
{
	struct stat there, ours;
	return lstat(path, &there) == 0 && fstat(fd, &ours) == 0 && there.st_ino == ours.st_ino &&
		there.st_dev == ours.st_dev;
}

int ckt_ctl_directory_make(char *path, int *ret_fd)
{
	enum { TRIES = 100 };
	size_t random = strlen(path) - 6;
	int error = 0;
	for (int i = 0; i < TRIES; i++) {
		memcpy(path + random, "XXXXXX", 6);
		if (!mkdtemp(path))
			return -errno;
		ckt_ctl_cleanup_add(path);
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		error = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
		/*
		 * Before the lock, another cricketctl may have taken the directory for a dead one's
		 * leftover and removed it.
		 */
		if (!error && is_still(path, fd)) {
			*ret_fd = fd;
			return 0;
		}
		ckt_ctl_cleanup_drop(path);
		if (fd >= 0)
			close(fd);
		if (error && error != EWOULDBLOCK && error != ENOENT) {
			rmdir(path);
			return -error;
		}
	}
	return -EAGAIN;
}

int ckt_ctl_partial_make(const char *path, struct ckt_ctl_partial *ret_partial)
{
	struct ckt_ctl_partial partial = {.fd = -1};
	int status = check_target(path);
	if (status != CKT_EXIT_DONE)
		return status;
	remove_stale(path);
	snprintf(partial.path, sizeof partial.path, "%s", path);
	snprintf(partial.temporary, sizeof partial.temporary, "%s.partial.XXXXXX", path);
	int error = ckt_ctl_directory_make(partial.temporary, &partial.fd);
	if (error)
		return ckt_ctl_refuse(path, strerror(-error));
	ckt_fault(CKT_FAULT_CTL_CHECKPOINT_MADE);
	*ret_partial = partial;
	return CKT_EXIT_DONE;
}

int ckt_ctl_partial_keep(struct ckt_ctl_partial *partial)
{
	char parent[PATH_SIZE];
	int result = fsync(partial->fd) || rename(partial->temporary, partial->path) ? -errno : 0;
	if (result)
		return ckt_ctl_refuse(partial->path, strerror(-result));
	ckt_ctl_path_parent(partial->path, parent);
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		result = -errno;
	if (fd >= 0)
		close(fd);
	close(partial->fd);
	partial->fd = -1;
	ckt_ctl_cleanup_drop(partial->temporary);
	ckt_fault(CKT_FAULT_CTL_CHECKPOINT_RENAMED);
	return result ? ckt_ctl_refuse(parent, strerror(-result)) : CKT_EXIT_DONE;
}

void ckt_ctl_partial_drop(struct ckt_ctl_partial *partial)
{
	if (partial->fd >= 0)
		close(partial->fd);
	else if (!*partial->temporary)
		return;
	partial->fd = -1;
	ckt_ctl_tree_remove(AT_FDCWD, partial->temporary, 0);
	if (access(partial->temporary, F_OK) == 0)
		fprintf(stderr, "cricketctl: you can remove %s, a leftover\n", partial->temporary);
	ckt_ctl_cleanup_drop(partial->temporary);
	partial->temporary[0] = 0;
}

/* ---- Base images */

int ckt_ctl_base_write(int dir_fd, const char *from, const char *base)
{
	char parent[PATH_SIZE], base_parent[PATH_SIZE], real[PATH_SIZE], base_real[PATH_SIZE],
		text[PATH_SIZE + 8];
	int at = ckt_ctl_path_parent(from, parent),
	    base_at = ckt_ctl_path_parent(base, base_parent);
	if (!realpath(parent, real) || !realpath(base_parent, base_real))
		return -errno;
	(void)at;
	/* A relative path keeps neighbours a chain when they are moved together. */
	if (strcmp(real, base_real) == 0)
		snprintf(text, sizeof text, "../%s\n", base + base_at);
	else if (realpath(base, real))
		snprintf(text, sizeof text, "%s\n", real);
	else
		return -errno;
	int fd = openat(dir_fd, "base", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int result = ckt_write_synced(fd, text, strlen(text));
	close(fd);
	return result;
}

bool ckt_ctl_base_read(const char *path, char ret_base[PATH_SIZE])
{
	char file[PATH_SIZE + 8], line[PATH_SIZE] = "";
	snprintf(file, sizeof file, "%s/base", path);
	FILE *stream = fopen(file, "re");
	if (!stream)
		return false;
	bool good = fgets(line, sizeof line, stream) != NULL;
	fclose(stream);
	line[strcspn(line, "\n")] = 0;
	int n = line[0] == '/' ? snprintf(ret_base, PATH_SIZE, "%s", line)
			       : snprintf(ret_base, PATH_SIZE, "%s/%s", path, line);
	return good && *line && n < PATH_SIZE;
}
