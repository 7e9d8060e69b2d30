/* SPDX-License-Identifier: Apache-2.0 */
/* What a long operation is doing; see progress.h. */
#include "checkpoint/progress.h"

#include <stddef.h>

void ckt_progress_begin(struct ckt_progress *progress, const char *phase, uint64_t total)
{
	/*
	 * Under the lock, so that nobody reads the numbers of one phase with the name of another.
	 */
	atomic_store(&progress->phase, NULL);
	atomic_store(&progress->done, 0);
	atomic_store(&progress->total, total);
	atomic_store(&progress->phase, phase);
}

void ckt_progress_end(struct ckt_progress *progress)
{
	atomic_store(&progress->phase, NULL);
}
