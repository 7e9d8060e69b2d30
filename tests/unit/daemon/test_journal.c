/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/audit/journal.c: entries in the journal's protocol, as a reader of it takes them
 * apart, and a journal that is away or does not read.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/audit/audit_line.h"
#include "server/daemon/audit/journal.h"

static char entry[65536];
static size_t entry_size;

static int journal_bind(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	strcpy(address.sun_path, path);
	MUST(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* The value of a field of the entry; NULL: it has none.  Both forms of the protocol. */
static const char *field(const char *name)
{
	static char value[8192];
	const char *p = entry, *end = entry + entry_size, *found = NULL;
	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		CU_ASSERT_PTR_NOT_NULL_FATAL(line);
		const char *equals = memchr(p, '=', (size_t)(line - p));
		size_t name_size = (size_t)((equals ? equals : line) - p);
		bool same = strlen(name) == name_size && memcmp(p, name, name_size) == 0;
		const char *from = equals ? equals + 1 : line + 9;
		uint64_t size = (uint64_t)(line - from);
		if (!equals) {
			memcpy(&size, line + 1, sizeof size);
			size = le64toh(size);
			YES(from + size < end && from[size] == '\n');
		}
		if (same) {
			CU_ASSERT_PTR_NULL(found);
			snprintf(value, sizeof value, "%.*s", (int)size, from);
			found = value;
		}
		p = from + size + 1;
	}
	return found;
}

static bool take(int fd)
{
	ssize_t n = recv(fd, entry, sizeof entry, MSG_DONTWAIT);
	entry_size = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static void put(struct ckt_audit_journal *journal, const char *program)
{
	const struct ckt_audit_record record = {
		.event = "control", .call = "save", .program = program, .pid = 12};
	json_t *object = ckt_audit_line_object(&record, &(struct timespec){0, 0});
	ckt_audit_journal_put(journal, object);
	json_decref(object);
}

static void test_entries(void)
{
	const char *path = path_in("journal");
	char message[512] = "";
	struct ckt_audit_journal *journal = NULL;
	int fd = journal_bind(path);
	MUST(ckt_audit_journal_open(path, &journal, message, sizeof message), 0);
	put(journal, "nbody");
	YES(take(fd));
	TEXT(field("CRICKET_EVENT"), "control");
	TEXT(field("CRICKET_CALL"), "save");
	TEXT(field("CRICKET_PROGRAM"), "nbody");
	TEXT(field("CRICKET_PID"), "12");
	TEXT(field("SYSLOG_IDENTIFIER"), "cricket-server");
	TEXT(field("MESSAGE"),
		"{\"time\":\"1970-01-01T00:00:00.000Z\",\"event\":\"control\",\"pid\":12,"
		"\"call\":\"save\",\"program\":\"nbody\"}");
	CU_ASSERT_PTR_NULL(field("CRICKET_LOST"));
	/* A program's name that looks like a field stays a value. */
	put(journal, "x\nCRICKET_EVENT=forged\nPRIORITY=0");
	YES(take(fd));
	TEXT(field("CRICKET_EVENT"), "control");
	TEXT(field("CRICKET_PROGRAM"), "x\nCRICKET_EVENT=forged\nPRIORITY=0");
	TEXT(field("PRIORITY"), "6");
	NO(take(fd));
	/* The journal is away: entries are counted, and the next one carries the count. */
	close(fd);
	put(journal, "a");
	ckt_audit_journal_put(journal, NULL);
	unlink(path);
	fd = journal_bind(path);
	put(journal, "b");
	put(journal, "c");
	YES(take(fd));
	TEXT(field("CRICKET_PROGRAM"), "b");
	TEXT(field("CRICKET_LOST"), "2");
	HAS(field("MESSAGE"), "\"lost\":2}");
	YES(take(fd));
	CU_ASSERT_PTR_NULL(field("CRICKET_LOST"));
	/* It does not read: nobody waits for it. */
	int sent = 0;
	for (; sent < 5000; sent++)
		put(journal, "flood");
	int received = 0;
	while (take(fd))
		received++;
	YES(received > 0 && received < sent);
	put(journal, "after");
	YES(take(fd));
	IS(atoi(field("CRICKET_LOST")), sent - received);
	ckt_audit_journal_close(journal);
	close(fd);
	unlink(path);
}

static void test_absent(void)
{
	char message[512] = "", longest[200];
	struct ckt_audit_journal *journal = NULL;
	YES(ckt_audit_journal_open(path_in("nowhere"), &journal, message, sizeof message) < 0);
	HAS(message, "cannot reach systemd's journal at /");
	HAS(message, "nowhere: No such file or directory: start systemd-journald, or give");
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	YES(ckt_audit_journal_open(longest, &journal, message, sizeof message) < 0);
	HAS(message, "File name too long");
	CU_ASSERT_PTR_NULL(journal);
	ckt_audit_journal_close(NULL);
}

UNIT_SUITE(journal, {"entries", test_entries}, {"absent", test_absent})
