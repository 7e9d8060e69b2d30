/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was refused or not executed, in the file that CRICKET_REFUSALS names: one line for each,
 * without control characters.  All processes of a program append to the same file; a line is one
 * write.  Without the variable nothing is written.  Any thread; keeps errno; errors are ignored,
 * because the same text was already said on stderr.
 */
#pragma once

#include <stddef.h>

/* Says the line as ckt_log_user does, and adds it to the file. */
void ckt_refusal_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The last piece of a line whose end has not arrived.  Zeroed at the beginning. */
struct ckt_refusal_scan {
	char line[512];
	size_t used; /* bytes of `line`; more than it holds: the rest of a longer line is skipped */
};

/*
 * Adds to the file those lines of a worker's stderr that name a refusal of the soft GPU.  The text
 * comes from a peer: it may hold anything, in pieces of any size.  Precondition: `scan` is locked.
 */
void ckt_refusal_scan(struct ckt_refusal_scan *scan, const char *text, size_t size);
