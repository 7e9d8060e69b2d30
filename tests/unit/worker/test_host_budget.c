/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a session's host memory. */
#include "server/worker/session/host_budget.h"
#include "tests/unit/suite.h"

static void test_limit(void)
{
	uint64_t before = ckt_budget_used();
	ckt_budget_init(before + 1000);
	CU_ASSERT_EQUAL(ckt_budget_left(), 1000);
	CU_ASSERT_TRUE(ckt_budget_charge(600, "one"));
	CU_ASSERT_FALSE(ckt_budget_charge(401, "two"));
	CU_ASSERT_FALSE(ckt_budget_charge(UINT64_MAX, "a size that only claims"));
	CU_ASSERT_FALSE(ckt_budget_charge(UINT64_MAX - before - 600, "another"));
	CU_ASSERT_EQUAL(ckt_budget_used(), before + 600);
	CU_ASSERT_TRUE(ckt_budget_charge(400, "three"));
	CU_ASSERT_EQUAL(ckt_budget_left(), 0);
	CU_ASSERT_TRUE(ckt_budget_charge(0, "nothing"));
	ckt_budget_uncharge(1000);
	CU_ASSERT_EQUAL(ckt_budget_used(), before);
	/* Less than there is already: nothing more fits, and what goes is free again. */
	CU_ASSERT_TRUE(ckt_budget_charge(500, "four"));
	ckt_budget_init(before + 100);
	CU_ASSERT_EQUAL(ckt_budget_left(), 0);
	CU_ASSERT_FALSE(ckt_budget_charge(1, "five"));
	ckt_budget_uncharge(500);
	CU_ASSERT_EQUAL(ckt_budget_left(), 100);
	ckt_budget_init(0);
	CU_ASSERT_EQUAL(ckt_budget_left(), UINT64_MAX);
	CU_ASSERT_TRUE(ckt_budget_charge((uint64_t)1 << 50, "without a limit"));
	ckt_budget_uncharge((uint64_t)1 << 50);
}

UNIT_SUITE(budget, {"limit", test_limit})
