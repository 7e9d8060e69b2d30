/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/policy/wait_queue.c: requests that wait, and that every program finishes, over a
 * thousand random mixes of programs under every policy.
 */
#include "server/daemon/policy/wait_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/policy/simulation.h"
#include "tests/unit/suite.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum { HOLDERS = 4, MIXES = 1000 };

static struct ckt_ledger ledger;
static struct ckt_wait_queue queue;
static struct ckt_ledger_holder holders[HOLDERS];
static struct {
	uint64_t number;
	bool granted;
	enum ckt_memory_reason reason;
} last;
static unsigned ends, events[8];

static void ended(struct ckt_wait_queue *q, const struct ckt_wait_request *request, bool granted,
	enum ckt_memory_reason reason)
{
	(void)q;
	last.number = request->number;
	last.granted = granted;
	last.reason = reason;
	ends++;
}

static void event(struct ckt_wait_queue *q, const struct ckt_memory_event *e)
{
	(void)q;
	events[e->kind]++;
}

/* Four sessions on a GPU of 5 GiB; maximum: of each, 0: none. */
static void begin(uint64_t maximum, const struct ckt_wait_policy *policy)
{
	static const char *const ids[HOLDERS] = {"a", "b", "c", "d"};
	ledger = (struct ckt_ledger){.budgets = {5 * GIB, 0}};
	memset(holders, 0, sizeof holders);
	memset(events, 0, sizeof events);
	ends = 0;
	ckt_wait_queue_init(&queue, &ledger, policy, 1);
	queue.ended = ended;
	queue.event = event;
	for (uint32_t i = 0; i < HOLDERS; i++) {
		holders[i].subject = (struct ckt_limit_subject){ids[i], "", "", i};
		holders[i].serial = i + 1;
		holders[i].maximum = maximum;
		holders[i].contexts = 1;
		ckt_ledger_add(&ledger, &holders[i]);
		ckt_wait_came(&queue, &holders[i]);
	}
}

static void end(void)
{
	ckt_wait_queue_fini(&queue);
	ckt_limit_table_free(&ledger.limits);
}

static enum ckt_memory_decision ask(int i, uint64_t bytes, uint64_t *ret_number)
{
	enum ckt_memory_reason reason;
	enum ckt_memory_decision decision =
		ckt_wait_ask(&queue, &holders[i], 0, bytes, NULL, ret_number, &reason);
	if (decision != CKT_MEMORY_GRANT)
		last.reason = reason;
	ckt_wait_pump(&queue);
	return decision;
}

static void give(int i, uint64_t bytes)
{
	IS(ckt_ledger_give(&holders[i], 0, bytes), 0);
	ckt_wait_freed(&queue, &holders[i], 0, bytes);
	ckt_wait_pump(&queue);
}

static void gone(int i)
{
	ckt_wait_gone(&queue, &holders[i]);
	ckt_ledger_remove(&ledger, &holders[i]);
	ckt_wait_pump(&queue);
}

/* 2 + 2 GiB each on 5 GiB: with declared limits the second waits with its first half. */
static void test_two(void)
{
	uint64_t number = 0, other = 0;
	begin(4 * GIB, &ckt_wait_fifo);
	IS(ask(0, 2 * GIB, &number), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB, &number), CKT_MEMORY_WAIT);
	IS(last.reason, CKT_MEMORY_UNSAFE);
	IS(ask(0, 2 * GIB, &other), CKT_MEMORY_GRANT);
	IS(ends, 0);
	gone(0);
	IS(ends, 1);
	IS(last.number, number);
	YES(last.granted);
	IS(ask(1, 2 * GIB, &number), CKT_MEMORY_GRANT);
	IS(holders[1].leased[0], 4 * GIB);
	end();
}

/* Without them both get their halves, and the wait that would close the circle is refused. */
static void test_circle(void)
{
	uint64_t first = 0, second = 0;
	begin(0, &ckt_wait_fifo);
	IS(ask(0, 2 * GIB, &first), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB + 2 * MIB, &first), CKT_MEMORY_GRANT);
	IS(ask(0, 2 * GIB, &first), CKT_MEMORY_WAIT);
	IS(ends, 0);
	IS(ask(1, 2 * GIB, &second), CKT_MEMORY_WAIT);
	IS(ends, 1);
	IS(last.number, second);
	NO(last.granted);
	IS(last.reason, CKT_MEMORY_DEADLOCK);
	YES(ckt_wait_is_waiting(&queue, &holders[0]));
	NO(ckt_wait_is_waiting(&queue, &holders[1]));
	/* What the refused one frees is the other's. */
	give(1, 2 * GIB);
	IS(ends, 2);
	IS(last.number, first);
	YES(last.granted);
	end();
}

static void test_refused_at_once(void)
{
	uint64_t number;
	struct ckt_limit_rule rule;
	char message[256];
	begin(0, &ckt_wait_fifo);
	/* Nobody else has anything. */
	IS(ask(0, 4 * GIB, &number), CKT_MEMORY_GRANT);
	IS(ask(0, 1 * GIB + 2 * MIB, &number), CKT_MEMORY_REFUSE);
	IS(last.reason, CKT_MEMORY_TOO_LARGE);
	IS(ask(1, 6 * GIB, &number), CKT_MEMORY_REFUSE);
	IS(last.reason, CKT_MEMORY_TOO_LARGE);
	/* Its owner's limit is not waited for. */
	IS(ckt_limit_rule_parse("session=000000000001 memory=1G", &rule, message, sizeof message),
		0);
	strcpy(rule.name, "b");
	IS(ckt_limit_table_put(&ledger.limits, &rule), 0);
	IS(ask(1, 1 * GIB, &number), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * MIB, &number), CKT_MEMORY_REFUSE);
	IS(last.reason, CKT_MEMORY_TOO_LARGE);
	IS(ends, 0);
	/* One that waits for a session which then ends, and is too large for the rest of the rule. */
	IS(ask(2, 2 * GIB, &number), CKT_MEMORY_WAIT);
	strcpy(rule.name, "c");
	IS(ckt_limit_table_put(&ledger.limits, &rule), 0);
	ckt_wait_pump(&queue);
	IS(ends, 1);
	IS(last.reason, CKT_MEMORY_TOO_LARGE);
	end();
}

static void test_withdrawn(void)
{
	uint64_t numbers[3];
	begin(0, &ckt_wait_fifo);
	IS(ask(0, 5 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB, &numbers[0]), CKT_MEMORY_WAIT);
	queue.now_ms = 7;
	IS(ask(2, 2 * GIB, &numbers[1]), CKT_MEMORY_WAIT);
	/* Asked again after a checkpoint, it is first as before. */
	YES(ckt_wait_withdraw(&queue, numbers[0], true));
	NO(ckt_wait_withdraw(&queue, numbers[0], true));
	IS(ask(1, 2 * GIB, &numbers[2]), CKT_MEMORY_WAIT);
	IS(queue.first->number, numbers[2]);
	IS(queue.first->since_ms, 0);
	/* After a disconnect it is not. */
	YES(ckt_wait_withdraw(&queue, numbers[2], false));
	IS(ask(1, 2 * GIB, &numbers[2]), CKT_MEMORY_WAIT);
	IS(queue.first->number, numbers[1]);
	YES(ckt_wait_refuse(&queue, numbers[1], CKT_MEMORY_TIMEOUT));
	NO(ckt_wait_refuse(&queue, numbers[1], CKT_MEMORY_TIMEOUT));
	IS(last.reason, CKT_MEMORY_TIMEOUT);
	gone(1);
	IS(queue.count, 0);
	IS(ends, 1);
	IS(events[CKT_MEMORY_CAME], 4);
	IS(events[CKT_MEMORY_ASKED], 4);
	IS(events[CKT_MEMORY_WITHDRAWN], 3);
	IS(events[CKT_MEMORY_REFUSED], 1);
	IS(events[CKT_MEMORY_ENDED], 1);
	IS(queue.events, 13);
	end();
}

/* A session with memory passes those in front; one without does not pass the first of fifo. */
static void test_order(void)
{
	uint64_t numbers[3];
	begin(0, &ckt_wait_fifo);
	IS(ask(0, 4 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB, &numbers[0]), CKT_MEMORY_WAIT);
	IS(ask(2, 1 * GIB, &numbers[1]), CKT_MEMORY_WAIT);
	IS(last.reason, CKT_MEMORY_BEHIND);
	IS(ask(0, 512 * MIB, &numbers[2]), CKT_MEMORY_GRANT);
	give(0, 512 * MIB);
	IS(ends, 0);
	give(0, 1 * GIB);
	IS(ends, 1);
	IS(last.number, numbers[0]);
	end();
	/* best-fit lets it pass, but not for ever. */
	begin(0, &ckt_wait_best_fit);
	IS(ask(0, 4 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB, &numbers[0]), CKT_MEMORY_WAIT);
	for (unsigned i = 0; i < ckt_wait_best_fit.overtakes_max; i++) {
		uint64_t other = 0;
		IS(ask(3, 1 * GIB, &other), CKT_MEMORY_GRANT);
		queue.first->overtaken++;
		give(3, 1 * GIB);
	}
	IS(ask(2, 1 * GIB, &numbers[1]), CKT_MEMORY_WAIT);
	IS(last.reason, CKT_MEMORY_BEHIND);
	end();
}

static void test_others(void)
{
	uint64_t number;
	enum ckt_memory_reason reason;
	begin(4 * GIB, &ckt_wait_fifo);
	/* A session that does not wait gets what fits, and is refused what does not. */
	IS(ckt_wait_judge(&queue, &holders[0], 0, 5 * GIB, false, &reason), CKT_MEMORY_GRANT);
	IS(ckt_wait_judge(&queue, &holders[0], 0, 5 * GIB + 2 * MIB, false, &reason),
		CKT_MEMORY_REFUSE);
	/* Without a budget there is nothing to wait for. */
	IS(ckt_wait_judge(&queue, &holders[0], 1, 50 * GIB, true, &reason), CKT_MEMORY_GRANT);
	/* A state that is unsafe from the beginning: all that hold memory wait, and it fits. */
	ckt_ledger_force(&holders[0], 0, 2 * GIB);
	ckt_ledger_force(&holders[1], 0, 2 * GIB);
	IS(ask(0, 512 * MIB, &number), CKT_MEMORY_WAIT);
	IS(last.reason, CKT_MEMORY_UNSAFE);
	IS(ends, 0);
	IS(ask(1, 512 * MIB, &number), CKT_MEMORY_WAIT);
	/* One goes on, and may make room for the other. */
	IS(ends, 1);
	YES(last.granted);
	gone(0);
	IS(ends, 2);
	YES(last.granted);
	end();
}

/* Two threads of one session; several GPUs; a job of several sessions. */
static void test_several(void)
{
	uint64_t numbers[3];
	struct ckt_limit_rule rule;
	char message[256];
	begin(0, &ckt_wait_fifo);
	IS(ask(0, 2 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(0, 1536 * MIB, &numbers[0]), CKT_MEMORY_WAIT);
	IS(ends, 0);
	/* With all that others have, only one of the two would fit. */
	IS(ask(0, 2 * GIB, &numbers[1]), CKT_MEMORY_WAIT);
	IS(ends, 1);
	IS(last.number, numbers[1]);
	NO(last.granted);
	gone(1);
	IS(ends, 2);
	YES(last.granted);
	IS(holders[0].leased[0], 3584 * MIB);
	end();
	begin(0, &ckt_wait_fifo);
	IS(ckt_limit_rule_parse("job=j memory=4G", &rule, message, sizeof message), 0);
	IS(ckt_limit_table_put(&ledger.limits, &rule), 0);
	for (int i = 0; i < 3; i++) {
		holders[i].subject.job = "j";
		holders[i].subject.owner = 1;
	}
	/* One job's sessions may have 4 GiB together: safe with 4 of 5 GiB in any order. */
	IS(ask(0, 1 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(1, 2 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(2, 1 * GIB, &numbers[0]), CKT_MEMORY_GRANT);
	IS(ask(2, 2 * MIB, &numbers[0]), CKT_MEMORY_REFUSE);
	end();
}

/* A context is taken without waiting: only where all can finish beside it. */
static void test_contexts(void)
{
	uint64_t number;
	begin(2 * GIB, &ckt_wait_fifo);
	ledger.context_bytes = 512 * MIB;
	/* 2 GiB of contexts: what is left suffices for one session at a time, and half of another. */
	IS(ask(0, 1 * GIB, &number), CKT_MEMORY_GRANT);
	YES(ckt_wait_admits(&queue, 0));
	IS(ask(1, 1 * GIB, &number), CKT_MEMORY_GRANT);
	NO(ckt_wait_admits(&queue, 0));
	YES(ckt_wait_admits(&queue, 1));
	gone(1);
	YES(ckt_wait_admits(&queue, 0));
	end();
}

/* ---- Mixes */

static void run_mix(unsigned mix, const struct ckt_wait_policy *policy, int declared)
{
	static struct simulation_program programs[40];
	struct simulation_result result;
	unsigned count = 2 + mix % 9, hidden = 0;
	uint64_t budget = mix % 3 ? 5120 : 4096, context = mix % 2 ? 100 : 0;
	if (mix % 100 == 99)
		count = 40;
	simulation_mix(programs, count, budget - context, declared, mix);
	bool good = simulation_run(programs, count, budget, context, policy, mix, &result);
	YES(good);
	IS(result.hung, 0);
	for (unsigned i = 0; i < count; i++)
		hidden += programs[i].refused && programs[i].declared_mib;
	/* Who declares the most that it takes finishes, where all do. */
	if (declared == 1)
		IS(result.finished, count);
	if (!good || result.hung || (declared == 1 && result.finished != count))
		printf("mix %u, %s, declared %d: finished %u, refused %u (%u declared), hung %u\n",
			mix, policy->name, declared, result.finished, result.refused, hidden,
			result.hung);
}

static void test_mixes(void)
{
	for (unsigned i = 0; ckt_wait_policies[i]; i++)
		for (unsigned mix = 0; mix < MIXES; mix++)
			run_mix(mix, ckt_wait_policies[i], 1);
}

/* Programs that declare nothing are refused rather than stuck, and never hang. */
static void test_undeclared_mixes(void)
{
	for (unsigned i = 0; ckt_wait_policies[i]; i++)
		for (unsigned mix = 0; mix < MIXES; mix++)
			run_mix(mix, ckt_wait_policies[i], mix % 2 ? 2 : 0);
}

UNIT_SUITE(wait_queue, {"two", test_two}, {"circle", test_circle},
	{"refused at once", test_refused_at_once}, {"withdrawn", test_withdrawn},
	{"order", test_order}, {"others", test_others}, {"several", test_several},
	{"contexts", test_contexts}, {"mixes", test_mixes},
	{"undeclared mixes", test_undeclared_mixes})
