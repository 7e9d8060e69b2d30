/* SPDX-License-Identifier: Apache-2.0 */
/* A record as one line of the Trace Event Format.  Threading: any; the buffer is the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/trace/trace.h"

enum { CKT_TRACE_EVENT_MAX = 2048 };

struct ckt_trace_text {
	const char *name;
	enum ckt_trace_category category;
	const char *kernel; /* NULL: the id stands for it */
	int pid, tid;
	uint64_t start_ns, duration_ns;
};

/* Writes the event without a comma or an end of line; returns its length. */
size_t ckt_trace_event_put(char buffer[CKT_TRACE_EVENT_MAX], const struct ckt_trace_record *record,
	const struct ckt_trace_text *text);
/* Writes a JSON string with its quotation marks, of at most `most` bytes of text.  Returns the end. */
char *ckt_trace_string_put(char *p, const char *text, size_t most);
