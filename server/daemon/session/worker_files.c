/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of one of our own files where the workers' user reaches it.  Started by root from root's
 * own directory (a clone or an installation below /root, which others may not enter), the server
 * would otherwise have no worker that is not root.
 *
 * The copies lie in /run/cricket/libexec/HASH/, named by their contents, or by which files they
 * are: servers of one build share them, another build never finds the wrong one, nothing needs to
 * be removed when a server is killed, and /run is empty after a reboot.
 */
#include "server/daemon/session/worker_files.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "server/daemon/paths.h"
#include "server/daemon/server.h"

#define COPIES "/run/cricket/libexec"

/* Another user who could write there would choose what runs as the workers' user. */
static int check_directory(const char *path)
{
	struct stat status;
	if (lstat(path, &status))
		return -errno;
	return S_ISDIR(status.st_mode) && status.st_uid == 0 && !(status.st_mode & 022) &&
			(status.st_mode & 005) == 005
		? 0
		: -EPERM;
}

/*
 * Under a temporary name first: another server may copy at the same time, and both rename the same
 * contents.
 */
static int write_copy(const char *target, const uint8_t *data, size_t size)
{
	char temporary[CKT_PATH_MAX];
	if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", target) >= (int)sizeof temporary)
		return -ENAMETOOLONG;
	int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = ckt_write_all(fd, data, size);
	if (!result && fchmod(fd, 0755))
		result = -errno;
	if (close(fd) && !result)
		result = -errno;
	if (!result && rename(temporary, target))
		result = -errno;
	if (result)
		unlink(temporary);
	return result;
}

enum { DIGEST_BYTES = 16 };

static void hash_text(struct sha256_ctx *sha, char ret_hash[2 * DIGEST_BYTES + 1])
{
	uint8_t digest[DIGEST_BYTES];
	sha256_digest(sha, sizeof digest, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(ret_hash + 2 * i, 3, "%02x", digest[i]);
}

static int place(const char *hash, const uint8_t *data, size_t size, const char *name,
	char ret_path[CKT_PATH_MAX])
{
	char target[CKT_PATH_MAX];
	struct stat status;
	snprintf(target, sizeof target, COPIES "/%.64s/%.255s", hash, name);
	int result = ckt_paths_make_parent(target);
	if (!result)
		result = check_directory("/run/cricket");
	if (!result)
		result = check_directory(COPIES);
	if (!result &&
		(lstat(target, &status) || !S_ISREG(status.st_mode) || status.st_uid != 0 ||
			(size_t)status.st_size != size))
		result = write_copy(target, data, size);
	if (!result)
		strcpy(ret_path, target);
	return result;
}

/* hash NULL: of the file's contents. */
static int copy_file(const char *path, const char *hash, char ret_path[CKT_PATH_MAX])
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fstat(fd, &status) ? -errno : status.st_size ? 0 : -EINVAL;
	void *data = result ? MAP_FAILED
			    : mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!result && data == MAP_FAILED)
		result = -errno;
	if (!result) {
		const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
		char own[2 * DIGEST_BYTES + 1];
		struct sha256_ctx sha;
		if (!hash) {
			sha256_init(&sha);
			sha256_update(&sha, (size_t)status.st_size, data);
			hash_text(&sha, own);
		}
		result = place(hash ? hash : own, data, (size_t)status.st_size, name, ret_path);
		munmap(data, (size_t)status.st_size);
	}
	close(fd);
	return result;
}

int ckt_daemon_files_copy(char path[CKT_PATH_MAX])
{
	return copy_file(path, NULL, path);
}

int ckt_daemon_files_copy_together(
	const char *const *files, size_t count, char ret_directory[CKT_PATH_MAX])
{
	struct sha256_ctx sha;
	char hash[2 * DIGEST_BYTES + 1], path[CKT_PATH_MAX];
	sha256_init(&sha);
	for (size_t i = 0; i < count; i++) {
		struct stat status;
		if (stat(files[i], &status))
			return -errno;
		/*
		 * Not by their contents: they are large, and every server would read them at its
		 * start.
		 */
		const uint64_t words[] = {status.st_dev, status.st_ino, (uint64_t)status.st_size,
			(uint64_t)status.st_mtim.tv_sec, (uint64_t)status.st_mtim.tv_nsec};
		sha256_update(&sha, sizeof words, (const uint8_t *)words);
		sha256_update(&sha, strlen(files[i]) + 1, (const uint8_t *)files[i]);
	}
	hash_text(&sha, hash);
	int result = count ? 0 : -EINVAL;
	for (size_t i = 0; i < count && !result; i++)
		result = copy_file(files[i], hash, path);
	if (!result) {
		*strrchr(path, '/') = 0;
		strcpy(ret_directory, path);
	}
	return result;
}
