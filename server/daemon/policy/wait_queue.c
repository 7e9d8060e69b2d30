/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for memory; see wait_queue.h. */
#include "server/daemon/policy/wait_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/daemon/policy/wait_safety.h"

void ckt_wait_queue_init(struct ckt_wait_queue *queue, struct ckt_ledger *ledger,
	const struct ckt_wait_policy *policy, uint64_t random)
{
	*queue = (struct ckt_wait_queue){
		.ledger = ledger, .policy = policy, .random = random ? random : 1};
}

void ckt_wait_queue_fini(struct ckt_wait_queue *queue)
{
	while (queue->first) {
		struct ckt_wait_request *request = queue->first;
		queue->first = request->next;
		free(request);
	}
	queue->count = 0;
}

/* ---- Events */

static uint64_t tell(struct ckt_wait_queue *queue, enum ckt_memory_event_kind kind,
	struct ckt_ledger_holder *holder, const struct ckt_memory_event *more)
{
	struct ckt_memory_event event = *more;
	event.number = ++queue->events;
	event.at_ms = queue->now_ms;
	event.kind = kind;
	event.session = holder->serial;
	snprintf(event.id, sizeof event.id, "%s",
		holder->subject.session ? holder->subject.session : "");
	holder->used_event = event.number;
	if (queue->event)
		queue->event(queue, &event);
	return event.number;
}

void ckt_wait_came(struct ckt_wait_queue *queue, struct ckt_ledger_holder *holder)
{
	uint64_t most;
	bool declared = ckt_wait_declared(queue->ledger, holder, &most);
	tell(queue, CKT_MEMORY_CAME, holder,
		&(struct ckt_memory_event){.bytes = declared ? most : 0});
}

void ckt_wait_freed(struct ckt_wait_queue *queue, struct ckt_ledger_holder *holder, unsigned gpu,
	uint64_t bytes)
{
	tell(queue, CKT_MEMORY_FREED, holder,
		&(struct ckt_memory_event){.gpu = gpu, .bytes = bytes});
}

/* ---- The list */

static struct ckt_wait_request **place_of(struct ckt_wait_queue *queue, uint64_t number)
{
	struct ckt_wait_request **place = &queue->first;
	while (*place && (*place)->number != number)
		place = &(*place)->next;
	return place;
}

static void insert(struct ckt_wait_queue *queue, struct ckt_wait_request *request)
{
	struct ckt_wait_request **place = &queue->first;
	while (*place && (*place)->arrived <= request->arrived)
		place = &(*place)->next;
	request->next = *place;
	*place = request;
	queue->count++;
}

static struct ckt_wait_request *take(struct ckt_wait_queue *queue, uint64_t number)
{
	struct ckt_wait_request **place = place_of(queue, number), *request = *place;
	if (request) {
		*place = request->next;
		queue->count--;
	}
	return request;
}

bool ckt_wait_is_waiting(const struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder)
{
	for (const struct ckt_wait_request *r = queue->first; r; r = r->next)
		if (r->holder == holder)
			return true;
	return false;
}

static void end(
	struct ckt_wait_queue *queue, uint64_t number, bool granted, enum ckt_memory_reason reason)
{
	struct ckt_wait_request *request = take(queue, number);
	tell(queue, granted ? CKT_MEMORY_GRANTED : CKT_MEMORY_REFUSED, request->holder,
		&(struct ckt_memory_event){.reason = reason,
			.request = number,
			.gpu = request->gpu,
			.bytes = request->bytes,
			.waited_ms = queue->now_ms - request->since_ms});
	if (queue->ended)
		queue->ended(queue, request, granted, reason);
	free(request);
}

bool ckt_wait_refuse(struct ckt_wait_queue *queue, uint64_t number, enum ckt_memory_reason reason)
{
	if (!*place_of(queue, number))
		return false;
	end(queue, number, false, reason);
	return true;
}

bool ckt_wait_withdraw(struct ckt_wait_queue *queue, uint64_t number, bool keep_place)
{
	struct ckt_wait_request *request = take(queue, number);
	if (!request)
		return false;
	request->holder->kept_place = keep_place ? request->arrived : 0;
	request->holder->kept_since_ms = request->since_ms;
	request->holder->kept_gpu = request->gpu;
	tell(queue, CKT_MEMORY_WITHDRAWN, request->holder,
		&(struct ckt_memory_event){
			.request = number, .gpu = request->gpu, .bytes = request->bytes});
	free(request);
	return true;
}

void ckt_wait_gone(struct ckt_wait_queue *queue, struct ckt_ledger_holder *holder)
{
	for (struct ckt_wait_request *r = queue->first; r;) {
		uint64_t number = r->number;
		bool its = r->holder == holder;
		r = r->next;
		if (its)
			ckt_wait_withdraw(queue, number, false);
	}
	tell(queue, CKT_MEMORY_ENDED, holder, &(struct ckt_memory_event){0});
}

/* ---- What is possible */

static int make_model(struct ckt_wait_queue *queue, struct ckt_wait_model *model)
{
	int result = ckt_wait_model_make(model, queue->ledger);
	for (const struct ckt_wait_request *r = queue->first; r && !result; r = r->next)
		ckt_wait_model_want(model, r->holder, r->gpu, r->bytes);
	return result;
}

static uint64_t context_needed(
	const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder, unsigned gpu)
{
	return holder->contexts >> gpu & 1 ? 0 : ledger->context_bytes;
}

static bool fits(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes)
{
	return bytes <= ckt_ledger_left(ledger, &holder->subject, gpu, holder->contexts >> gpu & 1);
}

/* Whether it could never be granted, or not as long as its owner's other sessions have theirs. */
static bool is_too_large(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes)
{
	uint64_t budget = ledger->budgets[gpu];
	uint64_t own = holder->leased[gpu] + ledger->context_bytes;
	if (!budget || bytes > budget || own > budget - bytes ||
		(holder->maximum &&
			(bytes > holder->maximum || holder->leased[gpu] > holder->maximum - bytes)))
		return true;
	for (size_t i = 0; i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (!(rule->sets & CKT_LIMIT_SETS_MEMORY) ||
			!ckt_limit_fits(rule, &holder->subject))
			continue;
		uint64_t used = ckt_ledger_used(ledger, rule, &holder->subject, gpu);
		if (used > rule->memory_bytes || bytes > rule->memory_bytes - used)
			return true;
	}
	return false;
}

/* Whether anybody else has memory of the GPU, or a context there. */
static bool others_hold(
	const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder, unsigned gpu)
{
	for (const struct ckt_ledger_holder *h = ledger->first; h; h = h->next)
		if (h != holder &&
			(h->leased[gpu] || (h->contexts >> gpu & 1 && ledger->context_bytes)))
			return true;
	return false;
}

/* Whether a session that has memory of the GPU, or of any (-1), runs and may give it back. */
static bool somebody_runs(const struct ckt_wait_queue *queue, int gpu)
{
	for (const struct ckt_ledger_holder *h = queue->ledger->first; h; h = h->next) {
		uint64_t has = 0;
		for (int g = gpu < 0 ? 0 : gpu; g < (gpu < 0 ? CKT_DEVICES_MAX : gpu + 1); g++)
			has |= queue->ledger->budgets[g] ? h->leased[g] : 0;
		if (has && !ckt_wait_is_waiting(queue, h))
			return true;
	}
	return false;
}

/*
 * A session without memory waits behind earlier ones that were overtaken, while a session runs that
 * may make room for them.
 */
static bool is_behind(const struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t arrived)
{
	if (holder->leased[gpu])
		return false;
	for (const struct ckt_wait_request *r = queue->first; r && r->arrived < arrived;
		r = r->next)
		if (r->gpu == gpu && r->holder != holder &&
			r->overtaken >= queue->policy->overtakes_max)
			return somebody_runs(queue, (int)gpu);
	return false;
}

static enum ckt_memory_reason look(struct ckt_wait_queue *queue, struct ckt_wait_model *model,
	const struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes, uint64_t arrived,
	uint64_t waited)
{
	if (!fits(queue->ledger, holder, gpu, bytes))
		return CKT_MEMORY_IN_USE;
	if (is_behind(queue, holder, gpu, arrived))
		return CKT_MEMORY_BEHIND;
	if (queue->bars && queue->bars(queue, holder, gpu, bytes))
		return CKT_MEMORY_BEHIND;
	if (!ckt_wait_model_is_safe(model, holder, gpu, bytes, waited))
		return CKT_MEMORY_UNSAFE;
	return CKT_MEMORY_FITS;
}

static uint64_t place_for(
	const struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder, unsigned gpu)
{
	return holder->kept_place && holder->kept_gpu == gpu ? holder->kept_place
							     : queue->events + 1;
}

enum ckt_memory_decision ckt_wait_judge(struct ckt_wait_queue *queue,
	struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes, bool can_wait,
	enum ckt_memory_reason *ret_reason)
{
	const struct ckt_ledger *ledger = queue->ledger;
	struct ckt_wait_model model;
	*ret_reason = CKT_MEMORY_FITS;
	if (!can_wait || !ledger->budgets[gpu]) {
		bool fit = fits(ledger, holder, gpu, bytes);
		*ret_reason = fit ? CKT_MEMORY_FITS : CKT_MEMORY_IN_USE;
		return fit ? CKT_MEMORY_GRANT : CKT_MEMORY_REFUSE;
	}
	if (is_too_large(ledger, holder, gpu, bytes)) {
		*ret_reason = CKT_MEMORY_TOO_LARGE;
		return CKT_MEMORY_REFUSE;
	}
	*ret_reason = make_model(queue, &model)
		? CKT_MEMORY_UNSAFE
		: look(queue, &model, holder, gpu, bytes, place_for(queue, holder, gpu), 0);
	ckt_wait_model_free(&model);
	if (*ret_reason == CKT_MEMORY_FITS)
		return CKT_MEMORY_GRANT;
	if (*ret_reason != CKT_MEMORY_BEHIND && !others_hold(ledger, holder, gpu)) {
		/* Its other threads have what is missing, or wait for the rest themselves. */
		*ret_reason = CKT_MEMORY_OWN;
		return CKT_MEMORY_REFUSE;
	}
	unsigned own = 0;
	for (const struct ckt_wait_request *r = queue->first; r; r = r->next)
		own += r->holder == holder;
	return queue->count < CKT_WAITS_MAX && own < CKT_WAITS_EACH ? CKT_MEMORY_WAIT
								    : CKT_MEMORY_REFUSE;
}

enum ckt_memory_decision ckt_wait_ask(struct ckt_wait_queue *queue,
	struct ckt_ledger_holder *holder, unsigned gpu, uint64_t bytes, void *data,
	uint64_t *ret_number, enum ckt_memory_reason *ret_reason)
{
	enum ckt_memory_decision decision =
		ckt_wait_judge(queue, holder, gpu, bytes, true, ret_reason);
	bool kept = holder->kept_place && holder->kept_gpu == gpu;
	if (decision == CKT_MEMORY_GRANT) {
		holder->kept_place = 0;
		if (ckt_ledger_grant(queue->ledger, holder, gpu, bytes, bytes, true))
			return CKT_MEMORY_GRANT;
		decision = CKT_MEMORY_REFUSE;
	}
	struct ckt_wait_request *request =
		decision == CKT_MEMORY_WAIT ? calloc(1, sizeof *request) : NULL;
	if (!request)
		return CKT_MEMORY_REFUSE;
	*request = (struct ckt_wait_request){.holder = holder,
		.number = ++queue->requests,
		.gpu = gpu,
		.bytes = bytes,
		.data = data,
		.since_ms = kept ? holder->kept_since_ms : queue->now_ms,
		.reason = *ret_reason};
	uint64_t now = tell(queue, CKT_MEMORY_ASKED, holder,
		&(struct ckt_memory_event){.reason = *ret_reason,
			.request = request->number,
			.gpu = gpu,
			.bytes = bytes});
	request->arrived = kept ? holder->kept_place : now;
	holder->kept_place = 0;
	insert(queue, request);
	*ret_number = request->number;
	return CKT_MEMORY_WAIT;
}

bool ckt_wait_admits(struct ckt_wait_queue *queue, unsigned gpu)
{
	struct ckt_wait_model model;
	bool safe = make_model(queue, &model) == 0 && ckt_wait_model_admits(&model, gpu);
	ckt_wait_model_free(&model);
	return safe;
}

/* ---- Decisions */

/* The requests that can be granted, in order of arrival; any that fits if not safely. */
static unsigned candidates(struct ckt_wait_queue *queue, struct ckt_wait_model *model, bool safely,
	struct ckt_wait_facts *list)
{
	const struct ckt_ledger *ledger = queue->ledger;
	unsigned count = 0;
	for (struct ckt_wait_request *r = queue->first; r; r = r->next) {
		if (safely)
			r->reason = look(
				queue, model, r->holder, r->gpu, r->bytes, r->arrived, r->bytes);
		if (safely ? r->reason != CKT_MEMORY_FITS
			   : !fits(ledger, r->holder, r->gpu, r->bytes))
			continue;
		list[count++] = (struct ckt_wait_facts){.request = r->number,
			.session = r->holder->serial,
			.gpu = r->gpu,
			.bytes = r->bytes,
			.held_bytes = r->holder->leased[r->gpu],
			.left_bytes = ledger->budgets[r->gpu] -
				ckt_ledger_budget_used(ledger, r->gpu) -
				context_needed(ledger, r->holder, r->gpu),
			.arrived = r->arrived,
			.used = r->holder->used_event};
	}
	return count;
}

static void grant(struct ckt_wait_queue *queue, uint64_t number)
{
	struct ckt_wait_request *request = *place_of(queue, number);
	for (struct ckt_wait_request *r = queue->first; r && r->arrived < request->arrived;
		r = r->next)
		r->overtaken += r->gpu == request->gpu && r->holder != request->holder &&
			!request->holder->leased[request->gpu];
	bool good = ckt_ledger_grant(queue->ledger, request->holder, request->gpu, request->bytes,
			    request->bytes, true) != 0;
	end(queue, number, good, good ? CKT_MEMORY_FITS : CKT_MEMORY_IN_USE);
}

/* How many of the list can be granted now. */
static unsigned find_candidates(struct ckt_wait_queue *queue, struct ckt_wait_facts *list)
{
	struct ckt_wait_model model;
	unsigned count = 0;
	if (!make_model(queue, &model))
		count = candidates(queue, &model, true, list);
	ckt_wait_model_free(&model);
	if (!count && !somebody_runs(queue, -1))
		count = candidates(queue, NULL, false, list);
	return count;
}

enum granted { GRANTED_NONE, GRANTED_ONE, GRANTED_LATER };

static enum granted grant_one(struct ckt_wait_queue *queue, struct ckt_wait_facts *list)
{
	unsigned count = find_candidates(queue, list);
	if (queue->outside && queue->outside(queue, list, count))
		return GRANTED_LATER;
	if (!count)
		return GRANTED_NONE;
	unsigned next = queue->policy->choose(&queue->random, list, count);
	grant(queue, list[next < count ? next : 0].request);
	return GRANTED_ONE;
}

bool ckt_wait_grant(
	struct ckt_wait_queue *queue, uint64_t number, enum ckt_memory_reason *ret_reason)
{
	struct ckt_wait_request *request = *place_of(queue, number);
	struct ckt_wait_facts *list =
		request && !queue->pumping ? calloc(queue->count, sizeof *list) : NULL;
	unsigned count = list ? find_candidates(queue, list) : 0;
	bool found = false;
	for (unsigned i = 0; i < count; i++)
		found |= list[i].request == number;
	free(list);
	*ret_reason = request ? request->reason : CKT_MEMORY_FITS;
	if (request && !found && *ret_reason == CKT_MEMORY_FITS)
		*ret_reason = CKT_MEMORY_UNSAFE;
	if (found)
		grant(queue, number);
	return found;
}

static uint64_t held_in_all(const struct ckt_ledger *ledger, const struct ckt_ledger_holder *holder)
{
	uint64_t held = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		held += ledger->budgets[gpu] ? holder->leased[gpu] : 0;
	return held;
}

/* The one to be refused of those that are stuck: undeclared, then the most memory, then the last. */
static struct ckt_wait_request *find_victim(
	struct ckt_wait_queue *queue, const struct ckt_wait_model *model)
{
	struct ckt_wait_request *victim = NULL;
	uint64_t most = 0;
	bool declared = true;
	for (struct ckt_wait_request *r = queue->first; r; r = r->next) {
		uint64_t limit, held = held_in_all(queue->ledger, r->holder);
		bool its = ckt_wait_declared(queue->ledger, r->holder, &limit);
		if (!ckt_wait_model_is_stuck(model, r->holder) || (its && !declared) ||
			(victim && its == declared && held < most))
			continue;
		victim = r;
		most = held;
		declared = its;
	}
	return victim;
}

/* Refuses one of those that wait for each other, or that wait for nobody; false: there is none. */
static bool refuse_one(struct ckt_wait_queue *queue)
{
	struct ckt_wait_model model;
	struct ckt_wait_request *victim = NULL;
	enum ckt_memory_reason reason = CKT_MEMORY_DEADLOCK;
	if (!make_model(queue, &model) && ckt_wait_model_find_stuck(&model))
		victim = find_victim(queue, &model);
	ckt_wait_model_free(&model);
	for (struct ckt_wait_request *r = queue->first; r && !victim; r = r->next) {
		bool large = is_too_large(queue->ledger, r->holder, r->gpu, r->bytes);
		if (!large &&
			(r->reason == CKT_MEMORY_BEHIND ||
				others_hold(queue->ledger, r->holder, r->gpu)))
			continue;
		victim = r;
		reason = large ? CKT_MEMORY_TOO_LARGE : CKT_MEMORY_OWN;
	}
	if (victim)
		end(queue, victim->number, false, reason);
	return victim != NULL;
}

void ckt_wait_pump(struct ckt_wait_queue *queue)
{
	if (queue->pumping) {
		queue->again = true;
		return;
	}
	queue->pumping = true;
	do {
		queue->again = false;
		while (queue->first) {
			struct ckt_wait_facts *list = calloc(queue->count, sizeof *list);
			enum granted granted = list ? grant_one(queue, list) : GRANTED_LATER;
			free(list);
			if (granted == GRANTED_LATER ||
				(granted == GRANTED_NONE && !refuse_one(queue)))
				break;
		}
	} while (queue->again);
	queue->pumping = false;
}
