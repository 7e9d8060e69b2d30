/* SPDX-License-Identifier: Apache-2.0 */
/* The order of turns on a GPU; see turn_order.h. */
#include "server/daemon/policy/turn_order.h"

#include <stddef.h>

/* A turn shorter than this costs more than it brings. */
#define LEAST_NS INT64_C(1000000)

static void earn(struct ckt_turn_member *member, int64_t now_ns)
{
	int64_t most = CKT_TURN_BURST_NS * (int64_t)member->cap / 100;
	int64_t passed = now_ns - member->credit_at_ns;
	if (passed > CKT_TURN_BURST_NS * 100)
		passed = CKT_TURN_BURST_NS * 100;
	member->credit_ns += passed * (int64_t)member->cap / 100;
	if (member->credit_ns > most)
		member->credit_ns = most;
	member->credit_at_ns = now_ns;
}

void ckt_turn_add(struct ckt_turn_ring *ring, struct ckt_turn_member *member, int64_t now_ns)
{
	member->next = ring->first;
	ring->first = member;
	member->wants = false;
	member->virtual_ns = ring->virtual_ns;
	member->credit_ns = 0;
	member->credit_at_ns = now_ns - CKT_TURN_BURST_NS;
}

void ckt_turn_remove(struct ckt_turn_ring *ring, struct ckt_turn_member *member)
{
	for (struct ckt_turn_member **at = &ring->first; *at; at = &(*at)->next)
		if (*at == member) {
			*at = member->next;
			break;
		}
	if (ring->holder == member)
		ring->holder = NULL;
	if (ring->next == member)
		ring->next = NULL;
}

void ckt_turn_want(struct ckt_turn_ring *ring, struct ckt_turn_member *member)
{
	uint64_t lag = CKT_TURN_LAG_NS * (uint64_t)CKT_TURN_WEIGHT_MAX / member->weight;
	uint64_t least = ring->virtual_ns > lag ? ring->virtual_ns - lag : 0;
	if (!member->wants && member != ring->holder && member->virtual_ns < least)
		member->virtual_ns = least;
	member->wants = true;
}

void ckt_turn_next(struct ckt_turn_ring *ring, struct ckt_turn_member *member)
{
	ring->next = member;
}

void ckt_turn_end(struct ckt_turn_ring *ring)
{
	ring->ends = true;
}

bool ckt_turn_yield(struct ckt_turn_ring *ring, struct ckt_turn_member *member, uint32_t number,
	bool wants, int64_t now_ns)
{
	if (ring->holder != member || ring->number != number)
		return false;
	uint64_t used = now_ns > ring->given_ns ? (uint64_t)(now_ns - ring->given_ns) : 0;
	member->used_ns += used;
	member->virtual_ns += used * CKT_TURN_WEIGHT_MAX / member->weight;
	if (member->cap) {
		earn(member, now_ns);
		member->credit_ns -= (int64_t)used;
	}
	member->wants = wants;
	ring->holder = NULL;
	ring->ends = false;
	return true;
}

uint64_t ckt_turn_used_ns(
	const struct ckt_turn_ring *ring, const struct ckt_turn_member *member, int64_t now_ns)
{
	bool has = ring->holder == member && now_ns > ring->given_ns;
	return member->used_ns + (has ? (uint64_t)(now_ns - ring->given_ns) : 0);
}

/* Whether a goes before b, whatever they have used. */
static bool is_ahead(const struct ckt_turn_ring *ring, const struct ckt_turn_member *a,
	const struct ckt_turn_member *b)
{
	if (ring->next && (a == ring->next || b == ring->next))
		return a == ring->next;
	return a->class != b->class ? a->class < b->class : a->priority > b->priority;
}

/* Its cap lets it have a turn now; else *ret_when: from when on. */
static bool may_run(struct ckt_turn_member *member, int64_t now_ns, int64_t *ret_when)
{
	if (!member->cap)
		return true;
	earn(member, now_ns);
	/* What it may save up can be less than a turn is worth. */
	int64_t least = CKT_TURN_BURST_NS * (int64_t)member->cap / 200;
	if (least > LEAST_NS)
		least = LEAST_NS;
	if (member->credit_ns >= least)
		return true;
	int64_t when = now_ns + (least - member->credit_ns) * 100 / (int64_t)member->cap + 1;
	if (!*ret_when || when < *ret_when)
		*ret_when = when;
	return false;
}

/* The next one; *ret_others: another could run as well. */
static struct ckt_turn_member *choose(
	struct ckt_turn_ring *ring, int64_t now_ns, bool *ret_others, int64_t *ret_when)
{
	struct ckt_turn_member *best = NULL;
	unsigned count = 0;
	for (struct ckt_turn_member *member = ring->first; member; member = member->next) {
		if (!member->wants || member == ring->holder || !may_run(member, now_ns, ret_when))
			continue;
		count++;
		if (!best || is_ahead(ring, member, best) ||
			(!is_ahead(ring, best, member) && member->virtual_ns < best->virtual_ns))
			best = member;
	}
	*ret_others = count > 1;
	return best;
}

static int64_t pace(
	const struct ckt_turn_ring *ring, const struct ckt_turn_member *of, bool contended)
{
	for (const struct ckt_turn_member *member = ring->first; member; member = member->next)
		if (member->class < of->class)
			return CKT_TURN_PACE_TIGHT_NS;
	return contended ? CKT_TURN_PACE_NS : 0;
}

/* The end of the holder's turn, now that `next` waits: 0 for one that was told already. */
static void limit(struct ckt_turn_ring *ring, const struct ckt_turn_member *next, int64_t now_ns,
	struct ckt_turn_decision *ret_decision)
{
	bool ends = ring->ends || is_ahead(ring, next, ring->holder);
	int64_t end = ends ? now_ns : ring->given_ns + CKT_TURN_QUANTUM_NS;
	/* Of one that has it for long, in whose turn the kernels that are in flight end first. */
	if (end < now_ns)
		end = now_ns;
	if (ring->end_ns && ring->end_ns <= end)
		return;
	ring->end_ns = end;
	ret_decision->step = CKT_TURN_LIMITS;
	ret_decision->member = ring->holder;
	ret_decision->number = ring->number;
	ret_decision->length_ns = end - now_ns;
	ret_decision->pace_ns = pace(ring, ring->holder, true);
}

static void give(struct ckt_turn_ring *ring, struct ckt_turn_member *member, bool others,
	int64_t now_ns, struct ckt_turn_decision *ret_decision)
{
	int64_t length = others ? CKT_TURN_QUANTUM_NS : 0;
	if (member->cap && (!length || length > member->credit_ns))
		length = member->credit_ns < CKT_TURN_QUANTUM_NS ? member->credit_ns
								 : CKT_TURN_QUANTUM_NS;
	member->wants = false;
	member->turns++;
	if (ring->next == member)
		ring->next = NULL;
	ring->holder = member;
	ring->given_ns = now_ns;
	ring->end_ns = length ? now_ns + length : 0;
	if (ring->virtual_ns < member->virtual_ns)
		ring->virtual_ns = member->virtual_ns;
	*ret_decision = (struct ckt_turn_decision){.step = CKT_TURN_GIVES,
		.member = member,
		.number = ++ring->number,
		.length_ns = length,
		.pace_ns = pace(ring, member, length != 0)};
}

void ckt_turn_decide(
	struct ckt_turn_ring *ring, int64_t now_ns, struct ckt_turn_decision *ret_decision)
{
	bool others = false;
	*ret_decision = (struct ckt_turn_decision){.step = CKT_TURN_NOTHING};
	struct ckt_turn_member *next = choose(ring, now_ns, &others, &ret_decision->again_ns);
	if (next && ring->holder)
		limit(ring, next, now_ns, ret_decision);
	else if (next)
		give(ring, next, others, now_ns, ret_decision);
}
