/* SPDX-License-Identifier: Apache-2.0 */
/* The calling threads' side: see recorder.h. */
#include "client/trace/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "client/trace/ticks.h"

struct ckt_trace_state ckt_trace_state;
CKT_LOCK(ckt_trace_lock);

const struct ckt_trace_table *ckt_trace_on;
static __thread struct ckt_trace_thread *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_key;

static inline uint64_t now(void)
{
	return ckt_ticks_now(ckt_trace_state.counter);
}

/* The thread's own counter: only it adds. */
static inline void add(_Atomic uint64_t *counter, uint64_t value)
{
	uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, before + value, memory_order_relaxed);
}

/* ---- Threads */

/* Another thread continues with the ring once the writer has read it. */
static void thread_ends(void *thread)
{
	mine = NULL;
	atomic_store(&((struct ckt_trace_thread *)thread)->state, CKT_TRACE_THREAD_ENDED);
}

/* Precondition: ckt_trace_lock held. */
static struct ckt_trace_thread *ended_thread(void)
{
	for (struct ckt_trace_thread *t = ckt_trace_state.threads; t; t = t->next)
		if (atomic_load(&t->state) == CKT_TRACE_THREAD_ENDED &&
			atomic_load(&t->head) == atomic_load(&t->tail))
			return t;
	return NULL;
}

/* Precondition: ckt_trace_lock held. */
static struct ckt_trace_thread *new_thread(void)
{
	if (ckt_trace_state.thread_count == CKT_TRACE_THREADS_MAX)
		return NULL;
	struct ckt_trace_thread *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	t->next = ckt_trace_state.threads;
	ckt_trace_state.threads = t;
	ckt_trace_state.thread_count++;
	return t;
}

__attribute__((noinline, cold)) static struct ckt_trace_thread *join(void)
{
	int saved = errno;
	pthread_mutex_lock(&ckt_trace_lock);
	struct ckt_trace_thread *t = ended_thread();
	if (!t)
		t = new_thread();
	if (t) {
		t->tid = (int)gettid();
		t->named = false;
		t->depth = 0;
		t->current_taken = false;
		atomic_store(&t->state, CKT_TRACE_THREAD_LIVE);
		ckt_trace_writer_start();
	}
	pthread_mutex_unlock(&ckt_trace_lock);
	if (t)
		pthread_setspecific(thread_key, t);
	mine = t;
	errno = saved;
	return t;
}

/* ---- Names */

/* Libraries can be closed: their names are copied. */
__attribute__((noinline, cold)) static uint32_t number_of(struct ckt_trace_site *site)
{
	struct ckt_trace_state *s = &ckt_trace_state;
	pthread_mutex_lock(&ckt_trace_lock);
	uint32_t number = site->number;
	for (uint32_t i = 1; !number && i < s->name_count; i++)
		if (s->categories[i] == site->category && strcmp(s->names[i], site->name) == 0)
			number = i;
	char *name = number || s->name_count == CKT_TRACE_SITES_MAX ? NULL : strdup(site->name);
	if (name) {
		number = s->name_count++;
		s->names[number] = name;
		s->categories[number] = (uint8_t)site->category;
	}
	if (number)
		__atomic_store_n(&site->number, number, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ckt_trace_lock);
	return number;
}

/* ---- Calls */

static struct ckt_trace_record *enter(struct ckt_trace_site *site)
{
	struct ckt_trace_thread *t = mine;
	if (__builtin_expect(!t, 0)) {
		if (!ckt_trace_on)
			return NULL; /* a forked child, or after the end */
		t = join();
		if (!t) {
			atomic_fetch_add(&ckt_trace_state.lost, 1);
			return NULL;
		}
	}
	struct ckt_trace_record *record = &t->current;
	if (t->depth++)
		return record;
	uint32_t number = __atomic_load_n(&site->number, __ATOMIC_ACQUIRE);
	if (__builtin_expect(!number, 0))
		number = number_of(site);
	record->number = number;
	record->flags = 0;
	record->commands = 0;
	record->start = now();
	return record;
}

static void put(struct ckt_trace_thread *t, const struct ckt_trace_record *record)
{
	uint64_t tail = atomic_load_explicit(&t->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&t->head, memory_order_acquire);
	if (tail - head == CKT_TRACE_RING) {
		add(&t->dropped, 1);
		return;
	}
	t->ring[tail % CKT_TRACE_RING] = *record;
	atomic_store_explicit(&t->tail, tail + 1, memory_order_release);
	if ((tail + 1) % (CKT_TRACE_RING / 4) == 0)
		ckt_trace_writer_wake();
}

static void leave(void)
{
	struct ckt_trace_thread *t = mine;
	/* A call that began before the record did, or in a parent. */
	if (!t || !t->depth || --t->depth)
		return;
	struct ckt_trace_record *record = &t->current;
	record->end = now();
	/* Counters of two processors may differ by a few ticks. */
	if (__builtin_expect(record->end < record->start, 0))
		record->end = record->start;
	struct ckt_trace_counter *counter = &t->counters[record->number];
	uint64_t ticks = record->end - record->start;
	add(&counter->calls, 1);
	add(&counter->ticks, ticks);
	if (ticks > atomic_load_explicit(&counter->longest, memory_order_relaxed))
		atomic_store_explicit(&counter->longest, ticks, memory_order_relaxed);
	if (ckt_trace_state.to_file)
		put(t, record);
}

const struct ckt_trace_table ckt_trace_recorder = {
	.version = CKT_TRACE_TABLE_VERSION, .enter = enter, .leave = leave};

/* ---- What the connection and the launch add */

static struct ckt_trace_thread *in_call(void)
{
	struct ckt_trace_thread *t = mine;
	return t && t->depth ? t : NULL;
}

void ckt_trace_command(void)
{
	struct ckt_trace_thread *t = mine ? mine : join();
	if (!t)
		return;
	add(&t->commands, 1);
	t->current.commands++;
}

uint64_t ckt_trace_wait_begin(void)
{
	return now();
}

void ckt_trace_wait_end(uint64_t begun)
{
	struct ckt_trace_thread *t = mine;
	if (!t)
		return;
	add(&t->waits, 1);
	add(&t->wait_ticks, now() - begun);
	t->current.flags |= CKT_TRACE_F_WAITED;
}

void ckt_trace_sent(uint64_t bytes)
{
	atomic_fetch_add_explicit(&ckt_trace_state.bytes_sent, bytes, memory_order_relaxed);
}

void ckt_trace_received(uint64_t bytes)
{
	atomic_fetch_add_explicit(&ckt_trace_state.bytes_received, bytes, memory_order_relaxed);
}

void ckt_trace_launch_put(uint64_t function, const unsigned grid[3], const unsigned block[3],
	unsigned shared_bytes, uint64_t stream)
{
	struct ckt_trace_thread *t = in_call();
	if (!t)
		return;
	struct ckt_trace_record *record = &t->current;
	record->kernel = function;
	memcpy(record->grid, grid, sizeof record->grid);
	memcpy(record->block, block, sizeof record->block);
	record->shared_bytes = shared_bytes;
	record->flags |= CKT_TRACE_F_KERNEL;
	ckt_trace_stream(record, stream);
}

/* ---- Start and end */

static void in_child(void)
{
	__atomic_store_n(&ckt_trace_on, NULL, __ATOMIC_RELAXED);
	mine = NULL;
	ckt_trace_writer_forget();
}

CKT_IN_CHILD(in_child);

void ckt_trace_start(void)
{
	struct ckt_trace_state *s = &ckt_trace_state;
	const char *file = getenv("CRICKET_TRACE"), *stats = getenv("CRICKET_STATS");
	s->to_file = file && *file;
	s->stats = stats && strcmp(stats, "1") == 0;
	if (!s->to_file && !s->stats)
		return;
	if (pthread_key_create(&thread_key, thread_ends))
		return;
	/* quick_exit runs the functions that were registered first last. */
	if (at_quick_exit(ckt_trace_end_now))
		ckt_log_user("out of memory: quick_exit will end the trace without its last calls");
	s->pid = getpid();
	s->counter = ckt_ticks_invariant();
	s->start_ns = ckt_now_ns();
	s->start_ticks = now();
	s->names[0] = "other functions";
	s->name_count = 1;
	__atomic_store_n(&ckt_trace_on, &ckt_trace_recorder, __ATOMIC_RELAXED);
}

static void end(const struct timespec *until)
{
	/* A child of vfork must leave its parent's record as it is. */
	if (!ckt_trace_get() || getpid() != ckt_trace_state.pid)
		return;
	void (*before_end)(const struct timespec *) = ckt_trace_state.before_end;
	if (before_end)
		before_end(until);
	/* Threads that are still inside of calls find their rings. */
	if (!__atomic_exchange_n(&ckt_trace_on, NULL, __ATOMIC_RELAXED))
		return;
	if (!ckt_trace_writer_end(until) || !ckt_trace_state.stats || !ckt_trace_lock_until(until))
		return;
	ckt_trace_summary(STDERR_FILENO);
	pthread_mutex_unlock(&ckt_trace_lock);
}

void ckt_trace_end(void)
{
	end(NULL);
}

void ckt_trace_end_now(void)
{
	int64_t until_ns = ckt_now_ns() + CKT_TRACE_END_NS;
	end(&(struct timespec){.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000});
}
