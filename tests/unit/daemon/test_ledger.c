/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/ledger.c: leases against the limits of owners and the budgets of GPUs. */
#include "server/daemon/policy/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/identity.h"
#include "tests/unit/suite.h"

#define MIB ((uint64_t)1 << 20)

enum { HOLDERS = 6 };

static struct ckt_ledger ledger;
static struct ckt_ledger_holder holders[HOLDERS];

/* Three of user 1000, in jobs a, a and b; two of user 1001 in job a; one of nobody. */
static void begin(const char *const *lines, size_t count)
{
	static const uint32_t owners[HOLDERS] = {1000, 1000, 1000, 1001, 1001, CKT_UID_UNKNOWN};
	static const char *const jobs[HOLDERS] = {"a", "a", "b", "a", "a", ""};
	ledger = (struct ckt_ledger){0};
	memset(holders, 0, sizeof holders);
	for (int i = 0; i < HOLDERS; i++) {
		holders[i].subject = (struct ckt_limit_subject){"", "", jobs[i], owners[i]};
		ckt_ledger_add(&ledger, &holders[i]);
	}
	for (size_t i = 0; i < count; i++) {
		struct ckt_limit_rule rule;
		char message[256] = "";
		MUST(ckt_limit_rule_parse(lines[i], &rule, message, sizeof message), 0);
		MUST(ckt_limit_table_put(&ledger.limits, &rule), 0);
	}
}

static void end(void)
{
	ckt_limit_table_free(&ledger.limits);
}

static uint64_t grant(int i, unsigned gpu, uint64_t need)
{
	return ckt_ledger_grant(&ledger, &holders[i], gpu, need * MIB, need * MIB, true) / MIB;
}

static uint64_t left(int i, unsigned gpu)
{
	uint64_t bytes = ckt_ledger_left(&ledger, &holders[i].subject, gpu, true);
	return bytes == CKT_LEDGER_NO_LIMIT ? bytes : bytes / MIB;
}

static void test_owners(void)
{
	static const char *const lines[] = {"user=1000 memory=100M", "job=a memory=60M"};
	begin(lines, COUNT(lines));
	IS(left(0, 0), 60);
	IS(left(2, 0), 100);
	IS(left(5, 0), CKT_LEDGER_NO_LIMIT);
	YES(ckt_ledger_limits(&ledger, &holders[0].subject));
	NO(ckt_ledger_limits(&ledger, &holders[5].subject));
	IS(ckt_ledger_total(&ledger, &holders[0].subject, 0), 60 * MIB);
	IS(ckt_ledger_total(&ledger, &holders[5].subject, 0), CKT_LEDGER_NO_LIMIT);
	/* To one granule, over the sessions of the owner. */
	IS(grant(0, 0, 40), 40);
	IS(grant(1, 0, 22), 0);
	IS(grant(1, 0, 20), 20);
	IS(grant(1, 0, 2), 0);
	IS(grant(2, 0, 40), 40);
	IS(grant(2, 0, 2), 0);
	/* Another owner's sessions of the same job have a sum of their own; each GPU, too. */
	IS(grant(3, 0, 60), 60);
	IS(grant(4, 0, 2), 0);
	IS(grant(0, 1, 60), 60);
	IS(grant(5, 0, 1 << 20), 1 << 20);
	/* What one gives another may have. */
	IS(ckt_ledger_give(&holders[0], 0, 10 * MIB), 0);
	IS(grant(1, 0, 12), 0);
	IS(grant(1, 0, 10), 10);
	IS(ckt_ledger_give(&holders[0], 0, 32 * MIB), -EINVAL);
	IS(ckt_ledger_give(&holders[0], 0, MIB), -EINVAL);
	/* A session that ends takes its lease along. */
	ckt_ledger_remove(&ledger, &holders[0]);
	ckt_ledger_remove(&ledger, &holders[0]);
	IS(left(1, 0), 30);
	/* What is in use counts, whatever the limit says. */
	ckt_ledger_force(&holders[1], 0, 90 * MIB);
	IS(left(1, 0), 0);
	IS(left(2, 0), 0);
	end();
}

static void test_steps(void)
{
	static const char *const lines[] = {"user=1000 memory=1G"};
	begin(lines, COUNT(lines));
	/* Larger steps while there is plenty, at the boundary what is needed. */
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, 2 * MIB, 66 * MIB, false), 66 * MIB);
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, 2 * MIB, 66 * MIB, true), 2 * MIB);
	IS(grant(1, 0, 950), 950);
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, 2 * MIB, 66 * MIB, false), 2 * MIB);
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, 6 * MIB, 66 * MIB, false), 0);
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, 4 * MIB, 66 * MIB, false), 4 * MIB);
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, 0, 66 * MIB, false), 0);
	IS(ckt_ledger_grant(&ledger, &holders[0], 0, MIB, MIB, false), 0);
	end();
}

static void test_budget(void)
{
	static const char *const lines[] = {"user=1000 memory=1G"};
	begin(lines, COUNT(lines));
	ledger.context_bytes = CKT_LEDGER_CONTEXT_BYTES;
	ledger.budgets[0] = 2048 * MIB;
	YES(ckt_ledger_limits(&ledger, &holders[5].subject));
	holders[0].contexts = 1;
	IS(ckt_ledger_total(&ledger, &holders[5].subject, 0), 2048 * MIB);
	/* A context counts for the GPU, and not for the owner. */
	IS(left(0, 0), 1024);
	IS(ckt_ledger_left(&ledger, &holders[5].subject, 0, false) / MIB, 2048 - 2 * 570);
	IS(grant(5, 0, 910), 0);
	IS(grant(5, 0, 908), 908);
	IS(grant(5, 0, 2), 0);
	IS(left(0, 0), 0);
	IS(left(0, 1), 1024);
	YES(ckt_ledger_shares(&ledger, &holders[0], &holders[5], 0));
	NO(ckt_ledger_shares(&ledger, &holders[0], &holders[5], 1));
	NO(ckt_ledger_shares(&ledger, &holders[0], &holders[0], 0));
	YES(ckt_ledger_shares(&ledger, &holders[0], &holders[2], 1));
	end();
}

static void test_settle(void)
{
	static const char *const lines[] = {"user=1000 memory=1G"};
	begin(lines, COUNT(lines));
	holders[1].unsettled = holders[4].unsettled = true;
	NO(ckt_ledger_is_settled(&ledger, &holders[0], 0));
	YES(ckt_ledger_is_settled(&ledger, &holders[1], 0));
	YES(ckt_ledger_is_settled(&ledger, &holders[3], 0));
	holders[1].unsettled = false;
	YES(ckt_ledger_is_settled(&ledger, &holders[0], 0));
	end();
}

static void test_sessions(void)
{
	static const char *const lines[] = {"user=1000 sessions=3 gpus=0-2",
		"job=b sessions=2 gpus=2-3", "user=1001 memory=2M"};
	begin(lines, COUNT(lines));
	const struct ckt_limit_rule *full = ckt_ledger_full(&ledger, &holders[0].subject);
	MUST(full != NULL, true);
	IS(full->key, CKT_LIMIT_USER);
	YES(ckt_ledger_full(&ledger, &holders[3].subject) == NULL);
	ckt_ledger_remove(&ledger, &holders[0]);
	YES(ckt_ledger_full(&ledger, &holders[0].subject) == NULL);
	IS(ckt_ledger_gpus(&ledger, &holders[0].subject), 7);
	IS(ckt_ledger_gpus(&ledger, &holders[2].subject), 4);
	IS(ckt_ledger_gpus(&ledger, &holders[3].subject), -1);
	end();
}

/* Asks, gives and ends of all of them in any order: no sum is ever above its limit. */
static void test_any_order(void)
{
	static const char *const lines[] = {
		"user=1000 memory=200M", "job=a memory=100M", "user=1001 memory=90M"};
	begin(lines, COUNT(lines));
	ledger.budgets[0] = 250 * MIB;
	unsigned granted = 0, refused = 0;
	srand(1);
	for (int step = 0; step < 100000; step++) {
		struct ckt_ledger_holder *h = &holders[rand() % HOLDERS];
		uint64_t bytes = (uint64_t)(rand() % 32 + 1) * CKT_LEDGER_GRANULE;
		if (rand() % 2) {
			uint64_t got =
				ckt_ledger_grant(&ledger, h, 0, bytes, 2 * bytes, rand() % 2);
			YES(!got || (got >= bytes && got <= 2 * bytes));
			*(got ? &granted : &refused) += 1;
		} else {
			ckt_ledger_give(h, 0, bytes < h->leased[0] ? bytes : h->leased[0]);
		}
		uint64_t by[HOLDERS], all = 0;
		for (int i = 0; i < HOLDERS; i++)
			all += by[i] = holders[i].leased[0];
		if (all > 250 * MIB || by[0] + by[1] + by[2] > 200 * MIB ||
			by[0] + by[1] > 100 * MIB || by[3] + by[4] > 90 * MIB)
			MUST(step, -1);
	}
	YES(granted > 1000 && refused > 1000);
	end();
}

static void test_budgets(void)
{
	static const char *const wrong[] = {"", "1M", "0", "8", "0=", "=8G", "a=8G", "64=8G",
		"0=8G,0=9G", "0=8G,", "0=8G,9G", "8G,9G", "0=8X"};
	uint64_t budgets[CKT_DEVICES_MAX] = {0};
	IS(ckt_ledger_budgets_parse("5G", budgets), 0);
	IS(budgets[0], 5ll << 30);
	IS(budgets[CKT_DEVICES_MAX - 1], 5ll << 30);
	IS(ckt_ledger_budgets_parse("1=3M,0=8G", budgets), 0);
	IS(budgets[0], 8ll << 30);
	IS(budgets[1], 2 << 20);
	IS(budgets[2], 0);
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ckt_ledger_budgets_parse(wrong[i], budgets), -EINVAL);
}

UNIT_SUITE(ledger, {"owners", test_owners}, {"steps", test_steps}, {"budget", test_budget},
	{"settle", test_settle}, {"sessions", test_sessions}, {"any order", test_any_order},
	{"budgets", test_budgets})
