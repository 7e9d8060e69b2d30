/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of compiled kernels; see kernel_cache.h. */
#include "server/daemon/session/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/token_file.h"
#include "server/daemon/paths.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/policy/tokens.h"
#include "server/daemon/server.h"

enum { HASH_BYTES = 16, NAME_SIZE = sizeof "owner-" + 2 * HASH_BYTES };

/* Of a worker of --uid-range. */
#define SHARED "/dev/shm/.cuda-cache"

/* An absolute path in a variable, with what belongs behind it; lists of systemd's end at a colon. */
static bool take(const char *name, const char *below, char ret_base[CKT_PATH_MAX])
{
	const char *value = getenv(name);
	if (!value || *value != '/')
		return false;
	int length = (int)strcspn(value, strcmp(name, "CACHE_DIRECTORY") == 0 ? ":" : "");
	return snprintf(ret_base, CKT_PATH_MAX, "%.*s%s", length, value, below) < CKT_PATH_MAX;
}

bool ckt_kernel_cache_find_base(char *ret_base)
{
	if (take("CACHE_DIRECTORY", "", ret_base))
		return true;
	if (geteuid() == 0) {
		strcpy(ret_base, "/var/cache/cricket");
		return true;
	}
	if (take("XDG_CACHE_HOME", "/cricket", ret_base) ||
		take("HOME", "/.cache/cricket", ret_base))
		return true;
	const struct passwd *entry = getpwuid(geteuid());
	return entry && *entry->pw_dir == '/' &&
		snprintf(ret_base, CKT_PATH_MAX, "%s/.cache/cricket", entry->pw_dir) < CKT_PATH_MAX;
}

static bool find_base(const struct ckt_server *server, char ret_base[CKT_PATH_MAX])
{
	return server->driver.soft ? ckt_kernel_cache_find_base(ret_base)
				   : take("CUDA_CACHE_PATH", "", ret_base);
}

void ckt_kernel_cache_name(struct ckt_server *server, const struct ckt_identity *owner,
	char *ret_name, size_t name_size)
{
	char text[CKT_OWNER_NAME_SIZE], number[CKT_IDENTITY_FILE_NAME];
	uint8_t digest[HASH_BYTES];
	struct sha256_ctx sha;
	bool known = owner->kind == CKT_IDENTITY_USER || owner->kind == CKT_IDENTITY_TOKEN;
	ckt_owner_text(server, known ? owner->uid : CKT_UID_UNKNOWN, text);
	/* A token that is no longer in the file has no name. */
	ckt_identity_file_name(owner, number);
	sha256_init(&sha);
	sha256_update(&sha, strlen(text) + 1, (const uint8_t *)text);
	sha256_update(&sha, strlen(number), (const uint8_t *)number);
	sha256_digest(&sha, sizeof digest, digest);
	size_t length = (size_t)snprintf(ret_name, name_size, "owner-");
	for (int i = 0; i < HASH_BYTES && length < name_size; i++, length += 2)
		snprintf(ret_name + length, name_size - length, "%02x", digest[i]);
}

/*
 * base may be a directory in which others make names: a link, or what a third user owns, is refused, and only what is
 * ours is given away.
 */
static int make_in(int base, const char *name, const struct ckt_worker_user *user)
{
	struct stat status;
	uid_t wanted = user->change ? user->uid : geteuid();
	if (mkdirat(base, name, 0700) && errno != EEXIST)
		return -errno;
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int result = fd < 0 || fstat(fd, &status) ? -errno : 0;
	if (!result && status.st_uid != wanted)
		result = status.st_uid != geteuid()     ? -EPERM
			: fchown(fd, wanted, user->gid) ? -errno
							: 0;
	else if (!result && status.st_mode & 077)
		result = -EPERM;
	if (fd >= 0)
		close(fd);
	return result;
}

static int make(const char *base, const char *name, const struct ckt_worker_user *user)
{
	char path[CKT_PATH_MAX];
	if (snprintf(path, sizeof path, "%s/%s", base, name) >= (int)sizeof path)
		return -ENAMETOOLONG;
	/* Workers of another user pass through the directories above. */
	mode_t mask = umask(user->change ? 022 : 077);
	int result = ckt_paths_make_parent(path);
	umask(mask);
	if (result)
		return result;
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	result = fd < 0 ? -errno : make_in(fd, name, user);
	if (fd >= 0)
		close(fd);
	return result;
}

void ckt_kernel_cache_open(struct ckt_server *server, const struct ckt_identity *owner,
	const struct ckt_worker_user *user, char *ret_directory)
{
	char base[CKT_PATH_MAX], name[NAME_SIZE];
	*ret_directory = 0;
	if (!owner || !find_base(server, base))
		return;
	if (server->options.uid_range && user->change) {
		if (!server->driver.soft && server->mounts)
			strcpy(ret_directory, SHARED);
		return;
	}
	if (owner->kind == CKT_IDENTITY_NEXT)
		return;
	ckt_kernel_cache_name(server, owner, name, sizeof name);
	int result = make(base, name, user);
	if (!result && snprintf(ret_directory, CKT_PATH_MAX, "%s/%s", base, name) < CKT_PATH_MAX)
		return;
	*ret_directory = 0;
	ckt_debug("no cache of compiled kernels in %s: %s", base, strerror(-result));
}

bool ckt_kernel_cache_is_owners(const struct ckt_server *server)
{
	char base[CKT_PATH_MAX];
	return !(server->options.uid_range && server->user.change) && find_base(server, base);
}

void ckt_kernel_cache_variable(
	const struct ckt_server *server, const char *directory, char *ret_text, size_t text_size)
{
	*ret_text = 0;
	if (*directory)
		snprintf(ret_text, text_size, "%s=%s",
			server->driver.soft ? "XDG_CACHE_HOME" : "CUDA_CACHE_PATH", directory);
}
