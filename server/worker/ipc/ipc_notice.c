/* SPDX-License-Identifier: Apache-2.0 */
/* Where restored sessions that share memory are found; see ipc_notice.h. */
#include "server/worker/ipc/ipc_notice.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/ipc/ipc.h"
#include "server/worker/session/notice_file.h"
#include "server/worker/worker.h"

enum { NAME_BYTES = 96, HASHED_BYTES = 16, TRIES = 16 };

struct notice {
	char magic[8];
	char session[CKT_IPC_SESSION];
	char socket[CKT_IPC_SOCKET];
};

static const char magic[8] = "cktipcn1";

/* The prefix of a session's notices. */
static void name_notices(const struct ckt_worker *worker, const char session[CKT_IPC_SESSION],
	char ret_name[NAME_BYTES])
{
	struct {
		char session[CKT_IPC_SESSION], directory[CKT_WORKER_PATH_MAX];
	} what;
	uint8_t hash[CKT_HASH_SIZE];
	memset(&what, 0, sizeof what);
	memcpy(what.session, session, CKT_IPC_SESSION);
	memcpy(what.directory, worker->socket, ckt_notice_server_length(worker));
	ckt_blob_hash(&what, sizeof what, hash);
	int n = snprintf(ret_name, NAME_BYTES, CKT_IPC_NOTICE_PREFIX);
	for (unsigned i = 0; i < HASHED_BYTES; i++)
		n += snprintf(ret_name + n, NAME_BYTES - (size_t)n, "%02x", hash[i]);
}

static int leave(struct ckt_worker *worker, const char session[CKT_IPC_SESSION])
{
	struct notice notice;
	char name[NAME_BYTES], path[NAME_BYTES + 32];
	/* It stays open, and keeps the lock, until the process ends. */
	int fd;
	memcpy(notice.magic, magic, sizeof magic);
	memcpy(notice.session, session, sizeof notice.session);
	ckt_ipc_socket_name(notice.socket);
	name_notices(worker, session, name);
	snprintf(path, sizeof path, CKT_NOTICE_DIRECTORY "/%s-%d", name, (int)getpid());
	return ckt_notice_leave(path, &notice, sizeof notice, &fd);
}

int ckt_ipc_notice_leave(struct ckt_worker *worker, const char session[CKT_IPC_SESSION])
{
	int error = -EAGAIN;
	/*
	 * A server that removes dead workers' files locks a new file for a moment, or removes it.
	 */
	for (int i = 0; i < TRIES && error; i++)
		error = leave(worker, session);
	return error;
}

static bool read_notice(int directory, const char *name, const char session[CKT_IPC_SESSION],
	char ret_socket[CKT_IPC_SOCKET])
{
	struct notice notice;
	bool good = ckt_notice_read(directory, name, true, &notice, sizeof notice) &&
		!memcmp(notice.magic, magic, sizeof magic) &&
		!memcmp(notice.session, session, sizeof notice.session);
	if (good)
		memcpy(ret_socket, notice.socket, sizeof notice.socket);
	return good;
}

unsigned ckt_ipc_notice_find(struct ckt_worker *worker, const char session[CKT_IPC_SESSION],
	char ret_sockets[CKT_IPC_NOTICES_MAX][CKT_IPC_SOCKET])
{
	char name[NAME_BYTES];
	unsigned count = 0;
	DIR *directory = opendir(CKT_NOTICE_DIRECTORY);
	name_notices(worker, session, name);
	for (const struct dirent *entry;
		directory && count < CKT_IPC_NOTICES_MAX && (entry = readdir(directory));)
		if (strncmp(entry->d_name, name, strlen(name)) == 0)
			count += read_notice(
				dirfd(directory), entry->d_name, session, ret_sockets[count]);
	if (directory)
		closedir(directory);
	return count;
}
