/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a long operation is doing.
 *
 * Threading: written by whoever does it, one at a time; read by any control thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct ckt_progress {
	const char *_Atomic phase; /* a literal; NULL: nothing */
	_Atomic uint64_t done, total;
};

void ckt_progress_begin(struct ckt_progress *progress, const char *phase, uint64_t total);
void ckt_progress_end(struct ckt_progress *progress);
