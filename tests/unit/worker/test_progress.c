/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/progress.c: a phase begins at 0 of its total, and ends. */
#include <stddef.h>

#include "checkpoint/progress.h"
#include "tests/unit/suite.h"

static void test_phases(void)
{
	struct ckt_progress progress = {.done = 7, .total = 7};
	ckt_progress_begin(&progress, "hash", 100);
	TEXT(progress.phase, "hash");
	IS(progress.done, 0);
	IS(progress.total, 100);
	progress.done = 99;
	ckt_progress_begin(&progress, "save", 5);
	TEXT(progress.phase, "save");
	IS(progress.done, 0);
	IS(progress.total, 5);
	ckt_progress_end(&progress);
	CU_ASSERT_PTR_NULL(progress.phase);
}

UNIT_SUITE(progress, {"phases", test_phases})
