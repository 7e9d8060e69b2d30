/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of the program's calls: CRICKET_TRACE=FILE and CRICKET_STATS=1.
 *
 *	exported function --enter, leave--> record --> the thread's ring --> writer --> FILE
 *	                                           \-> the thread's counters --> summary on stderr
 *
 * Each exported function of our libraries is generated (rpc/gen/emit_trace.py).  It calls the
 * function of our sources, and records the call if somebody asked for it.  A call inside of a call
 * (the runtime calls the driver) adds what it knows to the record of the program's own call.  The
 * calling thread writes to its own ring only.  It never waits: if the ring is full, the record is
 * dropped and counted.  Without the two variables nothing is allocated and no thread is started;
 * each function then tests one pointer.
 *
 * libcuda.so.1 holds the rings and exports a table (CKT_TRACE_TABLE_SYMBOL); libcudart and the
 * shims find it there.  A child of fork records nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ckt_trace_category {
	CKT_TRACE_RUNTIME,
	CKT_TRACE_DRIVER,
	CKT_TRACE_LIBRARY,
	CKT_TRACE_GPU, /* no call: what the GPU did (gpu_track.h) */
};

enum {
	CKT_TRACE_TABLE_VERSION = 1,
	/* Functions with counters of their own; later ones share those of number 0. */
	CKT_TRACE_SITES_MAX = 4096,
};

/* What a record knows. */
enum {
	CKT_TRACE_F_STREAM = 1,
	CKT_TRACE_F_BYTES = 2,
	CKT_TRACE_F_KERNEL = 4,
	CKT_TRACE_F_WAITED = 8,
};

/* A function, in static memory of the library that exports it. */
struct ckt_trace_site {
	const char *name;
	enum ckt_trace_category category;
	uint32_t number; /* 0: none yet */
};

struct ckt_trace_record {
	uint64_t start, end; /* ticks of client/trace/ticks.h */
	uint32_t number;     /* of the function */
	uint32_t flags;
	uint64_t stream; /* the program's handle */
	uint64_t bytes;
	uint64_t kernel; /* id of the function on the wire */
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	uint32_t commands; /* sent by the call */
};

struct ckt_trace_table {
	uint32_t version;
	/*
	 * Begins a call of this thread.  NULL: nothing is recorded.  The record is the thread's and
	 * valid until the call's leave.
	 */
	struct ckt_trace_record *(*enter)(struct ckt_trace_site *site);
	/* Ends the call; every enter has its leave, also if it returned NULL. */
	void (*leave)(void);
};

#define CKT_TRACE_TABLE_SYMBOL "ckt_trace_table"

/* Of this library; NULL: nothing is recorded. */
extern const struct ckt_trace_table *ckt_trace_on __attribute__((visibility("hidden")));

static inline const struct ckt_trace_table *ckt_trace_get(void)
{
	return __atomic_load_n(&ckt_trace_on, __ATOMIC_RELAXED);
}

static inline struct ckt_trace_record *ckt_trace_enter(struct ckt_trace_site *site)
{
	const struct ckt_trace_table *table = ckt_trace_get();
	return table ? table->enter(site) : NULL;
}

static inline void ckt_trace_leave(void)
{
	const struct ckt_trace_table *table = ckt_trace_get();
	if (table)
		table->leave();
}

/* The outer call knows best: an inner one does not change what is known. */
static inline void ckt_trace_stream(struct ckt_trace_record *record, uint64_t stream)
{
	if (record && !(record->flags & CKT_TRACE_F_STREAM)) {
		record->stream = stream;
		record->flags |= CKT_TRACE_F_STREAM;
	}
}

static inline void ckt_trace_bytes(struct ckt_trace_record *record, uint64_t bytes)
{
	if (record && !(record->flags & CKT_TRACE_F_BYTES)) {
		record->bytes = bytes;
		record->flags |= CKT_TRACE_F_BYTES;
	}
}
