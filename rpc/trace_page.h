/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cricketctl trace loses when the traced worker ends: a page of memory that both map.
 *
 *	server: makes and seals the file, maps it for reading, sends it with the START of CKT_WORKER_TRACE
 *	worker: maps it for writing, and keeps the number up to date until its end, however that comes
 *
 * The server trusts nothing in the page.  It is written and read by relaxed atomics, and append only.
 */
#pragma once

#include <stdint.h>

enum { CKT_TRACE_PAGE_SIZE = 4096 };

struct ckt_trace_page {
	/* records that no answer has brought, and dropped ones of which none has told */
	uint64_t unread;
};
