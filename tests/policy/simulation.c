/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in virtual time; see simulation.h. */
#include "tests/policy/simulation.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

struct run {
	struct simulation_program *programs;
	unsigned count;
	struct ckt_ledger ledger;
	struct ckt_wait_queue queue;
	struct simulation_result *result;
	bool good;
};

/* ---- Mixes */

uint64_t simulation_draw(uint64_t *state, uint64_t below)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

/* Grows in some blocks, with frees in between, and keeps below its maximum. */
static void make_steps(struct simulation_program *program, uint64_t maximum_mib, uint64_t *state)
{
	int64_t held = 0;
	unsigned allocs = 2 + (unsigned)simulation_draw(state, 5);
	for (unsigned i = 0; i < allocs && program->step_count < SIMULATION_STEPS_MAX - 2; i++) {
		int64_t room = (int64_t)maximum_mib - held;
		int64_t mib = i + 1 == allocs
			? room
			: (int64_t)simulation_draw(state, (uint64_t)room / 2 + 1);
		mib -= mib % 2;
		if (mib <= 0)
			continue;
		program->steps[program->step_count++] =
			(struct simulation_step){mib, 10 + (int64_t)simulation_draw(state, 990)};
		held += mib;
		if (simulation_draw(state, 4) || held < 4)
			continue;
		int64_t freed = (int64_t)simulation_draw(state, (uint64_t)held / 2) / 2 * 2;
		program->steps[program->step_count++] =
			(struct simulation_step){-freed, (int64_t)simulation_draw(state, 100)};
		held -= freed;
	}
	program->steps[program->step_count++] =
		(struct simulation_step){0, 100 + (int64_t)simulation_draw(state, 4000)};
}

void simulation_mix(struct simulation_program *programs, unsigned count, uint64_t budget_mib,
	int declared, uint64_t seed)
{
	uint64_t state = seed * 2 + 1;
	for (unsigned i = 0; i < count; i++) {
		struct simulation_program *program = &programs[i];
		uint64_t most = budget_mib / 16 + simulation_draw(&state, budget_mib / 4 * 3);
		most -= most % 2;
		*program = (struct simulation_program){
			.arrives_ms = (int64_t)simulation_draw(&state, 250 * count),
			.declared_mib = declared == 1 || (declared == 2 && i % 2) ? most : 0};
		make_steps(program, most, &state);
	}
}

/* ---- Running */

static void check(struct run *run)
{
	run->good &= ckt_ledger_budget_used(&run->ledger, 0) <= run->ledger.budgets[0];
}

static void leave(struct run *run, struct simulation_program *program)
{
	program->ended_ms = run->queue.now_ms;
	program->here = false;
	ckt_wait_gone(&run->queue, &program->holder);
	ckt_ledger_remove(&run->ledger, &program->holder);
	ckt_wait_pump(&run->queue);
}

/* Of a request that waited. */
static void ended(struct ckt_wait_queue *queue, const struct ckt_wait_request *request,
	bool granted, enum ckt_memory_reason reason)
{
	struct simulation_program *program = request->data;
	struct run *run = queue->data;
	program->waiting = false;
	program->granted = granted;
	program->refused = !granted;
	program->reason = reason;
	program->waited_ms += queue->now_ms - program->since_ms;
	program->due_ms = queue->now_ms;
	run->result->grants += granted;
	check(run);
}

/* False: it waits, or was refused. */
static bool allocate(struct run *run, struct simulation_program *program, uint64_t bytes)
{
	uint64_t number;
	enum ckt_memory_decision decision;
	if (program->granted) {
		program->granted = false;
		return true;
	}
	program->waiting = true;
	program->since_ms = run->queue.now_ms;
	decision = ckt_wait_ask(
		&run->queue, &program->holder, 0, bytes, program, &number, &program->reason);
	if (decision != CKT_MEMORY_WAIT) {
		program->waiting = false;
		program->refused = decision == CKT_MEMORY_REFUSE;
		check(run);
		return decision == CKT_MEMORY_GRANT;
	}
	program->waits++;
	ckt_wait_pump(&run->queue);
	return false;
}

static void step(struct run *run, struct simulation_program *program)
{
	const struct simulation_step *s = &program->steps[program->step];
	if (program->refused) {
		leave(run, program);
		return;
	}
	if (program->step == program->step_count) {
		program->finished = true;
		leave(run, program);
		return;
	}
	if (s->mib > 0 && !allocate(run, program, (uint64_t)s->mib * MIB)) {
		program->due_ms = run->queue.now_ms;
		return;
	}
	program->step++;
	program->due_ms = run->queue.now_ms + s->ms;
	if (s->mib < 0) {
		run->good &= !ckt_ledger_give(&program->holder, 0, (uint64_t)-s->mib * MIB);
		ckt_wait_freed(&run->queue, &program->holder, 0, (uint64_t)-s->mib * MIB);
		ckt_wait_pump(&run->queue);
	}
}

/* The session's context does not wait: as the server, that refuses it, the program tries again. */
static void arrive(struct run *run, struct simulation_program *program, unsigned index)
{
	if (!ckt_ledger_has_room(&run->ledger, 0) || !ckt_wait_admits(&run->queue, 0)) {
		program->due_ms += 100;
		return;
	}
	snprintf(program->id, sizeof program->id, "%012x", index);
	program->holder = (struct ckt_ledger_holder){.subject = {program->id, "", "", index},
		.serial = index + 1,
		.maximum = program->declared_mib * MIB,
		.contexts = 1};
	program->here = true;
	ckt_ledger_add(&run->ledger, &program->holder);
	ckt_wait_came(&run->queue, &program->holder);
	check(run);
}

/* The next one that can do something; NULL: none can. */
static struct simulation_program *next_of(struct run *run)
{
	struct simulation_program *next = NULL;
	for (unsigned i = 0; i < run->count; i++) {
		struct simulation_program *program = &run->programs[i];
		bool over = !program->here && (program->finished || program->refused);
		if (!over && !program->waiting && (!next || program->due_ms < next->due_ms))
			next = program;
	}
	return next;
}

static void sum_up(struct run *run)
{
	struct simulation_result *result = run->result;
	double lives = 0, waits = 0;
	for (unsigned i = 0; i < run->count; i++) {
		const struct simulation_program *program = &run->programs[i];
		result->finished += program->finished;
		result->refused += program->refused;
		result->hung += !program->finished && !program->refused;
		lives += (double)(program->ended_ms - program->arrives_ms);
		waits += (double)program->waited_ms;
		if (program->waited_ms > result->longest_wait_ms)
			result->longest_wait_ms = program->waited_ms;
		if (program->ended_ms > result->ended_ms)
			result->ended_ms = program->ended_ms;
	}
	result->mean_ms = lives / run->count;
	result->mean_wait_ms = waits / run->count;
	result->events = run->queue.events;
}

bool simulation_run(struct simulation_program *programs, unsigned count, uint64_t budget_mib,
	uint64_t context_mib, const struct ckt_wait_policy *policy, uint64_t seed,
	struct simulation_result *ret_result)
{
	struct run run = {.programs = programs, .count = count, .result = ret_result, .good = true};
	struct simulation_program *next;
	*ret_result = (struct simulation_result){0};
	run.ledger.budgets[0] = budget_mib * MIB;
	run.ledger.context_bytes = context_mib * MIB;
	ckt_wait_queue_init(&run.queue, &run.ledger, policy, seed);
	run.queue.ended = ended;
	run.queue.data = &run;
	for (unsigned i = 0; i < count; i++)
		programs[i].due_ms = programs[i].arrives_ms;
	while ((next = next_of(&run))) {
		run.queue.now_ms = next->due_ms;
		if (next->here)
			step(&run, next);
		else
			arrive(&run, next, (unsigned)(next - programs));
	}
	sum_up(&run);
	ckt_wait_queue_fini(&run.queue);
	return run.good;
}
