/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by owner; see ledger.h. */
#include "server/daemon/policy/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size_text.h"

/* The part of what is left that one session may have beyond its need. */
enum { PART = 8 };

void ckt_ledger_add(struct ckt_ledger *ledger, struct ckt_ledger_holder *holder)
{
	holder->next = ledger->first;
	ledger->first = holder;
}

void ckt_ledger_remove(struct ckt_ledger *ledger, struct ckt_ledger_holder *holder)
{
	struct ckt_ledger_holder **place = &ledger->first;
	while (*place && *place != holder)
		place = &(*place)->next;
	if (*place)
		*place = holder->next;
}

/* ---- Sums */

uint64_t ckt_ledger_used(const struct ckt_ledger *ledger, const struct ckt_limit_rule *rule,
	const struct ckt_limit_subject *subject, unsigned gpu)
{
	uint64_t used = 0;
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		if (ckt_limit_counts(rule, subject, &h->subject))
			used += h->leased[gpu];
	return used;
}

unsigned ckt_ledger_sessions(const struct ckt_ledger *ledger, const struct ckt_limit_rule *rule,
	const struct ckt_limit_subject *subject)
{
	unsigned count = 0;
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		count += !h->left && ckt_limit_counts(rule, subject, &h->subject);
	return count;
}

uint64_t ckt_ledger_budget_used(const struct ckt_ledger *ledger, unsigned gpu)
{
	uint64_t used = 0;
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		used += h->leased[gpu] + (h->contexts >> gpu & 1 ? ledger->context_bytes : 0);
	return used;
}

/* ---- Questions */

static bool limits_memory(
	const struct ckt_limit_rule *rule, const struct ckt_limit_subject *subject)
{
	return rule->sets & CKT_LIMIT_SETS_MEMORY && ckt_limit_fits(rule, subject);
}

bool ckt_ledger_limits(const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject)
{
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (ledger->budgets[gpu])
			return true;
	for (size_t i = 0; i < ledger->limits.count; i++)
		if (limits_memory(&ledger->limits.rules[i], subject))
			return true;
	return false;
}

bool ckt_ledger_shares(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder,
	const struct ckt_ledger_holder *other, unsigned gpu)
{
	if (holder == other)
		return false;
	if (ledger->budgets[gpu])
		return true;
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (rule->sets & CKT_LIMIT_SETS_MEMORY &&
			ckt_limit_counts(rule, &holder->subject, &other->subject))
			return true;
	}
	return false;
}

bool ckt_ledger_is_settled(
	const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder, unsigned gpu)
{
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		if (h->unsettled && ckt_ledger_shares(ledger, holder, h, gpu))
			return false;
	return true;
}

uint64_t ckt_ledger_total(
	const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject, unsigned gpu)
{
	uint64_t total = ledger->budgets[gpu] ? ledger->budgets[gpu] : CKT_LEDGER_NO_LIMIT;
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (limits_memory(rule, subject) && rule->memory_bytes < total)
			total = rule->memory_bytes;
	}
	return total;
}

static uint64_t rest(uint64_t limit, uint64_t used)
{
	return used < limit ? (limit - used) / CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE : 0;
}

uint64_t ckt_ledger_limits_left(
	const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject, unsigned gpu)
{
	uint64_t left = CKT_LEDGER_NO_LIMIT;
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (!limits_memory(rule, subject))
			continue;
		uint64_t own =
			rest(rule->memory_bytes, ckt_ledger_used(ledger, rule, subject, gpu));
		if (own < left)
			left = own;
	}
	return left;
}

uint64_t ckt_ledger_left(const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject,
	unsigned gpu, bool has_context)
{
	uint64_t limits = ckt_ledger_limits_left(ledger, subject, gpu);
	if (!ledger->budgets[gpu])
		return limits;
	uint64_t left = rest(ledger->budgets[gpu],
		ckt_ledger_budget_used(ledger, gpu) + (has_context ? 0 : ledger->context_bytes));
	return left < limits ? left : limits;
}

const struct ckt_limit_rule *ckt_ledger_full(
	const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject)
{
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (rule->sets & CKT_LIMIT_SETS_SESSIONS && ckt_limit_fits(rule, subject) &&
			ckt_ledger_sessions(ledger, rule, subject) >= rule->sessions)
			return rule;
	}
	return NULL;
}

uint64_t ckt_ledger_gpus(const struct ckt_ledger *ledger, const struct ckt_limit_subject *subject)
{
	uint64_t gpus = UINT64_MAX;
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (rule->sets & CKT_LIMIT_SETS_GPUS && ckt_limit_fits(rule, subject))
			gpus &= rule->gpus;
	}
	return gpus;
}

bool ckt_ledger_has_room(const struct ckt_ledger *ledger, unsigned gpu)
{
	uint64_t budget = ledger->budgets[gpu], used = ckt_ledger_budget_used(ledger, gpu);
	return !budget || (used <= budget && ledger->context_bytes <= budget - used);
}

/* ---- Leases */

uint64_t ckt_ledger_grant(struct ckt_ledger *ledger, struct ckt_ledger_holder *holder, unsigned gpu,
	uint64_t need, uint64_t want, bool exact)
{
	bool has_context = holder->contexts >> gpu & 1;
	uint64_t left = ckt_ledger_left(ledger, &holder->subject, gpu, has_context);
	if (!need || need > left || need % CKT_LEDGER_GRANULE)
		return 0;
	uint64_t more = want > need && !exact ? want - need : 0, most = (left - need) / PART;
	if (more > most)
		more = most;
	uint64_t bytes = need + more / CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE;
	holder->leased[gpu] += bytes;
	holder->contexts |= UINT64_C(1) << gpu;
	return bytes;
}

void ckt_ledger_force(struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes)
{
	holder->leased[gpu] += bytes;
	holder->contexts |= UINT64_C(1) << gpu;
}

int ckt_ledger_give(struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes)
{
	if (bytes > holder->leased[gpu] || bytes % CKT_LEDGER_GRANULE)
		return -EINVAL;
	holder->leased[gpu] -= bytes;
	return 0;
}

/* ---- --gpu-memory */

static int parse_budget(const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes;
	if (ckt_size_parse(text, &bytes) || bytes < CKT_LEDGER_GRANULE)
		return -EINVAL;
	*ret_bytes = bytes / CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE;
	return 0;
}

static int parse_one(char *word, uint64_t budgets[CKT_DEVICES_MAX])
{
	char *equals = strchr(word, '=');
	if (!equals || equals == word || strspn(word, "0123456789") != (size_t)(equals - word))
		return -EINVAL;
	unsigned long gpu = strtoul(word, NULL, 10);
	return gpu >= CKT_DEVICES_MAX || budgets[gpu] ? -EINVAL
						      : parse_budget(equals + 1, &budgets[gpu]);
}

int ckt_ledger_budgets_parse(const char *text, uint64_t ret_budgets[CKT_DEVICES_MAX])
{
	char copy[1024], *rest_of = copy;
	uint64_t budgets[CKT_DEVICES_MAX] = {0};
	int result = 0;
	if (strlen(text) >= sizeof copy)
		return -EINVAL;
	strcpy(copy, text);
	if (!strchr(text, '=')) {
		result = parse_budget(text, &budgets[0]);
		for (unsigned gpu = 1; gpu < CKT_DEVICES_MAX; gpu++)
			budgets[gpu] = budgets[0];
	} else {
		for (char *word; !result && (word = strsep(&rest_of, ","));)
			result = parse_one(word, budgets);
	}
	if (!result)
		memcpy(ret_budgets, budgets, sizeof budgets);
	return result;
}
