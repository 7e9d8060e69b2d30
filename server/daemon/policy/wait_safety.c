/* SPDX-License-Identifier: Apache-2.0 */
/* The banker's algorithm; see wait_safety.h. */
#include "server/daemon/policy/wait_safety.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Of one session.  More rules than that fit nobody; a rule left out makes the claim larger. */
enum { RULES_MAX = 16 };

struct ckt_wait_party {
	const struct ckt_ledger_holder *holder;
	bool declared, done, stuck;
	uint64_t maximum;                  /* its own alone; CKT_LEDGER_NO_LIMIT */
	uint32_t owners[RULES_MAX], count; /* of the model */
	uint64_t held[CKT_DEVICES_MAX];    /* as the model's gpus; without contexts */
	uint64_t want[CKT_DEVICES_MAX];
	uint64_t contexts; /* as the model's gpus */
};

bool ckt_wait_declared(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder,
	uint64_t *ret_bytes)
{
	uint64_t most = holder->maximum ? holder->maximum : CKT_LEDGER_NO_LIMIT;
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (rule->sets & CKT_LIMIT_SETS_MEMORY && rule->memory_bytes < most &&
			ckt_limit_fits(rule, &holder->subject))
			most = rule->memory_bytes;
	}
	*ret_bytes = most;
	return most != CKT_LEDGER_NO_LIMIT;
}

/* ---- Making */

static int add_owner(struct ckt_wait_model *model, struct ckt_wait_party *party,
	const struct ckt_limit_rule *rule)
{
	uint32_t owner = rule->key == CKT_LIMIT_JOB ? party->holder->subject.owner : 0;
	size_t i = 0;
	while (i < model->owner_count &&
		(model->owners[i].rule != rule || model->owners[i].owner != owner))
		i++;
	if (i == model->owner_count) {
		if (CKT_GROW(model->owners, model->owner_count, model->owner_room, 8))
			return -ENOMEM;
		model->owners[model->owner_count++] =
			(struct ckt_wait_owners){.rule = rule, .owner = owner};
	}
	for (unsigned g = 0; g < model->gpu_count; g++)
		model->owners[i].used[g] += party->held[g];
	party->owners[party->count++] = (uint32_t)i;
	return 0;
}

static int make_party(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder)
{
	struct ckt_wait_party *party = &model->parties[model->count++];
	const struct ckt_limit_table *limits = &model->ledger->limits;
	party->holder = holder;
	party->maximum = holder->maximum ? holder->maximum : CKT_LEDGER_NO_LIMIT;
	for (unsigned g = 0; g < model->gpu_count; g++) {
		party->held[g] = holder->leased[model->gpus[g]];
		party->contexts |= (holder->contexts >> model->gpus[g] & 1) << g;
	}
	for (size_t i = 0; i < limits->count && party->count < RULES_MAX; i++)
		if (limits->rules[i].sets & CKT_LIMIT_SETS_MEMORY &&
			ckt_limit_fits(&limits->rules[i], &holder->subject) &&
			add_owner(model, party, &limits->rules[i]))
			return -ENOMEM;
	party->declared = holder->maximum || party->count;
	return 0;
}

int ckt_wait_model_make(struct ckt_wait_model *model, const struct ckt_ledger *ledger)
{
	size_t count = 0;
	*model = (struct ckt_wait_model){.ledger = ledger};
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (ledger->budgets[gpu])
			model->gpus[model->gpu_count++] = gpu;
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		count++;
	model->parties = calloc(count + 1, sizeof *model->parties);
	if (!model->parties)
		return -ENOMEM;
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		if (make_party(model, h))
			return -ENOMEM;
	return 0;
}

void ckt_wait_model_free(struct ckt_wait_model *model)
{
	free(model->parties);
	free(model->owners);
	*model = (struct ckt_wait_model){0};
}

/* ---- Changes */

static struct ckt_wait_party *find(
	const struct ckt_wait_model *model, const struct ckt_ledger_holder *holder)
{
	for (size_t i = 0; i < model->count; i++)
		if (model->parties[i].holder == holder)
			return &model->parties[i];
	return NULL;
}

/* -1: it has no budget. */
static int place_of(const struct ckt_wait_model *model, unsigned gpu)
{
	for (unsigned g = 0; g < model->gpu_count; g++)
		if (model->gpus[g] == gpu)
			return (int)g;
	return -1;
}

void ckt_wait_model_want(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes)
{
	struct ckt_wait_party *party = find(model, holder);
	int g = place_of(model, gpu);
	if (party && g >= 0 && __builtin_add_overflow(party->want[g], bytes, &party->want[g]))
		party->want[g] = UINT64_MAX;
}

static void move(struct ckt_wait_model *model, struct ckt_wait_party *party, int g, uint64_t bytes,
	uint64_t waited)
{
	party->held[g] += bytes;
	party->want[g] -= waited;
	for (uint32_t i = 0; i < party->count; i++)
		model->owners[party->owners[i]].used[g] += bytes;
}

void ckt_wait_model_grant(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes, uint64_t waited)
{
	struct ckt_wait_party *party = find(model, holder);
	int g = place_of(model, gpu);
	if (!party || g < 0)
		return;
	move(model, party, g, bytes, waited);
	party->contexts |= UINT64_C(1) << g;
}

/* ---- Whether all can finish */

static uint64_t context_of(
	const struct ckt_wait_model *model, const struct ckt_wait_party *party, unsigned g)
{
	return party->contexts >> g & 1 ? model->ledger->context_bytes : 0;
}

static uint64_t rest(uint64_t limit, uint64_t used)
{
	return used < limit ? limit - used : 0;
}

/* What it may still ask for, by what it declared. */
static uint64_t claim(
	const struct ckt_wait_model *model, const struct ckt_wait_party *party, unsigned g)
{
	uint64_t budget = model->ledger->budgets[model->gpus[g]];
	uint64_t most = rest(budget, party->held[g] + model->ledger->context_bytes);
	uint64_t own = rest(party->maximum, party->held[g]);
	if (own < most)
		most = own;
	for (uint32_t i = 0; i < party->count; i++) {
		const struct ckt_wait_owners *owners = &model->owners[party->owners[i]];
		own = rest(owners->rule->memory_bytes, owners->used[g]);
		if (own < most)
			most = own;
	}
	return most / CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE;
}

static bool can_finish(const struct ckt_wait_model *model, const struct ckt_wait_party *party,
	const int64_t *left, bool by_claims)
{
	if (party->holder->swaps)
		return true;
	for (unsigned g = 0; g < model->gpu_count; g++) {
		bool here = party->contexts >> g & 1 || party->want[g];
		uint64_t need = party->want[g];
		if (!here)
			continue;
		if (by_claims && party->declared) {
			uint64_t claimed = claim(model, party, g);
			need = claimed > need ? claimed : need;
		}
		uint64_t context =
			need && !(party->contexts >> g & 1) ? model->ledger->context_bytes : 0;
		if (need &&
			(left[g] < 0 || need > (uint64_t)left[g] ||
				context > (uint64_t)left[g] - need))
			return false;
	}
	return true;
}

/* What it has is given back; also to its owner's limits. */
static void finish(struct ckt_wait_model *model, struct ckt_wait_party *party, int64_t *left)
{
	party->done = true;
	for (unsigned g = 0; g < model->gpu_count; g++) {
		/* A session that is swapped out keeps its context. */
		left[g] += (int64_t)(party->held[g] +
			(party->holder->swaps ? 0 : context_of(model, party, g)));
		for (uint32_t i = 0; i < party->count; i++)
			model->owners[party->owners[i]].used[g] -= party->held[g];
	}
}

static void undo(struct ckt_wait_model *model)
{
	for (size_t p = 0; p < model->count; p++) {
		struct ckt_wait_party *party = &model->parties[p];
		for (unsigned g = 0; party->done && g < model->gpu_count; g++)
			for (uint32_t i = 0; i < party->count; i++)
				model->owners[party->owners[i]].used[g] += party->held[g];
		party->stuck = !party->done;
		party->done = false;
	}
}

/* How many cannot finish.  context: the model's GPU with one more that never ends; -1: none. */
static size_t simulate(struct ckt_wait_model *model, bool by_claims, int context)
{
	int64_t left[CKT_DEVICES_MAX];
	size_t unfinished = model->count;
	for (unsigned g = 0; g < model->gpu_count; g++) {
		left[g] = (int64_t)model->ledger->budgets[model->gpus[g]];
		for (size_t p = 0; p < model->count; p++)
			left[g] -= (int64_t)(model->parties[p].held[g] +
				context_of(model, &model->parties[p], g));
		left[g] -= (int)g == context ? (int64_t)model->ledger->context_bytes : 0;
	}
	for (bool more = true; more;) {
		more = false;
		for (size_t p = 0; p < model->count; p++) {
			struct ckt_wait_party *party = &model->parties[p];
			if (party->done || !can_finish(model, party, left, by_claims))
				continue;
			finish(model, party, left);
			unfinished--;
			more = true;
		}
	}
	undo(model);
	return unfinished;
}

bool ckt_wait_model_is_safe(struct ckt_wait_model *model, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes, uint64_t waited)
{
	struct ckt_wait_party *party = find(model, holder);
	int g = place_of(model, gpu);
	if (!party || g < 0)
		return true;
	uint64_t contexts = party->contexts;
	move(model, party, g, bytes, waited);
	party->contexts |= UINT64_C(1) << g;
	bool safe = simulate(model, true, -1) == 0;
	party->contexts = contexts;
	move(model, party, g, -bytes, -waited);
	return safe;
}

bool ckt_wait_model_admits(struct ckt_wait_model *model, unsigned gpu)
{
	int g = place_of(model, gpu);
	return g < 0 || simulate(model, true, g) == 0 || simulate(model, true, -1) != 0;
}

size_t ckt_wait_model_find_stuck(struct ckt_wait_model *model)
{
	return simulate(model, false, -1);
}

bool ckt_wait_model_is_stuck(
	const struct ckt_wait_model *model, const struct ckt_ledger_holder *holder)
{
	const struct ckt_wait_party *party = find(model, holder);
	return party && party->stuck;
}
