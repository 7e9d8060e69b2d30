/* SPDX-License-Identifier: Apache-2.0 */
/* The session that last asked for memory, had some granted or freed some. */
#include "server/daemon/policy/wait_policy.h"

static unsigned choose(uint64_t *random, const struct ckt_wait_facts *list, unsigned count)
{
	unsigned best = 0;
	(void)random;
	for (unsigned i = 1; i < count; i++)
		if (list[i].used > list[best].used)
			best = i;
	return best;
}

const struct ckt_wait_policy ckt_wait_recent_use = {
	.name = "recent-use", .overtakes_max = 16, .choose = choose};
