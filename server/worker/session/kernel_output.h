/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels print: the driver writes to stdout and stderr of this process, which are pipes;
 * their contents go to the client as OUTPUT calls, before the reply of the wait that made them
 * visible, and before that of a call that failed.
 *
 * A library that can be told to print into a file has a third pipe, so that its text is not taken for
 * a kernel's: that would end durability (docs/durable.md).
 *
 * A thread of its own empties the pipes too, so that a driver that prints more than a pipe holds
 * does not stand still.  While there is no client the text stays in the pipe.  The worker's own log
 * goes to the original stderr.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct ckt_worker;

enum { CKT_PRINTED_PIPES = 3 };

struct ckt_printed_piece {
	char data[32768];
	ssize_t size; /* not sent yet; 0: nothing */
};

struct ckt_printed {
	/* the session has had code or a library that may print; without, no wait looks for text */
	_Atomic bool possible;
	pthread_mutex_t lock;
	/* reading ends: of stdout's, of stderr's, and of the libraries' */
	int pipes[CKT_PRINTED_PIPES];
	struct ckt_printed_piece pieces[CKT_PRINTED_PIPES]; /* read from there */
	char library_file[32]; /* under which a library opens its pipe; empty: there is none */
};

/* Replaces stdout and stderr; the log must go elsewhere before.  0 or -errno. */
int ckt_printed_init(struct ckt_printed *printed);
int ckt_printed_start(struct ckt_worker *worker);
/* Sends the text that is there now.  Never blocks. */
void ckt_printed_send(struct ckt_worker *worker);

/* From now on waits make the driver write out what kernels printed, and send it.  Any thread. */
static inline void ckt_printed_expect(struct ckt_printed *printed)
{
	atomic_store_explicit(&printed->possible, true, memory_order_relaxed);
}

static inline bool ckt_printed_possible(const struct ckt_printed *printed)
{
	return atomic_load_explicit(&printed->possible, memory_order_relaxed);
}
