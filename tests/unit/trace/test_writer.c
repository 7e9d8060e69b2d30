/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/writer.c: the file, whole, torn and refused; and what was dropped. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "in_child.h"
#include "tests/unit/suite.h"

enum { CALLS = 300 };

static void some_calls(void)
{
	for (int i = 0; i < CALLS; i++) {
		ckt_trace_enter(site(0));
		ckt_trace_leave();
	}
}

static void test_whole(void)
{
	const char *file = own_path("whole");
	IS(in_child(file, NULL, some_calls), 0);
	const char *text = file_text(file);
	YES(strncmp(text, "[\n{\"name\":\"process_name\"", 24) == 0);
	HAS(text, "\"name\":\"thread_name\"");
	IS(occurs(text, "\"name\":\"one\""), CALLS);
	HAS(text, "\"dropped_records\":0");
	YES(strcmp(text + strlen(text) - 4, "}\n]\n") == 0);
	IS(occurs(text, "},\n]"), 0);
	TEXT(child_said(), "");
}

/* Without its end the array holds whole lines: readers accept that. */
static void killed(void)
{
	some_calls();
	for (int i = 0; i < 6000 && occurs(file_text(getenv("CRICKET_TRACE")), "one") < CALLS; i++)
		usleep(10000);
	kill(getpid(), SIGKILL);
}

static void test_killed(void)
{
	const char *file = own_path("killed");
	IS(in_child(file, NULL, killed), 128 + SIGKILL);
	const char *text = file_text(file);
	IS(occurs(text, "\"name\":\"one\""), CALLS);
	YES(strcmp(text + strlen(text) - 4, "}},\n") == 0);
}

/* The writer cannot look while this thread has the list: the ring fills and the rest is counted. */
static void too_many(void)
{
	ckt_trace_enter(site(0));
	ckt_trace_leave();
	pthread_mutex_lock(&ckt_trace_lock);
	for (int i = 0; i < 2 * CKT_TRACE_RING; i++) {
		ckt_trace_enter(site(0));
		ckt_trace_leave();
	}
	pthread_mutex_unlock(&ckt_trace_lock);
}

static void test_dropped(void)
{
	const char *file = own_path("dropped");
	IS(in_child(file, "1", too_many), 0);
	const char *text = file_text(file), *end = strstr(text, "\"dropped_records\":");
	unsigned written = occurs(text, "\"name\":\"one\"");
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	long dropped = strtol(end + 18, NULL, 10);
	YES(dropped >= CKT_TRACE_RING - 1);
	IS(written + dropped, 2 * CKT_TRACE_RING + 1);
	YES(occurs(text, "\"name\":\"dropped records\"") >= 1);
	/* The summary counts all. */
	HAS(child_said(), "cricket: 32769 calls");
}

static void test_refused(void)
{
	IS(in_child(own_path("no/file"), NULL, some_calls), 0);
	HAS(child_said(), "CRICKET_TRACE: cannot write ");
	HAS(child_said(), "No such file or directory; there is no trace");
	IS(occurs(child_said(), "\n"), 1);
}

static void test_full(void)
{
	IS(in_child("/dev/full", NULL, some_calls), 0);
	HAS(child_said(), "CRICKET_TRACE: cannot write /dev/full: No space left on device");
	IS(occurs(child_said(), "\n"), 1);
}

/* Says once where the second process writes. */
static void test_taken(void)
{
	const char *file = own_path("taken");
	int fd = open(file, O_WRONLY | O_CREAT, 0600);
	MUST(flock(fd, LOCK_EX), 0);
	IS(in_child(file, NULL, some_calls), 0);
	HAS(child_said(), "another process writes");
	IS(occurs(child_said(), "\n"), 1);
	struct stat status;
	MUST(fstat(fd, &status), 0);
	IS(status.st_size, 0);
	close(fd);
}

UNIT_SUITE(writer, {"whole", test_whole}, {"killed", test_killed}, {"dropped", test_dropped},
	{"refused", test_refused}, {"full", test_full}, {"taken", test_taken})
