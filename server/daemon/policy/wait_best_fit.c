/* SPDX-License-Identifier: Apache-2.0 */
/* The request that leaves the least memory unused. */
#include "server/daemon/policy/wait_policy.h"

static uint64_t rest(const struct ckt_wait_facts *facts)
{
	return facts->left_bytes - facts->bytes;
}

static unsigned choose(uint64_t *random, const struct ckt_wait_facts *list, unsigned count)
{
	unsigned best = 0;
	(void)random;
	for (unsigned i = 1; i < count; i++)
		if (rest(&list[i]) < rest(&list[best]))
			best = i;
	return best;
}

const struct ckt_wait_policy ckt_wait_best_fit = {
	.name = "best-fit", .overtakes_max = 16, .choose = choose};
