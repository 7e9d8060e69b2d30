/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints, as JSON, how two copies of a program do that swap each other out, in virtual time
 * (quanta.h): nvshare's four mixes, small and big, with 50% and 90% of their time on the GPU.
 *
 *	simulate_quanta [GB_A_SECOND [one-way]]
 *
 * one-way: nobody comes in while another one leaves.
 *
 * The second copy begins a second after the first.  The ratio is the time together over the time of one after the other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/policy/quanta.h"

#define SECOND INT64_C(1000000000)
#define GIB ((uint64_t)1 << 30)

static const struct {
	const char *name;
	uint64_t bytes;
	int64_t gpu_s, own_s;
} mixes[] = {{"small-50", 4 * GIB, 10, 10}, {"small-90", 4 * GIB, 18, 2},
	{"big-50", 14 * GIB, 10, 10}, {"big-90", 14 * GIB, 18, 2}};

int main(int argc, char **argv)
{
	double rate = (argc > 1 ? atof(argv[1]) : 50) * 1e9;
	if (rate <= 0) {
		fprintf(stderr, "usage: simulate_quanta [GB_A_SECOND [one-way]]\n");
		return 2;
	}
	printf("[\n");
	for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
		struct quanta_program programs[2];
		struct quanta_result result;
		for (unsigned k = 0; k < 2; k++)
			programs[k] = (struct quanta_program){.bytes = mixes[i].bytes,
				.gpu_ns = mixes[i].gpu_s * SECOND,
				.own_ns = mixes[i].own_s * SECOND,
				.rounds = 10,
				.begins_ns = k * SECOND,
				.follows = argc < 3};
		quanta_run(programs, 2, 16 * GIB, rate, 60 * SECOND, 2000 * SECOND, &result);
		printf("  {\"mix\": \"%s\", \"seconds\": %.1f, \"ratio\": %.3f, \"outs\": %llu, "
		       "\"switching\": %.3f, \"longest_wait_s\": %.1f}%s\n",
			mixes[i].name, (double)result.ended_ns / 1e9,
			(double)result.ended_ns / (double)quanta_alone_ns(programs, 2),
			(unsigned long long)result.outs, result.switching,
			(double)(programs[0].longest_wait_ns > programs[1].longest_wait_ns
					? programs[0].longest_wait_ns
					: programs[1].longest_wait_ns) /
				1e9,
			i + 1 < sizeof mixes / sizeof *mixes ? "," : "");
	}
	printf("]\n");
	return 0;
}
