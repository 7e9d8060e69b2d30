/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker counts for the server's --metrics: a page of memory that both map.
 *
 *	server: makes and seals the file, maps it for reading, sends it with CKT_WORKER_METRICS
 *	worker: maps it for writing, and counts; neither a scrape nor a count asks the kernel for anything
 *
 * The server trusts nothing in the page: it reads numbers, and bounds each (session_metrics.h of the
 * daemon).  Every field is read and written alone, by relaxed atomics.  Append only; a page is made
 * of zeros, so that a field that the worker does not know stays 0.
 */
#pragma once

#include <stdint.h>

#include "base/bounds.h"

enum ckt_call_class {
	CKT_CLASS_LAUNCH,
	CKT_CLASS_COPY,
	CKT_CLASS_MEMORY,
	CKT_CLASS_MODULE,
	CKT_CLASS_WAIT,    /* for a stream, an event, a context */
	CKT_CLASS_LIBRARY, /* forwarded libraries */
	CKT_CLASS_OTHER,
	CKT_CALL_CLASSES
};

/* Why a call failed. */
enum ckt_call_failure {
	CKT_FAILURE_INVALID,
	CKT_FAILURE_MEMORY,
	CKT_FAILURE_UNSUPPORTED,
	CKT_FAILURE_EXECUTION, /* on the GPU: a fault of a kernel, a lost device */
	CKT_FAILURE_LIBRARY,
	CKT_FAILURE_OTHER,
	CKT_CALL_FAILURES
};

/* Upper bounds of the buckets: 4 us, and four times the one before; the last has none. */
enum { CKT_LATENCY_BUCKETS = 12, CKT_LATENCY_FIRST_NS = 4000, CKT_METRICS_PAGE_SIZE = 4096 };

/* Counts since the worker got its page. */
struct ckt_session_metrics {
	uint64_t state; /* enum ckt_session_state */
	uint64_t calls[CKT_CALL_CLASSES], waited[CKT_CALL_CLASSES];
	uint64_t bytes_in[CKT_CALL_CLASSES], bytes_out[CKT_CALL_CLASSES];
	uint64_t failures[CKT_CALL_FAILURES];
	/* of waited calls: from the beginning of their execution until their reply is written */
	uint64_t latency_ns[CKT_CALL_CLASSES];
	uint64_t latency[CKT_CALL_CLASSES][CKT_LATENCY_BUCKETS];
	uint64_t memory_bytes[CKT_DEVICES_MAX]; /* now, by the server's number of the GPU */
};

_Static_assert(sizeof(struct ckt_session_metrics) <= CKT_METRICS_PAGE_SIZE, "it fits the file");
