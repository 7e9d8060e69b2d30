/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of sessions in files; see owner_file.h. */
#include "server/daemon/session/owner_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"

#define SUFFIX ".owner"
/* Of a file that is not whole yet. */
#define FRESH ".owner-new"

/* The owner's number, the container if it is known, and how its GPU is shared in space, a line each. */
enum { TEXT_BYTES = 16 + CKT_LIMIT_NAME_MAX + 1 + CKT_MPS_NOTE + 1 };

static void name_file(const struct ckt_server *server, const char *id, const char *suffix,
	char ret_path[CKT_PATH_MAX])
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/%.64s%s", server->socket_dir, id, suffix);
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ssize_t size = (ssize_t)strlen(text);
	int result = write(fd, text, (size_t)size) == size ? 0 : -EIO;
	close(fd);
	return result;
}

void ckt_owner_file_write(const struct ckt_session *session)
{
	char path[CKT_PATH_MAX], fresh[CKT_PATH_MAX], text[TEXT_BYTES], space[CKT_MPS_NOTE];
	name_file(session->server, session->id, SUFFIX, path);
	name_file(session->server, session->id, FRESH, fresh);
	ckt_mps_note(session, space);
	snprintf(text, sizeof text, "%" PRIu32 "\n%s%s%s%s", session->uid, session->container,
		*session->container || *space ? "\n" : "", space, *space ? "\n" : "");
	int result = write_text(fresh, text);
	if (!result && rename(fresh, path))
		result = -errno;
	if (!result)
		return;
	unlink(fresh);
	ckt_warning("%s: %s: after a restart the server takes the worker's word for its owner",
		path, strerror(-result));
}

/* The bytes, with 0 behind them. */
static ssize_t read_text(const struct ckt_session *session, char ret_text[TEXT_BYTES])
{
	char path[CKT_PATH_MAX];
	name_file(session->server, session->id, SUFFIX, path);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret_text, TEXT_BYTES - 1) : -1;
	if (fd >= 0)
		close(fd);
	ret_text[n > 0 ? n : 0] = 0;
	return n;
}

void ckt_owner_file_read_space(const struct ckt_session *session, char ret_note[CKT_MPS_NOTE])
{
	char text[TEXT_BYTES], *rest = text;
	*ret_note = 0;
	if (read_text(session, text) <= 0 || !strsep(&rest, "\n") || !strsep(&rest, "\n") || !rest)
		return;
	rest[strcspn(rest, "\n")] = 0;
	if (strlen(rest) < CKT_MPS_NOTE)
		strcpy(ret_note, rest);
}

bool ckt_owner_file_read(struct ckt_session *session, uint32_t *ret_owner)
{
	char text[TEXT_BYTES], *end;
	ssize_t n = read_text(session, text);
	unsigned long long owner = strtoull(text, &end, 10);
	if (n <= 0 || end == text || *end != '\n' || owner > UINT32_MAX)
		return false;
	*ret_owner = (uint32_t)owner;
	end++;
	end[strcspn(end, "\n")] = 0;
	if (strlen(end) < sizeof session->container)
		strcpy(session->container, end);
	return true;
}

void ckt_owner_file_remove(struct ckt_server *server, const char *id)
{
	char path[CKT_PATH_MAX];
	name_file(server, id, SUFFIX, path);
	unlink(path);
}

/* A file whose session is unknown here. */
static bool is_left(struct ckt_server *server, const char *name)
{
	char id[CKT_SESSION_ID_SIZE + 1];
	size_t length = strcspn(name, ".");
	if (length != CKT_SESSION_ID_SIZE ||
		(strcmp(name + length, SUFFIX) != 0 && strcmp(name + length, FRESH) != 0))
		return false;
	memcpy(id, name, CKT_SESSION_ID_SIZE);
	id[CKT_SESSION_ID_SIZE] = '\0';
	return strcmp(name + length, FRESH) == 0 || !ckt_session_find(server, id);
}

void ckt_owner_files_sweep(struct ckt_server *server)
{
	DIR *dir = opendir(server->socket_dir);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (is_left(server, entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}
