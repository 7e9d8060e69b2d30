/* SPDX-License-Identifier: Apache-2.0 */
/* First come, first served. */
#include "server/daemon/policy/wait_policy.h"

static unsigned choose(uint64_t *random, const struct ckt_wait_facts *list, unsigned count)
{
	(void)random, (void)list, (void)count;
	return 0;
}

const struct ckt_wait_policy ckt_wait_fifo = {.name = "fifo", .overtakes_max = 0, .choose = choose};
