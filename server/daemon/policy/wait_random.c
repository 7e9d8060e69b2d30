/* SPDX-License-Identifier: Apache-2.0 */
/* Any of them, with equal chances. */
#include "server/daemon/policy/wait_policy.h"

/* xorshift: chances are all that is asked for, nobody gains by foreseeing them. */
static uint64_t next(uint64_t *random)
{
	uint64_t x = *random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*random = x;
	return x;
}

static unsigned choose(uint64_t *random, const struct ckt_wait_facts *list, unsigned count)
{
	(void)list;
	return (unsigned)(next(random) >> 32) % count;
}

const struct ckt_wait_policy ckt_wait_random = {
	.name = "random", .overtakes_max = 16, .choose = choose};
