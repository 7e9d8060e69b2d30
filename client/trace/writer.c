/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a thread that turns the rings' records into lines of the file.
 *
 * The file is an array of the Trace Event Format.  Readers accept one without its end, so a killed
 * program's file can be opened up to the writer's last look, at most LOOK_NS before.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "client/trace/event.h"
#include "client/trace/recorder.h"
#include "client/trace/ticks.h"
#include "client/trace/trace_file.h"

enum { LOOK_NS = 100000000, TEXT_SIZE = 64 << 10, PATH_SIZE = 4096 };

static struct {
	bool begun; /* a first call was recorded: the file is open or could not be opened */
	bool running;
	int fd; /* -1: none */
	int pid;
	pthread_t thread;
	_Atomic uint32_t word; /* futex: changes when the writer shall look */
	_Atomic bool stop;
	double ns_per_tick; /* 0: not measured yet */
	size_t used;
	char path[PATH_SIZE];
	char text[TEXT_SIZE];
} writer = {.fd = -1};

/* ---- Text */

static void failed(int error)
{
	ckt_log_user("CRICKET_TRACE: cannot write %s: %s; the trace ends here, the program goes on",
		writer.path, strerror(error));
	close(writer.fd);
	writer.fd = -1;
}

static void flush(void)
{
	size_t done = 0;
	while (writer.fd >= 0 && done < writer.used) {
		ssize_t n = write(writer.fd, writer.text + done, writer.used - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			failed(errno);
		else
			done += (size_t)n;
	}
	writer.used = 0;
}

bool ckt_trace_writer_open(void)
{
	return writer.fd >= 0;
}

/* At least CKT_TRACE_EVENT_MAX bytes and a comma. */
char *ckt_trace_writer_begin(void)
{
	if (writer.used + CKT_TRACE_EVENT_MAX + 2 > TEXT_SIZE)
		flush();
	return writer.text + writer.used;
}

void ckt_trace_writer_commit(size_t size)
{
	writer.used += size;
	writer.text[writer.used++] = ',';
	writer.text[writer.used++] = '\n';
}

/* ---- Times */

/* One scale for the whole file, so that no event moves against another. */
static void measure(void)
{
	struct ckt_trace_state *s = &ckt_trace_state;
	if (!s->counter || writer.ns_per_tick > 0) {
		writer.ns_per_tick = writer.ns_per_tick > 0 ? writer.ns_per_tick : 1;
		return;
	}
	/* The clocks' own jitter is below a microsecond: 2 ms give the scale to a thousandth. */
	while (ckt_now_ns() - s->start_ns < 2000000)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	int64_t ns = ckt_now_ns() - s->start_ns;
	writer.ns_per_tick = (double)ns / (double)(ckt_ticks_now(true) - s->start_ticks);
}

static uint64_t ns_of(uint64_t ticks)
{
	return (uint64_t)((double)ticks * writer.ns_per_tick);
}

/* ---- Events */

void ckt_trace_writer_name(const char *what, int pid, int tid, const char *name)
{
	char *p = ckt_trace_writer_begin();
	int n = snprintf(p, CKT_TRACE_EVENT_MAX,
		"{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what,
		pid, tid);
	char *end = ckt_trace_string_put(p + n, name, 64);
	memcpy(end, "}}", 2);
	ckt_trace_writer_commit((size_t)(end + 2 - p));
}

static void name_thread(struct ckt_trace_thread *t)
{
	char path[64], name[32] = "thread";
	snprintf(path, sizeof path, "/proc/self/task/%d/comm", t->tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
	if (n > 0)
		name[n - 1] = 0;
	if (fd >= 0)
		close(fd);
	ckt_trace_writer_name("thread_name", writer.pid, t->tid, name);
	t->named = true;
}

void ckt_trace_writer_dropped(int pid, int tid, uint64_t records)
{
	uint64_t ns = (uint64_t)ckt_now_ns();
	char *p = ckt_trace_writer_begin();
	int n = snprintf(p, CKT_TRACE_EVENT_MAX,
		"{\"name\":\"dropped records\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%llu.%03llu,"
		"\"pid\":%d,\"tid\":%d,\"args\":{\"records\":%llu}}",
		(unsigned long long)(ns / 1000), (unsigned long long)(ns % 1000), pid, tid,
		(unsigned long long)records);
	ckt_trace_writer_commit((size_t)n);
}

/* Precondition: ckt_trace_lock held. */
static void put_record(const struct ckt_trace_thread *t, const struct ckt_trace_record *record)
{
	const struct ckt_trace_state *s = &ckt_trace_state;
	struct ckt_trace_text text = {
		.name = s->names[record->number],
		.category = s->categories[record->number],
		.kernel = record->flags & CKT_TRACE_F_KERNEL ? ckt_trace_kernel_name(record->kernel)
							     : NULL,
		.pid = writer.pid,
		.tid = t->tid,
		.start_ns = (uint64_t)s->start_ns +
			(record->start > s->start_ticks ? ns_of(record->start - s->start_ticks)
							: 0),
		.duration_ns = ns_of(record->end - record->start),
	};
	ckt_trace_writer_commit(ckt_trace_event_put(ckt_trace_writer_begin(), record, &text));
}

/* Precondition: ckt_trace_lock held. */
static void drain(struct ckt_trace_thread *t)
{
	uint64_t tail = atomic_load_explicit(&t->tail, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&t->head, memory_order_relaxed);
	if (head != tail && !t->named)
		name_thread(t);
	for (; head != tail && writer.fd >= 0; head++) {
		put_record(t, &t->ring[head % CKT_TRACE_RING]);
		if (head % 256 == 255)
			atomic_store_explicit(&t->head, head + 1, memory_order_release);
	}
	atomic_store_explicit(&t->head, tail, memory_order_release);
	uint64_t dropped = atomic_load_explicit(&t->dropped, memory_order_relaxed);
	if (dropped != t->reported) {
		ckt_trace_writer_dropped(writer.pid, t->tid, dropped - t->reported);
		t->reported = dropped;
	}
}

/* Precondition: ckt_trace_lock held. */
static void drain_all(void)
{
	for (struct ckt_trace_thread *t = ckt_trace_state.threads; t; t = t->next)
		drain(t);
	flush();
}

static void look(void)
{
	measure();
	pthread_mutex_lock(&ckt_trace_lock);
	drain_all();
	pthread_mutex_unlock(&ckt_trace_lock);
}

static void *writer_main(void *unused)
{
	(void)unused;
	while (!atomic_load(&writer.stop)) {
		uint32_t word = atomic_load(&writer.word);
		look();
		struct timespec timeout = {.tv_nsec = LOOK_NS};
		if (!atomic_load(&writer.stop))
			syscall(SYS_futex, &writer.word, FUTEX_WAIT_PRIVATE, word, &timeout, NULL,
				0);
	}
	return NULL;
}

/* ---- Start and end */

static void open_file(void)
{
	const char *pattern = getenv("CRICKET_TRACE");
	char wanted[PATH_SIZE] = "";
	writer.pid = getpid();
	int fd = ckt_trace_file_open(pattern, writer.pid, writer.path, sizeof writer.path);
	if (fd < 0) {
		ckt_log_user("CRICKET_TRACE: cannot write %s: %s; there is no trace, the program "
			     "goes on: set CRICKET_TRACE to a file in a directory that this user "
			     "may write",
			pattern, strerror(-fd));
		ckt_trace_state.to_file = false;
		return;
	}
	writer.fd = fd;
	if (ckt_trace_path_expand(pattern, writer.pid, wanted, sizeof wanted) == 0 &&
		strcmp(wanted, writer.path) != 0)
		ckt_log_user("CRICKET_TRACE: another process writes %s; this one writes %s: use "
			     "%%p in the name for the process's ID",
			wanted, writer.path);
	writer.text[0] = '[';
	writer.text[1] = '\n';
	writer.used = 2;
	ckt_trace_writer_name(
		"process_name", writer.pid, writer.pid, program_invocation_short_name);
}

void ckt_trace_writer_start(void)
{
	if (writer.begun || !ckt_trace_state.to_file)
		return;
	writer.begun = true;
	open_file();
	if (writer.fd < 0)
		return;
	writer.running = ckt_thread_start(&writer.thread, 0, writer_main, NULL) == 0;
	if (!writer.running)
		ckt_log_user("CRICKET_TRACE: cannot start the thread that writes %s: the trace "
			     "holds the last calls of each thread only",
			writer.path);
}

void ckt_trace_writer_wake(void)
{
	atomic_fetch_add(&writer.word, 1);
	syscall(SYS_futex, &writer.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The last line has no comma behind it: the file is JSON. */
static void put_end(void)
{
	struct ckt_trace_state *s = &ckt_trace_state;
	uint64_t dropped = 0;
	for (struct ckt_trace_thread *t = s->threads; t; t = t->next)
		dropped += t->reported;
	char *p = ckt_trace_writer_begin();
	writer.used += (size_t)snprintf(p, CKT_TRACE_EVENT_MAX,
		"{\"name\":\"cricket_trace_end\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{"
		"\"dropped_records\":%llu,\"calls_of_untraced_threads\":%llu,"
		"\"dropped_gpu_records\":%llu}}\n]\n",
		writer.pid, writer.pid, (unsigned long long)dropped,
		(unsigned long long)atomic_load(&s->lost), (unsigned long long)s->gpu_dropped);
	flush();
}

bool ckt_trace_writer_end(const struct timespec *until)
{
	if (writer.running) {
		atomic_store(&writer.stop, true);
		ckt_trace_writer_wake();
		if (!ckt_join_until(writer.thread, until))
			return false;
		writer.running = false;
	}
	if (writer.fd < 0)
		return true;
	measure();
	if (!ckt_trace_lock_until(until))
		return false;
	drain_all();
	put_end();
	close(writer.fd);
	writer.fd = -1;
	pthread_mutex_unlock(&ckt_trace_lock);
	return true;
}

void ckt_trace_writer_forget(void)
{
	if (writer.fd >= 0)
		close(writer.fd);
	writer.fd = -1;
	writer.running = false;
}
