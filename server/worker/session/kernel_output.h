/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels print: the driver writes to stdout and stderr of this process, which are pipes;
 * their contents go to the client as OUTPUT calls, before the reply of the wait that made them
 * visible, and before that of a call that failed.
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

struct ckt_printed_piece {
	char data[32768];
	ssize_t size; /* not sent yet; 0: nothing */
};

struct ckt_printed {
	/* the session has had code or a library that may print; without, no wait looks for text */
	_Atomic bool possible;
	pthread_mutex_t lock;
	int pipes[2];                       /* reading ends of stdout's and stderr's */
	struct ckt_printed_piece pieces[2]; /* read from there */
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
