/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/wait_safety.c: the banker's algorithm on small states. */
#include "server/daemon/policy/wait_safety.h"

#include <string.h>

#include "tests/unit/suite.h"

#define MIB ((uint64_t)1 << 20)

enum { HOLDERS = 3 };

static struct ckt_ledger ledger;
static struct ckt_ledger_holder holders[HOLDERS];
static struct ckt_wait_model model;

/* Three sessions on a GPU of 100 MiB, which have 20 each and may have so much. */
static void begin(uint64_t maximum_mib)
{
	static const char *const ids[HOLDERS] = {"a", "b", "c"};
	ledger = (struct ckt_ledger){.budgets = {100 * MIB, 0, 50 * MIB}};
	memset(holders, 0, sizeof holders);
	for (uint32_t i = 0; i < HOLDERS; i++) {
		holders[i].subject = (struct ckt_limit_subject){ids[i], "", "j", i};
		holders[i].maximum = maximum_mib * MIB;
		holders[i].leased[0] = 20 * MIB;
		holders[i].contexts = 1;
		ckt_ledger_add(&ledger, &holders[i]);
	}
}

static void make(void)
{
	ckt_wait_model_free(&model);
	MUST(ckt_wait_model_make(&model, &ledger), 0);
}

static void end(void)
{
	ckt_wait_model_free(&model);
	ckt_limit_table_free(&ledger.limits);
}

static bool safe(int i, unsigned gpu, uint64_t mib)
{
	return ckt_wait_model_is_safe(&model, &holders[i], gpu, mib * MIB, 0);
}

static void test_declared(void)
{
	begin(60);
	make();
	/* 40 are left, which is what each may still ask for. */
	YES(safe(0, 0, 40));
	YES(safe(0, 0, 2));
	ckt_wait_model_grant(&model, &holders[0], 0, 2 * MIB, 0);
	NO(safe(1, 0, 2));
	YES(safe(0, 0, 38));
	/* Without a budget all is safe, and so is who is not in the ledger. */
	YES(safe(1, 1, 1000));
	struct ckt_ledger_holder stranger = {0};
	YES(ckt_wait_model_is_safe(&model, &stranger, 0, 1000 * MIB, 0));
	end();
	/* More than the GPU has counts as what it has. */
	begin(1000);
	make();
	NO(safe(0, 0, 2));
	end();
}

static void test_undeclared(void)
{
	uint64_t most;
	begin(0);
	make();
	NO(ckt_wait_declared(&ledger, &holders[0], &most));
	/* They are taken to finish with what they have, or wait for. */
	YES(safe(0, 0, 40));
	ckt_wait_model_want(&model, &holders[1], 0, 50 * MIB);
	YES(safe(0, 0, 40));
	ckt_wait_model_want(&model, &holders[2], 0, 50 * MIB);
	YES(safe(0, 0, 30));
	IS(ckt_wait_model_find_stuck(&model), 0);
	ckt_wait_model_want(&model, &holders[0], 0, 50 * MIB);
	IS(ckt_wait_model_find_stuck(&model), 3);
	YES(ckt_wait_model_is_stuck(&model, &holders[0]));
	/* As much as there is not; never less by counting on. */
	ckt_wait_model_want(&model, &holders[0], 0, UINT64_MAX);
	IS(ckt_wait_model_find_stuck(&model), 3);
	end();
}

/* A job's sessions have their limit together; of two owners each its own. */
static void test_rules(void)
{
	struct ckt_limit_rule rule;
	char message[128];
	uint64_t most;
	begin(0);
	MUST(ckt_limit_rule_parse("job=j memory=60M", &rule, message, sizeof message), 0);
	MUST(ckt_limit_table_put(&ledger.limits, &rule), 0);
	YES(ckt_wait_declared(&ledger, &holders[0], &most));
	IS(most, 60 * MIB);
	make();
	IS(model.owner_count, 3);
	YES(safe(0, 0, 40));
	ckt_wait_model_grant(&model, &holders[0], 0, 10 * MIB, 0);
	NO(safe(1, 0, 10));
	for (int i = 0; i < HOLDERS; i++)
		holders[i].subject.owner = 1;
	make();
	IS(model.owner_count, 1);
	/* 60 are used: none may ask for more, so all can finish. */
	ckt_wait_model_grant(&model, &holders[0], 0, 10 * MIB, 0);
	YES(safe(1, 0, 10));
	end();
}

/* Of two GPUs each has one session's memory, and the other's wish. */
static void test_gpus(void)
{
	begin(0);
	ledger.context_bytes = 10 * MIB;
	holders[1].leased[0] = 0;
	holders[1].leased[2] = 40 * MIB;
	holders[1].contexts = 4;
	holders[2].leased[0] = 30 * MIB;
	make();
	IS(model.gpu_count, 2);
	ckt_wait_model_want(&model, &holders[0], 2, 10 * MIB);
	/* With its context: 20 of 0. */
	IS(ckt_wait_model_find_stuck(&model), 0);
	ckt_wait_model_want(&model, &holders[1], 0, 70 * MIB);
	IS(ckt_wait_model_find_stuck(&model), 2);
	NO(ckt_wait_model_is_stuck(&model, &holders[2]));
	end();
}

static void test_contexts(void)
{
	begin(60);
	ledger.context_bytes = 10 * MIB;
	make();
	/* 10 are left, and nobody can finish: one more context changes nothing. */
	YES(ckt_wait_model_admits(&model, 0));
	for (int i = 0; i < HOLDERS; i++)
		holders[i].maximum = 30 * MIB;
	make();
	NO(ckt_wait_model_admits(&model, 0));
	YES(ckt_wait_model_admits(&model, 1));
	holders[0].maximum = 20 * MIB;
	make();
	YES(ckt_wait_model_admits(&model, 0));
	end();
}

UNIT_SUITE(wait_safety, {"declared", test_declared}, {"undeclared", test_undeclared},
	{"rules", test_rules}, {"gpus", test_gpus}, {"contexts", test_contexts})
