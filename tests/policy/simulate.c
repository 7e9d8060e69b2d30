/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints, as JSON, how programs that share a GPU's memory do under each policy, in virtual time
 * (simulation.h).
 *
 *	simulate [MIXES] [MIB]
 *
 * For 4 to 40 programs, MIXES random mixes each (default 50) on a GPU of MIB (default 5120): means
 * over all mixes.  Programs with declared limits; the same with none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/policy/simulation.h"

enum { PROGRAMS_MAX = 40, PROGRAMS_STEP = 4 };

static struct simulation_program programs[PROGRAMS_MAX];

/* False: a ledger that is wrong, or a program that hangs. */
static bool print_row(const struct ckt_wait_policy *policy, unsigned count, unsigned mixes,
	uint64_t mib, int declared, bool last)
{
	double ended = 0, mean = 0, waited = 0, longest = 0, refused = 0;
	bool good = true;
	for (unsigned mix = 0; mix < mixes; mix++) {
		struct simulation_result result;
		simulation_mix(programs, count, mib, declared, mix);
		good &= simulation_run(programs, count, mib, 0, policy, mix, &result) &&
			!result.hung;
		ended += (double)result.ended_ms / mixes;
		mean += result.mean_ms / mixes;
		waited += result.mean_wait_ms / mixes;
		longest += (double)result.longest_wait_ms / mixes;
		refused += (double)result.refused / mixes;
	}
	printf("  {\"policy\": \"%s\", \"programs\": %u, \"declared\": %s, \"all_ended_ms\": %.0f, "
	       "\"mean_life_ms\": %.0f, \"mean_wait_ms\": %.0f, \"longest_wait_ms\": %.0f, "
	       "\"refused\": %.2f}%s\n",
		policy->name, count, declared ? "true" : "false", ended, mean, waited, longest,
		refused, last ? "" : ",");
	return good;
}

int main(int argc, char **argv)
{
	unsigned mixes = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
	uint64_t mib = argc > 2 ? (uint64_t)atoll(argv[2]) : 5120;
	bool good = true;
	if (!mixes || mib < 64) {
		fprintf(stderr, "usage: simulate [MIXES] [MIB]\n");
		return 2;
	}
	printf("[\n");
	for (int declared = 1; declared >= 0; declared--)
		for (unsigned p = 0; ckt_wait_policies[p]; p++)
			for (unsigned count = PROGRAMS_STEP; count <= PROGRAMS_MAX;
				count += PROGRAMS_STEP)
				good &= print_row(ckt_wait_policies[p], count, mixes, mib, declared,
					!declared && !ckt_wait_policies[p + 1] &&
						count == PROGRAMS_MAX);
	printf("]\n");
	return good ? 0 : 1;
}
