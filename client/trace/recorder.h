/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuda.so.1 holds of the record of calls: a ring and counters for each thread, the names of
 * functions and kernels, and the threads' list.  See trace.h for the way of a record.
 *
 * Threads: the owner of a struct ckt_trace_thread writes it without a lock; `tail` and the counters
 * are atomic for who reads them meanwhile.  The list of threads changes under ckt_trace_lock, which
 * the writer holds while it reads rings.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "base/until.h"
#include "client/trace/trace.h"

enum {
	CKT_TRACE_RING = 16384, /* records; a power of two */
	CKT_TRACE_THREADS_MAX = 1024,
	CKT_TRACE_KERNELS_MAX = 65536,
	CKT_TRACE_END_NS = 500000000,
};

/* Calls of one function by one thread. */
struct ckt_trace_counter {
	_Atomic uint64_t calls, ticks, longest;
};

enum ckt_trace_thread_state { CKT_TRACE_THREAD_LIVE, CKT_TRACE_THREAD_ENDED };

struct ckt_trace_thread {
	struct ckt_trace_thread *next;
	_Atomic int state;
	int tid;
	bool named; /* the file knows the thread's name */
	unsigned depth;
	bool current_taken; /* `current` is a call that has begun */
	struct ckt_trace_record current;
	_Atomic uint64_t commands, waits, wait_ticks, dropped;
	/* Records between head (the writer's) and tail (the thread's). */
	_Atomic uint64_t head, tail;
	uint64_t reported; /* of dropped, in the file */
	struct ckt_trace_counter counters[CKT_TRACE_SITES_MAX];
	struct ckt_trace_record ring[CKT_TRACE_RING];
};

struct ckt_trace_state {
	_Atomic bool to_file;
	bool stats;
	bool counter; /* ticks are the processor's */
	int pid;      /* of the process that records; a child of vfork has the same memory */
	uint64_t start_ticks;
	int64_t start_ns;
	struct ckt_trace_thread *threads;
	unsigned thread_count;
	_Atomic uint64_t lost; /* calls of threads beyond the most */
	_Atomic uint64_t bytes_sent, bytes_received;
	/*
	 * NULL: nothing.  Fetches what the GPU did last, before the file ends; until: as of
	 * ckt_trace_lock_until.
	 */
	void (*_Atomic before_end)(const struct timespec *until);
	uint64_t gpu_dropped; /* under ckt_trace_lock */
	const char *names[CKT_TRACE_SITES_MAX];
	uint8_t categories[CKT_TRACE_SITES_MAX];
	uint32_t name_count;
};

extern struct ckt_trace_state ckt_trace_state;
extern pthread_mutex_t ckt_trace_lock;

/* ---- For libcuda.so.1 and the connection */

/*
 * Reads CRICKET_TRACE and CRICKET_STATS.  Starts no thread and opens no file: the first recorded
 * call does.
 */
void ckt_trace_start(void);
/*
 * Writes what is left, closes the file and prints the summary.  Once; later calls do nothing, and so
 * do calls in a child.
 */
void ckt_trace_end(void);
/*
 * The same for _exit, which a program may call in a signal handler.  Allocates nothing.  If the
 * interrupted thread has a lock, gives up after CKT_TRACE_END_NS: the file then has no end.
 */
void ckt_trace_end_now(void);
/* A command was encoded for the worker by the calling thread. */
void ckt_trace_command(void);
/* The calling thread waited for this many ticks. */
uint64_t ckt_trace_wait_begin(void);
void ckt_trace_wait_end(uint64_t begun);
void ckt_trace_sent(uint64_t bytes);
void ckt_trace_received(uint64_t bytes);
void ckt_trace_launch_put(uint64_t function, const unsigned grid[3], const unsigned block[3],
	unsigned shared_bytes, uint64_t stream);
/* The kernel of the launch that the calling thread is in. */
static inline void ckt_trace_launch(uint64_t function, const unsigned grid[3],
	const unsigned block[3], unsigned shared_bytes, uint64_t stream)
{
	if (__builtin_expect(ckt_trace_get() != NULL, 0))
		ckt_trace_launch_put(function, grid, block, shared_bytes, stream);
}
/* Remembers a kernel's name; copies it. */
void ckt_trace_kernel(uint64_t function, const char *name);

/* ---- kernels.c */
/* NULL: unknown.  Precondition: ckt_trace_lock held; valid while it is. */
const char *ckt_trace_kernel_name(uint64_t function);

/* Takes ckt_trace_lock.  until: gives up at that time of CLOCK_MONOTONIC; NULL: never. */
static inline bool ckt_trace_lock_until(const struct timespec *until)
{
	return ckt_lock_until(&ckt_trace_lock, until);
}

/* ---- writer.c */
/* Opens the file and starts the thread.  Precondition: ckt_trace_lock held. */
void ckt_trace_writer_start(void);
/* Wakes the writer because a ring fills. */
void ckt_trace_writer_wake(void);
/* Ends the thread and the file.  until: as of ckt_trace_lock_until.  False: gave up. */
bool ckt_trace_writer_end(const struct timespec *until);
/*
 * For events that are no calls (gpu_track.c).  Precondition of all: ckt_trace_lock held; of all but
 * open: the file is open.  begin: where CKT_TRACE_EVENT_MAX bytes of an event go; commit: it has this
 * size.  name: of a process or a thread.  dropped: records were, just now.
 */
bool ckt_trace_writer_open(void);
char *ckt_trace_writer_begin(void);
void ckt_trace_writer_commit(size_t size);
void ckt_trace_writer_name(const char *what, int pid, int tid, const char *name);
void ckt_trace_writer_dropped(int pid, int tid, uint64_t records);
/* In a child of fork: forgets the file, which is the parent's. */
void ckt_trace_writer_forget(void);

/* ---- summary.c */
/* Prints the summary to the descriptor.  Allocates nothing.  Precondition: ckt_trace_lock held. */
void ckt_trace_summary(int fd);
