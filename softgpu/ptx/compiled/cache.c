/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the machine code of kernels on disk, so that each kernel is compiled once.  The process
 * runs this code, so the folder must belong to the user alone: a folder that another user owns or
 * can write to is not used.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/ptx/compiled/compile.h"
#include "softgpu/ptx/front/containers.h"

enum {
	MOST_OBJECTS = 1024, /* about 50 KiB each */
	KEPT_OBJECTS = MOST_OBJECTS * 3 / 4,
	LEFTOVER_SECONDS = 3600, /* longer than any compilation takes */
};

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Creates the missing folders among the last `n` of the path. */
static int make_folders(char *path, unsigned n)
{
	char *slash = n > 1 ? strrchr(path, '/') : NULL;
	if (slash && slash > path) {
		*slash = 0;
		make_folders(path, n - 1);
		*slash = '/';
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

int ckt_ptx_cache_folder(char *ret_path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct passwd entry, *found = NULL;
	char text[1024];
	int n;
	/* A server's workers have neither variable. */
	if (!home && !getpwuid_r(geteuid(), &entry, text, sizeof text, &found) && found)
		home = found->pw_dir;
	if (cache && *cache == '/')
		n = snprintf(ret_path, size, "%s/cricket/kernels", cache);
	else if (home && *home == '/')
		n = snprintf(ret_path, size, "%s/.cache/cricket/kernels", home);
	else
		return -ENOENT;
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	int r = make_folders(ret_path, 3);
	if (r)
		return r;
	struct stat st;
	if (lstat(ret_path, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && is_ours(&st) ? 0 : -EPERM;
}

void ckt_ptx_cache_key(const char *text, const char *maker, char ret_key[CKT_PTX_KEY])
{
	struct sha256_ctx hash;
	uint8_t digest[SHA256_DIGEST_SIZE];
	sha256_init(&hash);
	sha256_update(&hash, strlen(maker) + 1, (const uint8_t *)maker);
	sha256_update(&hash, strlen(text), (const uint8_t *)text);
	sha256_digest(&hash, sizeof digest, digest);
	for (size_t k = 0; k < sizeof digest; k++)
		snprintf(ret_key + 2 * k, 3, "%02x", digest[k]);
}

static int object_path(const char *folder, const char *key, char *ret_path, size_t size)
{
	int n = snprintf(ret_path, size, "%s/%s.so", folder, key);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool ckt_ptx_cache_find(const char *folder, const char *key, char *ret_path, size_t size)
{
	struct stat st;
	if (object_path(folder, key, ret_path, size) || lstat(ret_path, &st) ||
		!S_ISREG(st.st_mode) || !is_ours(&st))
		return false;
	/* a recent time keeps the object from being removed as the oldest */
	utimensat(AT_FDCWD, ret_path, NULL, AT_SYMLINK_NOFOLLOW);
	return true;
}

/*
 * Removes a folder that a compiler of an earlier version left, or a file whose process was killed.
 */
static void remove_leftover(int dir, const char *name)
{
	char path[64];
	static const char *const files[] = {"kernel.c", "kernel.so"};
	for (size_t k = 0; k < sizeof files / sizeof *files; k++)
		if (snprintf(path, sizeof path, "%s/%s", name, files[k]) < (int)sizeof path)
			unlinkat(dir, path, 0);
	if (unlinkat(dir, name, AT_REMOVEDIR))
		unlinkat(dir, name, 0);
}

void ckt_ptx_cache_sweep(const char *folder)
{
	DIR *dir = opendir(folder);
	struct stat st;
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (!strncmp(entry->d_name, CKT_PTX_LEFTOVER, strlen(CKT_PTX_LEFTOVER)) &&
			!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			is_ours(&st) && st.st_mtime < time(NULL) - LEFTOVER_SECONDS)
			remove_leftover(dirfd(dir), entry->d_name);
	closedir(dir);
}

struct object {
	char name[CKT_PTX_KEY + 3];
	struct timespec used;
};

static int by_age(const void *a, const void *b)
{
	const struct timespec *x = &((const struct object *)a)->used,
			      *y = &((const struct object *)b)->used;
	return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
				      : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/*
 * Removes the least recently used objects if there are too many.  An object that another process
 * has loaded stays loaded.
 */
static void tidy(const char *folder)
{
	DIR *dir = opendir(folder);
	struct object *objects = NULL;
	size_t n = 0, capacity = 0;
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;
		size_t length = strlen(entry->d_name);
		if (length != CKT_PTX_KEY + 2 || strcmp(entry->d_name + length - 3, ".so") ||
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (n == capacity &&
			ckt_ptx_grow((void **)&objects, &capacity, n + 1, sizeof *objects))
			break;
		objects[n] = (struct object){.used = st.st_mtim};
		memcpy(objects[n++].name, entry->d_name, length + 1);
	}
	if (n > MOST_OBJECTS) {
		qsort(objects, n, sizeof *objects, by_age);
		for (size_t k = 0; k < n - KEPT_OBJECTS; k++)
			unlinkat(dirfd(dir), objects[k].name, 0);
	}
	free(objects);
	closedir(dir);
}

static int copy(int from, int to)
{
	struct stat st;
	off_t at = 0;
	if (fstat(from, &st))
		return -errno;
	while (at < st.st_size) {
		ssize_t n = sendfile(to, from, &at, (size_t)(st.st_size - at));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return -EIO;
	}
	return 0;
}

/*
 * Creates a file in the folder without a name until it is linked, so that a killed process leaves
 * none.  A file system without such files gets a named file, which is removed when it is old.
 */
static int unnamed(const char *folder, char ret_named[PATH_MAX])
{
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0500);
	*ret_named = 0;
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd < 0 ? -errno : fd;
	if (snprintf(ret_named, PATH_MAX, "%s/" CKT_PTX_LEFTOVER "XXXXXX", folder) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(ret_named, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int ckt_ptx_cache_store(
	const char *folder, const char *key, int object, char *ret_path, size_t size)
{
	char named[PATH_MAX], own[32];
	int r = object_path(folder, key, ret_path, size), fd = r ? -1 : unnamed(folder, named);
	if (r || fd < 0)
		return r ? r : fd;
	snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
	/* The name must appear after the contents, or a crash could leave a file of zeros. */
	r = copy(object, fd);
	if (!r && (fchmod(fd, 0500) || fsync(fd)))
		r = -errno;
	if (!r && *named && rename(named, ret_path))
		r = -errno;
	/*
	 * EEXIST: another process stored the same object first, or an object that is not accepted
	 * has the name and must be removed.
	 */
	for (int tries = 2; !r && !*named && tries--;) {
		if (linkat(AT_FDCWD, own, AT_FDCWD, ret_path, AT_SYMLINK_FOLLOW) == 0 ||
			(errno == EEXIST && ckt_ptx_cache_find(folder, key, ret_path, size)))
			break;
		if (errno != EEXIST || !tries || unlink(ret_path))
			r = -errno;
	}
	if (r && *named)
		unlink(named);
	close(fd);
	if (!r)
		tidy(folder);
	return r;
}
