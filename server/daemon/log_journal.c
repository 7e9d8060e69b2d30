/* SPDX-License-Identifier: Apache-2.0 */
/* The log in the journal; see log_journal.h. */
#include "server/daemon/log_journal.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/policy/tokens.h"
#include "server/daemon/session/session.h"

static struct {
	int fd;
	struct sockaddr_un address;
	struct ckt_server *server;
	pthread_t loop;
} journal = {.fd = -1};

bool ckt_log_journal_is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;
	char rest;
	return stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &rest) == 2 &&
		fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device &&
		status.st_ino == inode;
}

/* ---- Lines */

struct datagram {
	char text[4096];
	size_t size;
};

/*
 * NAME=VALUE.  The value has no line's end: base/log.c takes those out of messages, and so does
 * this.  A field that does not fit is left out.
 */
static void put(struct datagram *to, const char *name, const char *value)
{
	size_t room = sizeof to->text - to->size;
	int n = snprintf(to->text + to->size, room, "%s=%s\n", name, value);
	if (n < 0 || (size_t)n >= room)
		return;
	char *end = to->text + to->size + n - 1;
	for (char *p = to->text + to->size; p < end; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			*p = '?';
	to->size += (size_t)n;
}

/* "session 0123456789ab: ...", as all lines about one begin. */
static const struct ckt_session *session_of(const char *line)
{
	static const char begin[] = "session ";
	char id[CKT_SESSION_ID_SIZE + 1];
	size_t length = sizeof begin - 1;
	if (!pthread_equal(pthread_self(), journal.loop) || strncmp(line, begin, length) != 0 ||
		strspn(line + length, "0123456789abcdef") != CKT_SESSION_ID_SIZE)
		return NULL;
	snprintf(id, sizeof id, "%s", line + length);
	return ckt_session_find(journal.server, id);
}

static bool put_line(enum ckt_log_level level, const char *name, const char *line)
{
	static const int priorities[] = {3, 3, 4, 6, 7};
	struct datagram to = {.size = 0};
	char text[CKT_OWNER_NAME_SIZE];
	const struct ckt_session *session = session_of(line);
	snprintf(text, sizeof text, "%d", priorities[level]);
	put(&to, "PRIORITY", text);
	put(&to, "SYSLOG_IDENTIFIER", name);
	put(&to, "MESSAGE", line);
	if (session) {
		put(&to, "CRICKET_SESSION", session->id);
		ckt_owner_text(journal.server, session->uid, text);
		put(&to, "CRICKET_OWNER", text);
		if (*session->job)
			put(&to, "CRICKET_JOB", session->job);
		if (session->status.program_name && *session->status.program_name)
			put(&to, "CRICKET_PROGRAM", session->status.program_name);
	}
	return sendto(journal.fd, to.text, to.size, MSG_NOSIGNAL | MSG_DONTWAIT,
		       (struct sockaddr *)&journal.address, sizeof journal.address) >= 0;
}

/* ---- The start */

int ckt_log_journal_open(
	struct ckt_server *server, const char *path, char *ret_message, size_t message_size)
{
	int result = 0;
	journal.server = server;
	journal.loop = pthread_self();
	journal.address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof journal.address.sun_path)
		result = -ENAMETOOLONG;
	else
		strcpy(journal.address.sun_path, path);
	/* Not connected, so that lines also reach a journal that started again. */
	journal.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!result &&
		(journal.fd < 0 || probe < 0 ||
			connect(probe, (struct sockaddr *)&journal.address,
				sizeof journal.address)))
		result = -errno;
	if (probe >= 0)
		close(probe);
	if (!result) {
		ckt_log_set_sink(put_line);
		return 0;
	}
	snprintf(ret_message, message_size,
		"--log: cannot reach systemd's journal at %s: %s; start systemd-journald, or write "
		"--log stderr",
		path, strerror(-result));
	ckt_log_journal_close();
	return result;
}

void ckt_log_journal_close(void)
{
	ckt_log_set_sink(NULL);
	if (journal.fd >= 0)
		close(journal.fd);
	journal.fd = -1;
}
