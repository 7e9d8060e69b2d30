/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/log_journal.c and the sink of base/log.c: entries with fields of sessions, lines that
 * try to forge fields, a journal that is away, and JOURNAL_STREAM.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "inside.h"
#include "server/daemon/log_journal.h"

static int fd;
static char got[8192], message[512];

static void begin(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, path_in("log-journal"));
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	MUST(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	MUST(ckt_log_journal_open(&server, address.sun_path, message, sizeof message), 0);
	ckt_log_init("cricket-server", CKT_LOG_INFO, NULL);
}

static void end(void)
{
	ckt_log_journal_close();
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	close(fd);
	unlink(path_in("log-journal"));
}

/* The datagram of now; "" if there is none. */
static const char *entry(void)
{
	ssize_t n = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);
	got[n > 0 ? n : 0] = 0;
	return got;
}

static void *log_elsewhere(void *data)
{
	(void)data;
	ckt_info("session 0a0a0a0a0a0a: of another thread");
	return NULL;
}

static void test_fields(void)
{
	struct ckt_session *session = session_new("0a0a0a0a0a0a");
	session->uid = 1234;
	strcpy(session->job, "train");
	begin();
	errno = EXDEV;
	ckt_warning("session %s: is %s", session->id, "late");
	IS(errno, EXDEV);
	HAS(entry(),
		"PRIORITY=4\nSYSLOG_IDENTIFIER=cricket-server\n"
		"MESSAGE=session 0a0a0a0a0a0a: is late\nCRICKET_SESSION=0a0a0a0a0a0a\n"
		"CRICKET_OWNER=uid:1234\nCRICKET_JOB=train\n");
	ckt_debug("not wanted");
	TEXT(entry(), "");
	ckt_info("session 0b0b0b0b0b0b: unknown");
	TEXT(entry(),
		"PRIORITY=6\nSYSLOG_IDENTIFIER=cricket-server\n"
		"MESSAGE=session 0b0b0b0b0b0b: unknown\n");
	/* A peer's text makes no field. */
	ckt_info("session 0a0a0a0a0a0a: %s", "x\nCRICKET_OWNER=uid:0\nPRIORITY=0");
	HAS(entry(), "MESSAGE=session 0a0a0a0a0a0a: x?CRICKET_OWNER=uid:0?PRIORITY=0\n");
	HAS(got, "\nCRICKET_OWNER=uid:1234\n");
	CU_ASSERT_PTR_NULL(strstr(got, "\nCRICKET_OWNER=uid:0"));
	char *program = session->status.program_name;
	session->status.program_name = (char *)"a\nCRICKET_SESSION=x";
	ckt_info("session 0a0a0a0a0a0a: y");
	HAS(entry(), "CRICKET_PROGRAM=a?CRICKET_SESSION=x\n");
	session->status.program_name = program;
	/* Another thread may not look at sessions. */
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, log_elsewhere, NULL), 0);
	pthread_join(thread, NULL);
	HAS(entry(), "MESSAGE=session 0a0a0a0a0a0a: of another thread\n");
	CU_ASSERT_PTR_NULL(strstr(got, "CRICKET_"));
	end();
	session_drop(session);
}

static void test_away(void)
{
	begin();
	int file = open(path_in("log-text"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ckt_log_init_fd("cricket-server", CKT_LOG_INFO, file);
	ckt_info("to the journal");
	HAS(entry(), "MESSAGE=to the journal\n");
	unlink(path_in("log-journal"));
	ckt_info("to the file");
	HAS(read_file(path_in("log-text")), "info: to the file\n");
	CU_ASSERT_PTR_NULL(strstr(read_file(path_in("log-text")), "to the journal"));
	end();
	close(file);
	IS(ckt_log_journal_open(&server, "/no/such/socket", message, sizeof message), -ENOENT);
	HAS(message, "--log: cannot reach systemd's journal at /no/such/socket");
	memset(got, 'x', 200);
	got[200] = 0;
	IS(ckt_log_journal_open(&server, got, message, sizeof message), -ENAMETOOLONG);
}

static void test_stream(void)
{
	struct stat status;
	char text[64];
	unsetenv("JOURNAL_STREAM");
	NO(ckt_log_journal_is_stderr());
	MUST(fstat(STDERR_FILENO, &status), 0);
	static const struct {
		const char *before, *between, *behind;
	} forms[] = {{"", ":", ""}, {"", ":1", ""}, {"", ":", "x"}, {"", " ", ""}, {"x", ":", ""}};
	for (size_t i = 0; i < COUNT(forms); i++) {
		snprintf(text, sizeof text, "%s%llu%s%llu%s", forms[i].before,
			(unsigned long long)status.st_dev, forms[i].between,
			(unsigned long long)status.st_ino, forms[i].behind);
		setenv("JOURNAL_STREAM", text, 1);
		IS(ckt_log_journal_is_stderr(), i == 0);
	}
	unsetenv("JOURNAL_STREAM");
}

UNIT_SUITE(log_journal, {"fields", test_fields}, {"away", test_away}, {"stream", test_stream})
