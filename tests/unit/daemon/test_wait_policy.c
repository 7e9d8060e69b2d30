/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/wait_policy.c: the table of policies, and whom each chooses. */
#include "server/daemon/policy/wait_policy.h"

#include <string.h>

#include "tests/unit/suite.h"

static const struct ckt_wait_facts list[] = {
	{.request = 1, .bytes = 10, .left_bytes = 100, .arrived = 1, .used = 5},
	{.request = 2, .bytes = 90, .left_bytes = 100, .arrived = 2, .used = 9},
	{.request = 3, .bytes = 70, .left_bytes = 75, .arrived = 3, .used = 3},
	{.request = 4, .bytes = 90, .left_bytes = 100, .arrived = 4, .used = 8},
};

static unsigned chosen(const char *name)
{
	const struct ckt_wait_policy *policy = ckt_wait_policy_find(name);
	uint64_t random = 1;
	return policy ? policy->choose(&random, list, COUNT(list)) : 99;
}

static void test_choices(void)
{
	IS(chosen("fifo"), 0);
	IS(chosen("best-fit"), 2);
	IS(chosen("recent-use"), 1);
	IS(chosen("none"), 99);
	IS(chosen(""), 99);
}

static void test_random(void)
{
	uint64_t one = 7, other = 7;
	unsigned counts[COUNT(list)] = {0};
	for (int i = 0; i < 4000; i++) {
		unsigned choice = ckt_wait_random.choose(&one, list, COUNT(list));
		MUST(choice < COUNT(list), true);
		IS(choice, ckt_wait_random.choose(&other, list, COUNT(list)));
		counts[choice]++;
	}
	for (size_t i = 0; i < COUNT(list); i++)
		YES(counts[i] > 800 && counts[i] < 1200);
	IS(ckt_wait_random.choose(&one, list, 1), 0);
}

static void test_texts(void)
{
	for (int i = 0; i < CKT_MEMORY_REASONS; i++)
		for (int j = 0; j < i; j++)
			YES(strcmp(ckt_memory_reason_text(i), ckt_memory_reason_text(j)) != 0);
	TEXT(ckt_memory_reason_text(CKT_MEMORY_REASONS), "unknown");
}

UNIT_SUITE(wait_policy, {"choices", test_choices}, {"random", test_random}, {"texts", test_texts})
