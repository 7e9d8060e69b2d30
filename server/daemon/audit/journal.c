/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log in systemd's journal; see journal.h. */
#include "server/daemon/audit/journal.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/audit/audit_line.h"

enum { TELL_MS = 60000, FIELD_NAME_MAX = 64 };

struct ckt_audit_journal {
	int fd;
	struct sockaddr_un address;
	pthread_mutex_t lock; /* of what follows */
	uint64_t lost;        /* entries, since the last one that was sent */
	int64_t told_ms;
};

int ckt_audit_journal_open(const char *path, struct ckt_audit_journal **ret_journal,
	char *ret_message, size_t message_size)
{
	struct ckt_audit_journal *journal = calloc(1, sizeof *journal);
	int result = journal ? 0 : -ENOMEM, probe = -1;
	if (journal) {
		journal->address.sun_family = AF_UNIX;
		if (strlen(path) >= sizeof journal->address.sun_path)
			result = -ENAMETOOLONG;
		else
			strcpy(journal->address.sun_path, path);
		journal->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (!result && (journal->fd < 0 || probe < 0))
			result = -errno;
		/* Only the probe is connected, so that entries also reach a journal that restarted. */
		if (!result &&
			connect(probe, (struct sockaddr *)&journal->address,
				sizeof journal->address))
			result = -errno;
	}
	if (probe >= 0)
		close(probe);
	if (!result) {
		pthread_mutex_init(&journal->lock, NULL);
		*ret_journal = journal;
		return 0;
	}
	snprintf(ret_message, message_size,
		"--audit: cannot reach systemd's journal at %s: %s: start systemd-journald, or "
		"give the path of a file",
		path, strerror(-result));
	if (journal && journal->fd >= 0)
		close(journal->fd);
	free(journal);
	return result;
}

void ckt_audit_journal_close(struct ckt_audit_journal *journal)
{
	if (!journal)
		return;
	close(journal->fd);
	pthread_mutex_destroy(&journal->lock);
	free(journal);
}

/*
 * A field whose value holds control characters, or any other: name, line's end, the length as 64
 * bits in little-endian, the value, line's end.  The other form, NAME=VALUE, could be forged by a
 * value with a line's end.
 */
static void put_field(FILE *to, const char *name, const char *value)
{
	uint64_t size = strlen(value), wire = htole64(size);
	fprintf(to, "%s\n", name);
	fwrite(&wire, sizeof wire, 1, to);
	fwrite(value, 1, size, to);
	fputc('\n', to);
}

static void put_member(FILE *to, const char *key, const json_t *value)
{
	char name[FIELD_NAME_MAX], number[32];
	const char *text = json_string_value(value);
	snprintf(name, sizeof name, "CRICKET_%s", key);
	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	if (!text) {
		snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
		text = number;
	}
	put_field(to, name, text);
}

/* The datagram of the entry; NULL without memory. */
static char *datagram(json_t *object, size_t *ret_size)
{
	char *text = NULL, *line = ckt_audit_line_text(object);
	FILE *to = line ? open_memstream(&text, ret_size) : NULL;
	if (to) {
		fputs("PRIORITY=6\nSYSLOG_IDENTIFIER=cricket-server\n", to);
		put_field(to, "MESSAGE", line);
		for (void *member = json_object_iter(object); member;
			member = json_object_iter_next(object, member))
			put_member(
				to, json_object_iter_key(member), json_object_iter_value(member));
		if (fclose(to)) {
			free(text);
			text = NULL;
		}
	}
	free(line);
	return text;
}

/* 0, or -errno. */
static int send_entry(struct ckt_audit_journal *journal, json_t *object)
{
	size_t size;
	char *text = datagram(object, &size);
	if (!text)
		return -ENOMEM;
	ssize_t n = sendto(journal->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT,
		(struct sockaddr *)&journal->address, sizeof journal->address);
	int result = n < 0 ? -errno : 0;
	free(text);
	return result;
}

void ckt_audit_journal_put(struct ckt_audit_journal *journal, json_t *object)
{
	pthread_mutex_lock(&journal->lock);
	int result = object ? 0 : -ENOMEM;
	if (!result && journal->lost)
		result = json_object_set_new(
			object, "lost", json_integer((json_int_t)journal->lost));
	if (!result)
		result = send_entry(journal, object);
	int64_t now = ckt_net_now_ms();
	if (!result) {
		journal->lost = 0;
	} else {
		journal->lost++;
		if (!journal->told_ms || now - journal->told_ms >= TELL_MS) {
			journal->told_ms = now;
			ckt_warning("audit log: systemd's journal takes no entry: %s: entries are "
				    "lost until it does",
				strerror(-result));
		}
	}
	pthread_mutex_unlock(&journal->lock);
}
