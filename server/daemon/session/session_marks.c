/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that outlive a worker or the server; see session_marks.h. */
#include "server/daemon/session/session_marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/session.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/session/server_key.h"

enum { AGE_MAX_S = 86400, WATCH_MS = 3600 * 1000, TEXT_MAX = 512 };

static const char *const suffixes[CKT_MARKS] = {"parked", "moved", "paused"};

/* Peers can choose ids too. */
static bool good_id(const char *session)
{
	return strlen(session) == CKT_SESSION_ID_SIZE &&
		strspn(session, "0123456789abcdef") == CKT_SESSION_ID_SIZE;
}

static void mark_path(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, const char *end, char ret_path[CKT_PATH_MAX])
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/%.12s.%s%s", server->socket_dir, session,
		suffixes[mark], end);
}

/* ---- Whose: "v2 UID MAC TEXT"; "v3" where the id is not proven */

static void mac_text(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t owner, bool proven, const char *text,
	char ret_hex[2 * CKT_SEAL_SIZE + 1])
{
	char data[TEXT_MAX + 64];
	uint8_t mac[CKT_SEAL_SIZE];
	int size = snprintf(data, sizeof data, "%s %.12s %u %.*s", suffixes[mark], session, owner,
		TEXT_MAX, text);
	ckt_server_key_mac(server, proven ? "mark" : "mark, not proven", data, (size_t)size, mac);
	for (size_t i = 0; i < sizeof mac; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", mac[i]);
}

static bool has_mac(const char *line)
{
	return strncmp(line, "v2 ", 3) == 0 || strncmp(line, "v3 ", 3) == 0;
}

/* Splits the line in place. */
static bool parse(const struct ckt_server *server, const char *session, enum ckt_session_mark mark,
	char *line, uint32_t *ret_owner, bool *ret_proven, char **ret_text)
{
	char hex[2 * CKT_SEAL_SIZE + 1], *end;
	if (!has_mac(line))
		return false;
	unsigned long owner = strtoul(line + 3, &end, 10);
	if (end == line + 3 || *end != ' ' || owner > UINT32_MAX || strlen(end + 1) < sizeof hex ||
		end[sizeof hex] != ' ')
		return false;
	*ret_owner = (uint32_t)owner;
	*ret_text = end + 1 + sizeof hex;
	*ret_proven = line[1] == '2';
	mac_text(server, session, mark, *ret_owner, *ret_proven, *ret_text, hex);
	return ckt_auth_equal(hex, end + 1, sizeof hex - 1);
}

/* ---- Files */

static bool mark_read(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t *ret_owner, bool *ret_proven, char *ret_text,
	size_t text_size);

int ckt_session_mark_write(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t owner_uid, bool proven, const char *text)
{
	char path[CKT_PATH_MAX], temporary[CKT_PATH_MAX], hex[2 * CKT_SEAL_SIZE + 1],
		line[TEXT_MAX + 1], before[TEXT_MAX + 1];
	uint32_t owner;
	bool was_proven;
	if (!good_id(session))
		return -EINVAL;
	if (mark_read(server, session, mark, &owner, &was_proven, before, sizeof before) &&
		owner != CKT_UID_UNKNOWN && !ckt_uid_is_operator(owner_uid) && owner != owner_uid &&
		(was_proven || !proven))
		return -EPERM;
	snprintf(line, sizeof line, "%s", text);
	line[strcspn(line, "\n")] = 0;
	mac_text(server, session, mark, owner_uid, proven, line, hex);
	mark_path(server, session, mark, "", path);
	mark_path(server, session, mark, ".new", temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int result =
		dprintf(fd, "v%d %u %s %s\n", proven ? 2 : 3, owner_uid, hex, line) < 0 || fsync(fd)
		? -errno
		: 0;
	close(fd);
	if (!result && rename(temporary, path))
		result = -errno;
	if (result)
		unlink(temporary);
	return result;
}

static bool mark_read(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t *ret_owner, bool *ret_proven, char *ret_text,
	size_t text_size)
{
	char path[CKT_PATH_MAX], line[TEXT_MAX + 128], *text = line;
	struct stat st;
	if (!good_id(session))
		return false;
	mark_path(server, session, mark, "", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	ssize_t n = fstat(fd, &st) ? -1 : read(fd, line, sizeof line - 1);
	close(fd);
	if (n < 0)
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	*ret_owner = CKT_UID_UNKNOWN;
	*ret_proven = false;
	/* An earlier build wrote its marks before there was a key. */
	if (!parse(server, session, mark, line, ret_owner, ret_proven, &text) &&
		(st.st_mtime >= server->key_made || has_mac(line))) {
		ckt_warning("this server did not write %s: ignoring it", path);
		return false;
	}
	snprintf(ret_text, text_size, "%s", text);
	return true;
}

bool ckt_session_mark_read(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t *ret_owner, char *ret_text, size_t text_size)
{
	bool proven;
	return mark_read(server, session, mark, ret_owner, &proven, ret_text, text_size);
}

bool ckt_session_mark_is_proven(
	const struct ckt_server *server, const char *session, enum ckt_session_mark mark)
{
	char text[TEXT_MAX + 1];
	uint32_t owner;
	bool proven;
	return mark_read(server, session, mark, &owner, &proven, text, sizeof text) && proven;
}

void ckt_session_mark_remove(const struct ckt_server *server, const char *session,
	enum ckt_session_mark mark, uint32_t uid)
{
	char path[CKT_PATH_MAX], text[TEXT_MAX + 1];
	uint32_t owner;
	if (!good_id(session))
		return;
	if (!ckt_uid_is_operator(uid) &&
		ckt_session_mark_read(server, session, mark, &owner, text, sizeof text) &&
		owner != uid && owner != CKT_UID_UNKNOWN)
		return;
	mark_path(server, session, mark, "", path);
	unlink(path);
}

bool ckt_session_mark_exists(const struct ckt_server *server, const char *session)
{
	char text[TEXT_MAX + 1];
	uint32_t owner;
	for (int mark = 0; mark < CKT_MARKS; mark++)
		if (ckt_session_mark_read(server, session, (enum ckt_session_mark)mark, &owner,
			    text, sizeof text))
			return true;
	return false;
}

/* "ID.parked" and similar names; a killed server's temporary file counts too. */
static bool is_mark(const char *name)
{
	const char *end = name + CKT_SESSION_ID_SIZE;
	if (strlen(name) <= CKT_SESSION_ID_SIZE ||
		strspn(name, "0123456789abcdef") != CKT_SESSION_ID_SIZE || *end++ != '.')
		return false;
	return strncmp(end, suffixes[CKT_MARK_PARKED], 6) == 0 ||
		strncmp(end, suffixes[CKT_MARK_MOVED], 5) == 0 || strstr(end, ".new");
}

static void expire(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, marks_timer);
	DIR *dir = opendir(server->socket_dir);
	struct stat st;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (is_mark(entry->d_name) &&
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			time(NULL) - st.st_mtime > AGE_MAX_S)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	ckt_timer_set(&server->loop, timer, WATCH_MS);
}

void ckt_session_marks_watch(struct ckt_server *server)
{
	server->marks_timer.fire = expire;
	expire(&server->marks_timer);
}
