/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/recorder.c: what a thread records, and what it does not. */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fork.h"
#include "in_child.h"
#include "tests/unit/suite.h"

static void call(unsigned number)
{
	ckt_trace_enter(site(number));
	ckt_trace_leave();
}

/* The outer call alone is recorded, with what the inner one knows; the outer knows best. */
static void nested(void)
{
	static const unsigned grid[3] = {3, 2, 1}, block[3] = {64, 1, 1};
	struct ckt_trace_record *outer = ckt_trace_enter(site(0));
	ckt_trace_stream(outer, 5);
	struct ckt_trace_record *inner = ckt_trace_enter(site(1));
	if (inner != outer)
		_exit(1);
	ckt_trace_stream(inner, 6);
	ckt_trace_bytes(inner, 100);
	ckt_trace_kernel(77, "the kernel");
	ckt_trace_launch(77, grid, block, 16, 6);
	ckt_trace_command();
	ckt_trace_wait_end(ckt_trace_wait_begin());
	ckt_trace_leave();
	ckt_trace_leave();
	/* It leaves nothing behind for the next. */
	call(2);
	/* One leave too many is none of ours. */
	ckt_trace_leave();
}

static void test_nested(void)
{
	const char *file = own_path("nested");
	IS(in_child(file, NULL, nested), 0);
	const char *text = file_text(file);
	HAS(text, "\"name\":\"one\",\"cat\":\"runtime\"");
	IS(occurs(text, "\"name\":\"two\""), 0);
	HAS(text,
		"\"args\":{\"stream\":\"0x5\",\"bytes\":100,\"kernel\":\"the kernel\",\"grid\":["
		"3,2,1],\"block\":[64,1,1],\"shared_bytes\":16,\"commands\":1,\"waited\":true}}");
	HAS(text, "\"args\":{\"commands\":0,\"waited\":false}}");
	IS(occurs(text, "\"ph\":\"X\""), 2);
}

static unsigned threads_now(void)
{
	unsigned n = 0;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *entry; (entry = readdir(tasks));)
		n += entry->d_name[0] != '.';
	closedir(tasks);
	return n;
}

/* A sanitizer may have a thread of its own. */
#ifdef __SANITIZE_THREAD__
enum { THREADS = 2 };
#else
enum { THREADS = 1 };
#endif

static void off(void)
{
	if (ckt_trace_get())
		_exit(1);
	if (ckt_trace_enter(site(0)))
		_exit(2);
	ckt_trace_leave();
	if (ckt_trace_state.threads || ckt_trace_state.name_count || threads_now() != THREADS)
		_exit(3);
}

/* No thread, no ring, no name. */
static void test_off(void)
{
	IS(in_child(NULL, NULL, off), 0);
	IS(in_child("", "0", off), 0);
}

/* Reading the variables alone allocates nothing either. */
static void not_used(void)
{
	if (!ckt_trace_get() || ckt_trace_state.threads || threads_now() != THREADS)
		_exit(1);
}

static void test_not_used(void)
{
	const char *file = own_path("unused");
	IS(in_child(file, NULL, not_used), 0);
	IS(access(file, F_OK), -1);
}

static void *thread_main(void *unused)
{
	(void)unused;
	call(0);
	return NULL;
}

/* A ring goes on with the next thread, whose number the file tells. */
static void threads(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_join(thread, NULL);
	}
	if (ckt_trace_state.thread_count > 20)
		_exit(1);
}

static void stats_threads(void)
{
	threads();
	if (ckt_trace_state.thread_count != 1)
		_exit(1);
}

static void test_threads(void)
{
	const char *file = own_path("threads");
	IS(in_child(file, NULL, threads), 0);
	IS(occurs(file_text(file), "\"name\":\"one\""), 20);
	IS(in_child(NULL, "1", stats_threads), 0);
	HAS(child_said(), "20 calls, 0 commands sent, 0 waits");
}

static void forked_child(void)
{
	call(0);
	pid_t child = fork();
	if (child == 0) {
		/* What the library's fork handler does: the writer may have held the lock. */
		ckt_fork_renew();
		call(1);
		ckt_trace_command();
		ckt_trace_end();
		_exit(ckt_trace_get() != NULL);
	}
	int status;
	waitpid(child, &status, 0);
	if (status)
		_exit(1);
	call(2);
}

static void test_fork(void)
{
	const char *file = own_path("fork");
	IS(in_child(file, "1", forked_child), 0);
	const char *text = file_text(file);
	IS(occurs(text, "\"name\":\"one\""), 1);
	IS(occurs(text, "\"name\":\"two\""), 0);
	IS(occurs(text, "\"name\":\"three\""), 1);
	IS(occurs(child_said(), "calls,"), 1);
}

UNIT_SUITE(recorder, {"nested calls", test_nested}, {"off", test_off}, {"not used", test_not_used},
	{"threads", test_threads}, {"fork", test_fork})
