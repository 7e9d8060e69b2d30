/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log as a file, one write(2) for each line.  A thread writes, because a disk that
 * workers write images to can keep a writer waiting for seconds.
 *
 *	ckt_audit_file_put --queue, bounded--> thread: write(2), O_APPEND
 *
 * A line that cannot be queued or written is counted.  The next one that is written carries the
 * count as "lost", and the server's log says why once a minute.
 *
 * Errors: 0 or -errno with a sentence.  Threading: _put from any thread.
 */
#pragma once

#include <stddef.h>

struct ckt_audit_file;

enum { CKT_AUDIT_QUEUE_BYTES = 4 << 20 };

/* The path stays the caller's.  The file is made with mode 0600; no other user may write to it. */
int ckt_audit_file_open(
	const char *path, struct ckt_audit_file **ret_file, char *ret_message, size_t message_size);
/* Waits for queued lines, for two seconds at most. */
void ckt_audit_file_close(struct ckt_audit_file *file);
/* text: a JSON object without a line's end; the callee frees it.  NULL counts as lost. */
void ckt_audit_file_put(struct ckt_audit_file *file, char *text);
/* Opens the path again, for the lines that follow; if that fails, the old file stays and the log says so. */
void ckt_audit_file_reopen(struct ckt_audit_file *file);
