/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints, as JSON, how programs that share a GPU's memory do under each policy, in virtual time
 * (simulation.h).
 *
 *	simulate [MIXES] [MIB]
 *	simulate --sessions N --gpus N [--seed N]
 *	simulate --replay FILE [--policy NAME]
 *
 * The first: for 4 to 40 programs, MIXES random mixes each (default 50) on a GPU of MIB (default
 * 5120): means over all mixes.  Programs with declared limits; the same with none.
 *
 * The second: N sessions spread over N GPUs of 5120 MiB, under each policy of waits, and in turns.
 *
 * The third: the sessions of a record (replay.h) under one policy, or each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/policy/replay.h"
#include "tests/policy/simulation.h"
#include "tests/policy/turn_simulation.h"

enum { PROGRAMS_MAX = 64, PROGRAMS_STEP = 4, MIX_PROGRAMS_MAX = 40, GPU_MIB = 5120 };

static struct simulation_program programs[PROGRAMS_MAX];

/* ---- Mixes */

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

static bool run_mixes(unsigned mixes, uint64_t mib)
{
	bool good = true;
	printf("[\n");
	for (int declared = 1; declared >= 0; declared--)
		for (unsigned p = 0; ckt_wait_policies[p]; p++)
			for (unsigned count = PROGRAMS_STEP; count <= MIX_PROGRAMS_MAX;
				count += PROGRAMS_STEP)
				good &= print_row(ckt_wait_policies[p], count, mixes, mib, declared,
					!declared && !ckt_wait_policies[p + 1] &&
						count == MIX_PROGRAMS_MAX);
	printf("]\n");
	return good;
}

/* ---- Crowds */

static unsigned count_on(unsigned sessions, unsigned gpus, unsigned gpu)
{
	return sessions / gpus + (gpu < sessions % gpus);
}

static bool print_crowd(
	const struct ckt_wait_policy *policy, unsigned sessions, unsigned gpus, uint64_t seed)
{
	struct simulation_result sum = {0};
	bool good = true;
	for (unsigned gpu = 0; gpu < gpus; gpu++) {
		unsigned count = count_on(sessions, gpus, gpu);
		struct simulation_result one;
		simulation_mix(programs, count, GPU_MIB, 1, seed + gpu);
		good &= simulation_run(programs, count, GPU_MIB, 0, policy, seed + gpu, &one);
		sum.finished += one.finished;
		sum.refused += one.refused;
		sum.hung += one.hung;
		sum.mean_ms += count ? one.mean_ms * count / sessions : 0;
		sum.mean_wait_ms += count ? one.mean_wait_ms * count / sessions : 0;
		sum.grants += one.grants;
		sum.events += one.events;
		if (one.ended_ms > sum.ended_ms)
			sum.ended_ms = one.ended_ms;
		if (one.longest_wait_ms > sum.longest_wait_ms)
			sum.longest_wait_ms = one.longest_wait_ms;
	}
	printf("  {\"policy\": \"%s\", \"sessions\": %u, \"gpus\": %u, \"finished\": %u, "
	       "\"refused\": %u, \"hung\": %u, \"all_ended_ms\": %lld, \"mean_life_ms\": %.0f, "
	       "\"mean_wait_ms\": %.0f, \"longest_wait_ms\": %lld, \"grants\": %llu, "
	       "\"events\": %llu},\n",
		policy->name, sessions, gpus, sum.finished, sum.refused, sum.hung,
		(long long)sum.ended_ms, sum.mean_ms, sum.mean_wait_ms,
		(long long)sum.longest_wait_ms, (unsigned long long)sum.grants,
		(unsigned long long)sum.events);
	return good && !sum.hung;
}

static bool print_turns(unsigned sessions, unsigned gpus, uint64_t seed)
{
	struct turn_simulation_result result = {0};
	for (unsigned gpu = 0; gpu < gpus; gpu++)
		turn_simulation_run(count_on(sessions, gpus, gpu), seed + gpu, &result);
	printf("  {\"policy\": \"turns\", \"sessions\": %u, \"gpus\": %u, \"finished\": %u, "
	       "\"all_ended_ms\": %lld, \"mean_wait_ms\": %.0f, \"longest_wait_ms\": %lld, "
	       "\"turns\": %llu}\n",
		sessions, gpus, result.finished, (long long)result.ended_ms,
		result.waits ? result.waited_ms / (double)result.waits : 0,
		(long long)result.longest_wait_ms, (unsigned long long)result.turns);
	return result.finished == sessions;
}

static bool run_crowd(unsigned sessions, unsigned gpus, uint64_t seed)
{
	bool good = true;
	printf("[\n");
	for (unsigned p = 0; ckt_wait_policies[p]; p++)
		good &= print_crowd(ckt_wait_policies[p], sessions, gpus, seed);
	good &= print_turns(sessions, gpus, seed);
	printf("]\n");
	return good;
}

/* ---- Records */

struct sums {
	int64_t waited_ms, recorded_wait_ms, ended_ms;
	unsigned refused;
	bool first;
};

static void print_sessions(const struct replay *replay, unsigned gpu,
	const struct simulation_program *list, struct sums *sums)
{
	unsigned n = 0;
	for (unsigned i = 0; i < replay->count; i++) {
		const struct replay_session *s = &replay->sessions[i];
		if (s->gpu != gpu)
			continue;
		const struct simulation_program *program = &list[n++];
		printf("%s    {\"session\": \"%s\", \"gpu\": %u, \"arrives_ms\": %lld, "
		       "\"ended_ms\": %lld, \"waits\": %u, \"waited_ms\": %lld, "
		       "\"refused\": %s, \"recorded_ended_ms\": %lld, "
		       "\"recorded_waited_ms\": %lld}",
			sums->first ? "" : ",\n", s->id, gpu, (long long)program->arrives_ms,
			(long long)program->ended_ms, program->waits, (long long)program->waited_ms,
			program->refused ? "true" : "false", (long long)s->ended_ms,
			(long long)s->waited_ms);
		sums->first = false;
		sums->waited_ms += program->waited_ms;
		sums->recorded_wait_ms += s->waited_ms;
		sums->refused += program->refused;
		if (program->ended_ms > sums->ended_ms)
			sums->ended_ms = program->ended_ms;
	}
}

static bool replay_gpu(const struct replay *replay, unsigned gpu,
	const struct ckt_wait_policy *policy, struct sums *sums)
{
	struct simulation_program *list = calloc(replay->count, sizeof *list);
	struct simulation_result result;
	unsigned count = 0;
	for (unsigned i = 0; list && i < replay->count; i++)
		if (replay->sessions[i].gpu == gpu)
			list[count++] = replay->sessions[i].program;
	bool good = list &&
		(!count ||
			simulation_run(list, count, replay->budgets_mib[gpu], replay->context_mib,
				policy, 1, &result));
	if (good && count)
		print_sessions(replay, gpu, list, sums);
	free(list);
	return good;
}

static bool replay_all(const struct replay *replay, const struct ckt_wait_policy *policy, bool last)
{
	struct sums sums = {.first = true};
	bool good = true;
	printf("  {\"policy\": \"%s\", \"sessions\": [\n", policy->name);
	for (unsigned gpu = 0; gpu < REPLAY_GPUS_MAX; gpu++)
		if (replay->budgets_mib[gpu])
			good &= replay_gpu(replay, gpu, policy, &sums);
	printf("],\n   \"all_ended_ms\": %lld, \"waited_ms\": %lld, \"recorded_waited_ms\": %lld, "
	       "\"refused\": %u, \"missed_events\": %llu}%s\n",
		(long long)sums.ended_ms, (long long)sums.waited_ms,
		(long long)sums.recorded_wait_ms, sums.refused, (unsigned long long)replay->missed,
		last ? "" : ",");
	return good;
}

static bool run_replay(const char *path, const struct ckt_wait_policy *policy)
{
	struct replay replay = {0};
	char message[512] = "";
	FILE *file = fopen(path, "re");
	bool good = file && replay_read(file, &replay, message, sizeof message);
	if (!good)
		fprintf(stderr, "simulate: cannot replay %s: %s\n", path,
			file ? message : "it cannot be opened");
	if (file)
		fclose(file);
	if (good)
		printf("[\n");
	for (unsigned p = 0; good && ckt_wait_policies[p]; p++)
		if (!policy || policy == ckt_wait_policies[p])
			good &= replay_all(
				&replay, ckt_wait_policies[p], policy || !ckt_wait_policies[p + 1]);
	if (good)
		printf("]\n");
	replay_free(&replay);
	return good;
}

/* ---- The command line */

static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return NULL;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: simulate [MIXES] [MIB]\n"
		"       simulate --sessions N --gpus N [--seed N]\n"
		"       simulate --replay FILE [--policy NAME]\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *file = option(argc, argv, "--replay"), *name = option(argc, argv, "--policy");
	const char *sessions = option(argc, argv, "--sessions"),
		   *gpus = option(argc, argv, "--gpus"), *seed = option(argc, argv, "--seed");
	const struct ckt_wait_policy *policy = name ? ckt_wait_policy_find(name) : NULL;
	if (file)
		return name && !policy ? usage() : !run_replay(file, policy);
	if (sessions || gpus) {
		long long n = sessions ? atoll(sessions) : 0, g = gpus ? atoll(gpus) : 0;
		if (n < 1 || n > 1000000 || g < 1 || g > 100000 || (n - 1) / g + 1 > PROGRAMS_MAX)
			return usage();
		return !run_crowd((unsigned)n, (unsigned)g, seed ? (uint64_t)atoll(seed) : 1);
	}
	unsigned mixes = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
	uint64_t mib = argc > 2 ? (uint64_t)atoll(argv[2]) : GPU_MIB;
	if (!mixes || mib < 64)
		return usage();
	return run_mixes(mixes, mib) ? 0 : 1;
}
