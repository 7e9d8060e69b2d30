/* SPDX-License-Identifier: Apache-2.0 */
/* Encrypted images; see sealed_image.h. */
#include "ctl/sealed_image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "ctl/cleanup.h"
#include "ctl/transfer.h"
#include "ctl/vouch.h"

#define PREFIX "cricket-plain-"

/* ---- Memory */

int ckt_ctl_plain_make(struct ckt_ctl_plain *ret_plain)
{
	const char *places[] = {getenv("TMPDIR"), "/dev/shm", "/run"};
	struct ckt_ctl_plain plain = {.fd = -1};
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		struct statfs fs;
		if (!places[i] || places[i][0] != '/' || statfs(places[i], &fs) ||
			fs.f_type != TMPFS_MAGIC ||
			snprintf(plain.path, sizeof plain.path, "%s/" PREFIX "XXXXXX", places[i]) >=
				(int)sizeof plain.path)
			continue;
		ckt_ctl_stale_remove(places[i], PREFIX);
		if (ckt_ctl_directory_make(plain.path, &plain.fd) == 0) {
			*ret_plain = plain;
			return CKT_EXIT_DONE;
		}
	}
	return ckt_ctl_refuse("--encrypt",
		"found no directory in memory for the plain image: set TMPDIR to one in a tmpfs");
}

void ckt_ctl_plain_remove(struct ckt_ctl_plain *plain)
{
	if (plain->fd < 0)
		return;
	ckt_ctl_tree_remove(AT_FDCWD, plain->path, 0);
	if (access(plain->path, F_OK) == 0)
		fprintf(stderr, "cricketctl: remove %s, which is not encrypted\n", plain->path);
	close(plain->fd);
	plain->fd = -1;
	ckt_ctl_cleanup_drop(plain->path);
}

/* ---- Files */

bool ckt_ctl_file_is_sealed(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool sealed = fd >= 0 && ckt_sealed_is(fd);
	if (fd >= 0)
		close(fd);
	return sealed;
}

bool ckt_ctl_image_is_sealed(int directory)
{
	return ckt_ctl_file_is_sealed(directory, "manifest");
}

struct work {
	struct ckt_image_keys keys;
	bool seal;
	const char *name; /* this file alone */
	uint8_t salt[CKT_SEALED_SALT];
	bool salt_known;
	char message[512];
};

static int one_file(struct work *work, int from, int to, const char *name)
{
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), out = -1;
	int result = in < 0 ? -errno : 0;
	if (!result) {
		out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		result = out < 0 ? -errno : 0;
	}
	snprintf(work->message, sizeof work->message, "%s: %s", name, strerror(-result));
	if (!result && work->seal) {
		result = ckt_sealed_write(&work->keys.keys[0], work->salt, name, in, out);
		snprintf(work->message, sizeof work->message, "%s: %s", name, strerror(-result));
	} else if (!result) {
		result = ckt_sealed_read(&work->keys, name, in, out, work->salt, &work->salt_known,
			work->message, sizeof work->message);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return result;
}

/* The files of an image have names of their own; others are left out. */
static int all_files(struct work *work, int from, int to)
{
	int list = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *dir = list >= 0 ? fdopendir(list) : NULL;
	if (!dir) {
		result = -errno;
		snprintf(work->message, sizeof work->message, "%s", strerror(errno));
		if (list >= 0)
			close(list);
		return result;
	}
	for (struct dirent *entry; !result && (entry = readdir(dir));)
		if (ckt_ctl_name_good(entry->d_name) && strcmp(entry->d_name, "base") != 0)
			result = one_file(work, from, to, entry->d_name);
	closedir(dir);
	return result;
}

static int run(
	const struct ckt_ctl_args *args, const char *path, int from, int to, struct work *work)
{
	int status = ckt_ctl_keys_read(args, &work->keys);
	if (status == CKT_EXIT_DONE && !work->keys.count)
		status = ckt_ctl_refuse(path, "is encrypted: give its key with --image-key");
	if (status == CKT_EXIT_DONE &&
		(work->name ? one_file(work, from, to, work->name) : all_files(work, from, to)))
		status = ckt_ctl_refuse(path, work->message);
	explicit_bzero(&work->keys, sizeof work->keys);
	return status;
}

static int seal(
	const struct ckt_ctl_args *args, const char *name, int from, int to, uint8_t *ret_salt)
{
	struct work work = {.seal = true, .name = name};
	if (getrandom(work.salt, sizeof work.salt, 0) != sizeof work.salt)
		return ckt_ctl_refuse("--encrypt", strerror(errno));
	int status = run(args, "--encrypt", from, to, &work);
	if (status == CKT_EXIT_DONE && ret_salt)
		memcpy(ret_salt, work.salt, sizeof work.salt);
	return status;
}

int ckt_ctl_image_seal(const struct ckt_ctl_args *args, int from, int to, uint8_t *ret_salt)
{
	return seal(args, NULL, from, to, ret_salt);
}

int ckt_ctl_image_unseal(
	const struct ckt_ctl_args *args, const char *path, int from, int to, const uint8_t *salt)
{
	struct work work = {.salt_known = salt};
	if (salt)
		memcpy(work.salt, salt, sizeof work.salt);
	return run(args, path, from, to, &work);
}

int ckt_ctl_file_seal(const struct ckt_ctl_args *args, const char *name, int from, int to)
{
	return seal(args, name, from, to, NULL);
}

int ckt_ctl_file_unseal(
	const struct ckt_ctl_args *args, const char *path, const char *name, int from, int to)
{
	struct work work = {.name = name};
	return run(args, path, from, to, &work);
}
