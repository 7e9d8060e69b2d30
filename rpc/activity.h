/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a worker has anything to do: a page of memory that it writes and its server reads.
 *
 *	server: makes and seals the file, maps it for reading, sends it with CKT_WORKER_ACTIVITY
 *	worker: maps it for writing; its executor stores when it has nothing to do, and when a command comes
 *
 * A worker that says it is idle may lose the GPU's memory to others, and one that says it is not keeps
 * it for its quantum.  So a lie moves nothing but the liar.  Every field is read and written alone, by
 * relaxed atomics.  Append only; a page is made of zeros.
 */
#pragma once

#include <stdint.h>

enum { CKT_ACTIVITY_PAGE_SIZE = 4096 };

/* Whether the session could do without its worker (--idle-context). */
enum ckt_activity_sleep {
	CKT_ACTIVITY_SLEEP_UNKNOWN, /* an older worker, or nobody looked yet */
	CKT_ACTIVITY_SLEEP_MAY,
	CKT_ACTIVITY_SLEEP_OLD_CLIENT, /* its client does not know how */
	CKT_ACTIVITY_SLEEP_NO_CLIENT,  /* its client is gone, or has not come yet */
	CKT_ACTIVITY_SLEEP_TIED,       /* it shares memory, events or communicators with others */
};

struct ckt_activity {
	/* CLOCK_MONOTONIC: since when it has no command and no unfinished work; 0: it has */
	int64_t idle_since_ns;
	/* enum ckt_activity_sleep, as of then */
	uint32_t sleep;
	/*
	 * 1: it shares memory, events or communicators with others, or could: it leaves the GPU together
	 * with them
	 */
	uint32_t shares;
};
