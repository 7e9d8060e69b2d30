/* SPDX-License-Identifier: Apache-2.0 */
/* The server's key; see server_key.h. */
#include "server/daemon/session/server_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "rpc/identity.h"
#include "server/daemon/paths.h"
#include "server/daemon/server.h"

enum { STRETCH = 4096, PURPOSE_SIZE = CKT_AUTH_NONCE_SIZE };

_Static_assert((int)CKT_SEAL_SIZE == CKT_AUTH_HMAC_SIZE, "a seal is an HMAC");
_Static_assert((int)CKT_SECRET_HASH_SIZE == CKT_AUTH_HASH_SIZE, "a secret's hash is a SHA-256");

/* ---- The file */

/* The nth candidate path; false: there are no more. */
static bool key_path(const struct ckt_server *server, unsigned n, char ret_path[CKT_PATH_MAX])
{
	const char *given = getenv("STATE_DIRECTORY"), *state = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	bool root = geteuid() == 0;
	ret_path[0] = 0;
	/* systemd may give several, separated by colons. */
	if (n == 0 && given && *given == '/')
		snprintf(
			ret_path, CKT_PATH_MAX, "%.*s/server-key", (int)strcspn(given, ":"), given);
	else if (n == 1 && root)
		snprintf(ret_path, CKT_PATH_MAX, "/var/lib/cricket/server-key");
	else if (n == 1 && state && *state == '/')
		snprintf(ret_path, CKT_PATH_MAX, "%.4000s/cricket/server-key", state);
	else if (n == 1 && home && *home == '/')
		snprintf(ret_path, CKT_PATH_MAX, "%.4000s/.local/state/cricket/server-key", home);
	else if (n == 2)
		snprintf(ret_path, CKT_PATH_MAX, "%.4000s/server-key", server->socket_dir);
	return n < 3;
}

/*
 * Linked under its own name, so that it appears complete; another server of this user may be
 * faster.
 */
static int make_key(const char *path)
{
	char temporary[CKT_PATH_MAX + 32];
	uint8_t bytes[CKT_KEY_SIZE];
	int result = ckt_paths_make_parent(path);
	if (result || getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return result ? result : -EIO;
	snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	result = ckt_write_synced(fd, bytes, sizeof bytes);
	close(fd);
	if (!result && link(temporary, path) && errno != EEXIST)
		result = -errno;
	unlink(temporary);
	explicit_bzero(bytes, sizeof bytes);
	return result;
}

static int read_key(struct ckt_server *server, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	int result = fstat(fd, &st)                                                   ? -errno
		: !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 0077 ? -EPERM
										      : 0;
	if (!result &&
		(st.st_size != CKT_KEY_SIZE ||
			read(fd, server->key.bytes, CKT_KEY_SIZE) != CKT_KEY_SIZE))
		result = -EBADMSG;
	close(fd);
	server->key_made = st.st_mtime;
	return result;
}

int ckt_server_key_load(struct ckt_server *server, char *ret_message, size_t message_size)
{
	char path[CKT_PATH_MAX];
	uint8_t name[CKT_SEAL_SIZE];
	int result = -ENOENT;
	/*
	 * If a directory cannot be written, the next candidate is used; if a key is invalid, it is
	 * not.
	 */
	for (unsigned n = 0;
		result && result != -EPERM && result != -EBADMSG && key_path(server, n, path);
		n++) {
		if (!*path)
			continue;
		result = read_key(server, path);
		if (result == -ENOENT) {
			result = make_key(path);
			if (!result)
				result = read_key(server, path);
		}
	}
	if (result) {
		snprintf(ret_message, message_size,
			"the server's key '%s': %s; remove the file, and the server "
			"makes a new key",
			path,
			result == -EPERM ? "it must be a file of the server's user with mode 0600"
				: result == -EBADMSG ? "it does not have 32 bytes"
						     : strerror(-result));
		return result;
	}
	server->key.size_bytes = CKT_KEY_SIZE;
	ckt_server_key_mac(server, "key", "", 0, name);
	memcpy(server->key_name, name, sizeof server->key_name);
	return 0;
}

/* ---- What it vouches for */

void ckt_server_key_mac(const struct ckt_server *server, const char *purpose, const void *data,
	size_t size, uint8_t ret_mac[CKT_SEAL_SIZE])
{
	uint8_t label[PURPOSE_SIZE] = {0};
	memcpy(label, purpose, strnlen(purpose, sizeof label));
	ckt_auth_hmac(&server->key, label, data, size, ret_mac);
}

void ckt_server_key_session_id(const uint8_t secret_hash[CKT_SECRET_HASH_SIZE], unsigned attempt,
	char ret_id[CKT_SESSION_ID_SIZE + 1])
{
	uint8_t data[2 * CKT_AUTH_HASH_SIZE] = "cricket session";
	data[CKT_AUTH_HASH_SIZE - 1] = (uint8_t)attempt;
	memcpy(data + CKT_AUTH_HASH_SIZE, secret_hash, CKT_AUTH_HASH_SIZE);
	for (unsigned i = 0; i < STRETCH; i++) {
		uint8_t hash[CKT_AUTH_HASH_SIZE];
		ckt_auth_hash(data, sizeof data, hash);
		memcpy(data, hash, sizeof hash);
	}
	for (unsigned i = 0; i < CKT_SESSION_ID_SIZE / 2; i++)
		snprintf(ret_id + 2 * i, 3, "%02x", data[i]);
}

bool ckt_server_key_fits(const char *id, const uint8_t secret_hash[CKT_SECRET_HASH_SIZE])
{
	char derived[CKT_SESSION_ID_SIZE + 1];
	for (unsigned i = 0; i < CKT_SESSION_ID_TRIES; i++) {
		ckt_server_key_session_id(secret_hash, i, derived);
		if (strcmp(id, derived) == 0)
			return true;
	}
	return false;
}

static void seal(const struct ckt_server *server, const char *session, uint32_t uid,
	const uint8_t *secret_hash, uint64_t generation, uint8_t ret_seal[CKT_SEAL_SIZE])
{
	uint8_t data[CKT_SESSION_ID_SIZE + 4 + 8 + CKT_SECRET_HASH_SIZE] = {0}, *p = data;
	memcpy(p, session, strnlen(session, CKT_SESSION_ID_SIZE));
	p = ckt_put_u32(p + CKT_SESSION_ID_SIZE, uid);
	p = ckt_put_u64(p, generation);
	memcpy(p, secret_hash, CKT_SECRET_HASH_SIZE);
	ckt_server_key_mac(server, "seal of an image", data, sizeof data, ret_seal);
}

void ckt_server_key_seal(const struct ckt_server *server, const char *session, uint32_t uid,
	const uint8_t secret_hash[CKT_SECRET_HASH_SIZE], uint64_t generation,
	struct ckt_worker_owner_args *ret_owner)
{
	uint8_t mac[CKT_SEAL_SIZE];
	seal(server, session, uid, secret_hash, generation, mac);
	ret_owner->uid = uid;
	memcpy(ret_owner->key, server->key_name, sizeof ret_owner->key);
	memcpy(ret_owner->seal, mac, sizeof ret_owner->seal);
}

int ckt_server_key_seal_check(
	const struct ckt_server *server, const struct ckt_worker_origin_res *origin)
{
	uint8_t mac[CKT_SEAL_SIZE];
	if (memcmp(origin->key, server->key_name, sizeof origin->key) != 0)
		return 0;
	seal(server, origin->session, origin->uid, (const uint8_t *)origin->secret_hash,
		origin->generation, mac);
	return ckt_auth_equal(mac, origin->seal, sizeof mac) ? 1 : -EBADMSG;
}
