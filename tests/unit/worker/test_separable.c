/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/freeze/separable.h, in a worker whose session is tied to nobody; with communicators:
 * test_nccl_peers.c.
 */
#include <string.h>

#include "checkpoint/freeze/separable.h"
#include "tests/unit/worker/inside.h"

static void test_free(void)
{
	char text[64] = "as it was";
	IS(ckt_separable_check(&ckt_worker, text, sizeof text), 0);
	TEXT(text, "as it was");
}

UNIT_SUITE(worker_alone, {"a session that is tied to nobody", test_free})
