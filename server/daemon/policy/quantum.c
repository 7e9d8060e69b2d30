/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions have their memory on a GPU; see quantum.h. */
#include "server/daemon/policy/quantum.h"

#include <stddef.h>

/* Until something has been measured: 50 GB/s. */
#define FIRST_NS_PER_BYTE 0.02
/* A rate is measured with at least so much. */
#define RATE_BYTES ((uint64_t)1 << 20)

const char *ckt_quantum_reason_text(enum ckt_quantum_reason reason)
{
	static const char *const texts[CKT_QUANTUM_REASONS] = {
		[CKT_QUANTUM_NONE] = "",
		[CKT_QUANTUM_FITS] = "there is room for it",
		[CKT_QUANTUM_BETWEEN] = "there is room for it until an earlier session gets more",
		[CKT_QUANTUM_BEHIND] = "the room for it is on its way out",
		[CKT_QUANTUM_AHEAD] = "a part of it fits, and the room for the rest leaves soon",
		[CKT_QUANTUM_WAS_IDLE] = "it was idle, and another session waits for the memory",
		[CKT_QUANTUM_OVER] =
			"its quantum is over, and another session waits for the memory",
		[CKT_QUANTUM_GAVE_WAY] = "it had come in while an earlier session waited",
		[CKT_QUANTUM_IDLE_LONG] = "it was idle for the time of --idle-memory",
		[CKT_QUANTUM_BY_HAND] = "somebody asked for it",
		[CKT_QUANTUM_STAYED] = "it could not be swapped out",
	};
	return (unsigned)reason < CKT_QUANTUM_REASONS ? texts[reason] : "";
}

void ckt_quantum_init(struct ckt_quantum *quantum, int64_t max_wait_ns)
{
	*quantum = (struct ckt_quantum){.max_wait_ns = max_wait_ns,
		.out_ns_per_byte = FIRST_NS_PER_BYTE,
		.in_ns_per_byte = FIRST_NS_PER_BYTE};
}

void ckt_quantum_add(struct ckt_quantum *quantum, struct ckt_quantum_member *member, int64_t now_ns)
{
	member->in_since_ns = now_ns;
	member->next = quantum->first;
	quantum->first = member;
}

void ckt_quantum_remove(struct ckt_quantum *quantum, struct ckt_quantum_member *member)
{
	for (struct ckt_quantum_member **at = &quantum->first; *at; at = &(*at)->next)
		if (*at == member) {
			*at = member->next;
			return;
		}
}

void ckt_quantum_note(struct ckt_quantum_member *member, int64_t now_ns)
{
	int64_t seen = member->idle_seen_ns;
	bool goes_on = member->out ? !member->want_since_ns : member->idle_since_ns == seen;
	if (seen && !goes_on) {
		int64_t gap = (member->out ? member->want_since_ns : now_ns) - seen;
		member->gap_ns = member->gap_ns ? (member->gap_ns + gap) / 2 : gap;
		member->idle_seen_ns = 0;
	}
	if (!member->out && member->idle_since_ns)
		member->idle_seen_ns = member->idle_since_ns;
	if (!member->want_since_ns)
		member->chosen = member->served = false;
}

/* ---- Times */

int64_t ckt_quantum_cost_ns(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *member, const struct ckt_quantum_member *waiter,
	unsigned gpu)
{
	/* Both ways, also where they are used at one time: see docs/waiting.md. */
	uint64_t in = waiter->out ? waiter->want[gpu] + waiter->got_bytes : member->here[gpu];
	return (int64_t)((double)member->here[gpu] * quantum->out_ns_per_byte +
		(double)in * quantum->in_ns_per_byte);
}

static unsigned waiters(const struct ckt_quantum *quantum, unsigned gpu)
{
	unsigned count = 0;
	for (const struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		count += m->want_since_ns && m->want[gpu];
	return count ? count : 1;
}

int64_t ckt_quantum_length_ns(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *member, const struct ckt_quantum_member *waiter,
	unsigned gpu)
{
	int64_t cost = ckt_quantum_cost_ns(quantum, member, waiter, gpu);
	int64_t length = cost * (100 - CKT_QUANTUM_SWITCH_PERCENT) / CKT_QUANTUM_SWITCH_PERCENT;
	int64_t most = quantum->max_wait_ns / waiters(quantum, gpu) - cost;
	if (length > most)
		length = most;
	return length > cost ? length : cost;
}

/*
 * How long it has to be idle before it leaves for that waiter.  An idle time that is longer than the
 * longer way is long enough: what waits has then come in before the member wants to.  With twice a
 * switch as the limit, two programs that answer in turn took three times as long every second time,
 * because the idle time of one is the answer of the other.
 */
static int64_t patience_ns(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *member, const struct ckt_quantum_member *waiter,
	unsigned gpu)
{
	int64_t both = ckt_quantum_cost_ns(quantum, member, waiter, gpu);
	int64_t out = (int64_t)((double)member->here[gpu] * quantum->out_ns_per_byte);
	int64_t longer = out > both - out ? out : both - out;
	return member->gap_ns >= longer || 2 * both < CKT_QUANTUM_IDLE_LEAST_NS
		? CKT_QUANTUM_IDLE_LEAST_NS
		: 2 * both;
}

/* ---- Gangs */

static bool are_mates(const struct ckt_quantum_member *one, const struct ckt_quantum_member *two)
{
	return one != two && one->gang && one->gang == two->gang;
}

/* Since when it waits, or a mate did with whom it waits. */
static int64_t waits_since(
	const struct ckt_quantum *quantum, const struct ckt_quantum_member *member)
{
	int64_t since = member->want_since_ns;
	for (const struct ckt_quantum_member *m = quantum->first; m && member->gang; m = m->next) {
		/* One that came in before this one waited is of an earlier round. */
		int64_t of_mate = m->want_since_ns                           ? m->want_since_ns
			: !m->out && m->in_since_ns >= member->want_since_ns ? m->waited_ns
									     : 0;
		if (are_mates(m, member) && of_mate && of_mate < since)
			since = of_mate;
	}
	return since;
}

/* When its quantum began: when the last of its gang came in. */
static int64_t begun_ns(const struct ckt_quantum *quantum, const struct ckt_quantum_member *member)
{
	int64_t since = member->in_since_ns;
	for (const struct ckt_quantum_member *m = quantum->first; m && member->gang; m = m->next)
		if (are_mates(m, member) && !m->out && m->waited_ns && m->in_since_ns > since)
			since = m->in_since_ns;
	return since;
}

/* A mate is not there. */
static bool is_stalled(const struct ckt_quantum *quantum, const struct ckt_quantum_member *member)
{
	for (const struct ckt_quantum_member *m = quantum->first; m && member->gang; m = m->next)
		if (are_mates(m, member) && (m->out || m->leaving))
			return true;
	return false;
}

/* ---- Who leaves */

static bool is_there(const struct ckt_quantum_member *member,
	const struct ckt_quantum_member *waiter, unsigned gpu)
{
	return member != waiter && member->here[gpu] && !member->out && !member->leaving &&
		!member->coming && !member->fixed && !member->chosen;
}

/* When the member may leave for that waiter, by time alone; *ret_reason: why. */
static int64_t leaves_ns(const struct ckt_quantum *quantum, const struct ckt_quantum_member *member,
	const struct ckt_quantum_member *waiter, unsigned gpu, int64_t now_ns,
	enum ckt_quantum_reason *ret_reason)
{
	int64_t at =
		begun_ns(quantum, member) + ckt_quantum_length_ns(quantum, member, waiter, gpu);
	*ret_reason = CKT_QUANTUM_OVER;
	if (member->between && member->in_since_ns > waiter->want_since_ns) {
		at = member->in_since_ns;
		*ret_reason = CKT_QUANTUM_GAVE_WAY;
	}
	if (member->idle_since_ns) {
		int64_t idle = member->idle_since_ns + patience_ns(quantum, member, waiter, gpu);
		if (idle <= at || idle <= now_ns) {
			at = idle < at ? idle : at;
			*ret_reason = CKT_QUANTUM_WAS_IDLE;
		}
	}
	return at > member->skip_until_ns ? at : member->skip_until_ns;
}

/* Whether the first is needed less than the second. */
static bool is_needed_less(const struct ckt_quantum *quantum, const struct ckt_quantum_member *one,
	const struct ckt_quantum_member *two)
{
	bool stalled = is_stalled(quantum, one);
	if (!one->idle_since_ns != !two->idle_since_ns)
		return one->idle_since_ns != 0;
	if (one->idle_since_ns && one->idle_since_ns != two->idle_since_ns)
		return one->idle_since_ns < two->idle_since_ns;
	if (stalled != is_stalled(quantum, two))
		return stalled;
	if (one->priority != two->priority)
		return one->priority < two->priority;
	if (one->weight != two->weight)
		return one->weight < two->weight;
	return one->in_since_ns < two->in_since_ns;
}

/* The next one that leaves, so that the waiter gets `need` bytes more. */
static void choose_victim(struct ckt_quantum *quantum, struct ckt_quantum_member *waiter,
	unsigned gpu, uint64_t need, int64_t now_ns, struct ckt_quantum_decision *decision)
{
	uint64_t sum = 0;
	struct ckt_quantum_member *least = NULL, *alone = NULL;
	enum ckt_quantum_reason reason;
	for (struct ckt_quantum_member *m = quantum->first; m; m = m->next) {
		if (!is_there(m, waiter, gpu))
			continue;
		int64_t at = leaves_ns(quantum, m, waiter, gpu, now_ns, &reason);
		if (at > now_ns) {
			if (!decision->again_ns || at < decision->again_ns)
				decision->again_ns = at;
			continue;
		}
		sum += m->here[gpu];
		if (!least || is_needed_less(quantum, m, least))
			least = m;
		if (m->here[gpu] >= need && (!alone || is_needed_less(quantum, m, alone)))
			alone = m;
	}
	if (sum < need || !least)
		return;
	/* One that suffices by itself spares the others, unless they are idle. */
	if (least->here[gpu] < need && alone && !least->idle_since_ns == !alone->idle_since_ns)
		least = alone;
	leaves_ns(quantum, least, waiter, gpu, now_ns, &decision->reason);
	decision->step = CKT_QUANTUM_EVICT;
	decision->member = least;
	decision->waiter = waiter;
}

/* ---- Who is served */

static bool waits(const struct ckt_quantum_member *member, unsigned gpu, int64_t now_ns)
{
	return member->want_since_ns && member->want[gpu] && !member->chosen && !member->coming &&
		!member->leaving && now_ns >= member->passed_until_ns &&
		(!member->out || now_ns >= member->skip_until_ns);
}

/* 0: both wait since the same time. */
static int64_t waits_longer(
	const struct ckt_quantum_member *one, const struct ckt_quantum_member *two)
{
	int64_t difference = two->gang_waits_ns - one->gang_waits_ns;
	return difference ? difference : two->want_since_ns - one->want_since_ns;
}

/* Of those that wait, the next after that one; NULL: there is none. */
static struct ckt_quantum_member *next_waiter(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *after, unsigned gpu, int64_t now_ns)
{
	struct ckt_quantum_member *next = NULL;
	bool passed = false;
	for (struct ckt_quantum_member *m = quantum->first; m; m = m->next) {
		if (m == after) {
			passed = true;
			continue;
		}
		if (!waits(m, gpu, now_ns))
			continue;
		int64_t longer = after ? waits_longer(m, after) : -1;
		if (longer > 0 || (longer == 0 && !passed))
			continue;
		if (!next || waits_longer(m, next) > 0)
			next = m;
	}
	return next;
}

uint64_t ckt_quantum_kept(
	const struct ckt_quantum *quantum, const struct ckt_quantum_member *but, unsigned gpu)
{
	uint64_t bytes = 0;
	for (const struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		bytes += m != but && (m->chosen || m->served) ? m->want[gpu] : 0;
	return bytes;
}

static void admit(struct ckt_quantum_member *member, enum ckt_quantum_reason reason, int64_t now_ns,
	struct ckt_quantum_decision *decision)
{
	bool between = reason == CKT_QUANTUM_BETWEEN;
	member->chosen = true;
	member->served = false;
	member->chosen_ns = now_ns;
	member->between = between;
	member->reason = reason;
	if (!member->out && !between) {
		member->in_since_ns = now_ns;
		member->waited_ns = member->want_since_ns;
	}
	decision->step = CKT_QUANTUM_ADMIT;
	decision->member = member;
	decision->reason = member->reason;
	member->ahead = reason == CKT_QUANTUM_AHEAD;
	decision->behind = member->ahead || reason == CKT_QUANTUM_BEHIND;
}

/* Whether it is worth while to let one in before that time. */
static bool fits_between(const struct ckt_quantum *quantum, const struct ckt_quantum_member *member,
	unsigned gpu, int64_t until_ns, int64_t now_ns)
{
	double ns = (quantum->in_ns_per_byte + quantum->out_ns_per_byte) * 4;
	return !until_ns || now_ns + (int64_t)((double)member->want[gpu] * ns) < until_ns;
}

static void forget_old(struct ckt_quantum *quantum, int64_t now_ns)
{
	for (struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		if (m->chosen && !m->coming && now_ns - m->chosen_ns >= CKT_QUANTUM_KEPT_NS) {
			m->chosen = false;
			m->passed_until_ns = now_ns + CKT_QUANTUM_KEPT_NS;
		}
}

/* Of a GPU, for those that wait. */
struct room {
	uint64_t left;    /* there now */
	uint64_t leaving; /* comes when members have left */
	uint64_t giving;  /* of that, of members that have begun to */
};

static uint64_t beyond(uint64_t bytes, uint64_t less)
{
	return bytes > less ? bytes - less : 0;
}

/* but: what is kept for that one is its own. */
static struct room count_room(const struct ckt_quantum *quantum,
	const struct ckt_quantum_member *but, unsigned gpu, uint64_t free_bytes)
{
	uint64_t kept = 0, leaving = 0, giving = 0;
	for (const struct ckt_quantum_member *m = quantum->first; m; m = m->next) {
		kept += m->chosen && m != but ? m->want[gpu] : 0;
		leaving += m->leaving ? m->here[gpu] : 0;
		giving += m->leaving && m->giving ? m->here[gpu] : 0;
	}
	uint64_t missing = beyond(kept, free_bytes);
	return (struct room){.left = beyond(free_bytes, kept),
		.leaving = beyond(leaving, missing),
		.giving = beyond(giving, missing)};
}

bool ckt_quantum_gives(const struct ckt_quantum *quantum, unsigned gpu)
{
	for (const struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		if (m->leaving && m->giving && m->here[gpu])
			return true;
	return false;
}

/* Whether so many bytes could be made free by members that leave. */
static bool can_leave(const struct ckt_quantum *quantum, const struct ckt_quantum_member *waiter,
	unsigned gpu, uint64_t bytes)
{
	uint64_t sum = 0;
	for (const struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		sum += is_there(m, waiter, gpu) ? m->here[gpu] : 0;
	return sum >= bytes;
}

/* Whether the rest leaves by the time that the part is in which fits now. */
static bool comes_ahead(const struct ckt_quantum *quantum, const struct ckt_quantum_member *member,
	unsigned gpu, const struct room *room, int64_t now_ns, int64_t leaves_ns)
{
	uint64_t coming = room->left + room->leaving;
	if (!member->out || !member->follows || room->left < CKT_QUANTUM_AHEAD_LEAST)
		return false;
	if (member->want[gpu] <= coming)
		return true;
	int64_t takes_ns = (int64_t)((double)room->left * quantum->in_ns_per_byte);
	return leaves_ns && leaves_ns - now_ns <= takes_ns + CKT_QUANTUM_IDLE_LEAST_NS &&
		can_leave(quantum, member, gpu, member->want[gpu] - coming);
}

/* Of the first one that waits; true: something is on its way for it, or decided. */
static bool serve(struct ckt_quantum *quantum, struct ckt_quantum_member *member, unsigned gpu,
	const struct room *room, int64_t now_ns, struct ckt_quantum_decision *decision)
{
	uint64_t coming = room->left + room->leaving;
	if (member->out && member->follows && member->want[gpu] <= room->left + room->giving) {
		admit(member, CKT_QUANTUM_BEHIND, now_ns, decision);
		return true;
	}
	if (member->want[gpu] > coming)
		choose_victim(quantum, member, gpu, member->want[gpu] - coming, now_ns, decision);
	if (!decision->step &&
		comes_ahead(quantum, member, gpu, room, now_ns, decision->again_ns)) {
		admit(member, CKT_QUANTUM_AHEAD, now_ns, decision);
		return true;
	}
	member->served = decision->step || member->want[gpu] <= coming;
	return member->served;
}

/* Of one that comes in, and not all that it wants leaves yet: who leaves for it.  True: decided. */
static bool serve_ahead(struct ckt_quantum *quantum, struct ckt_quantum_member *member,
	unsigned gpu, uint64_t free_bytes, int64_t now_ns, struct ckt_quantum_decision *decision)
{
	const struct room room = count_room(quantum, member, gpu, free_bytes);
	uint64_t coming = room.left + room.leaving;
	if (member->want[gpu] <= room.left + room.giving)
		member->ahead = false;
	if (member->want[gpu] <= coming)
		return false;
	choose_victim(quantum, member, gpu, member->want[gpu] - coming, now_ns, decision);
	/* Who was to leave does not: what has come in goes again. */
	if (!decision->step &&
		(!decision->again_ns || decision->again_ns - now_ns > CKT_QUANTUM_KEPT_NS))
		member->ahead = false;
	return decision->step != CKT_QUANTUM_WAIT;
}

/* Of several GPUs: it comes in when all have room.  One had, and room is kept for it; this one may not have. */
static bool waits_for_rest(const struct ckt_quantum_member *member)
{
	unsigned gpus = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		gpus += member->want[gpu] != 0;
	return member->chosen && member->out && !member->coming && gpus > 1;
}

void ckt_quantum_decide(struct ckt_quantum *quantum, unsigned gpu, uint64_t free_bytes,
	int64_t now_ns, struct ckt_quantum_decision *ret_decision)
{
	struct ckt_quantum_member *first = NULL;
	*ret_decision = (struct ckt_quantum_decision){0};
	forget_old(quantum, now_ns);
	for (struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		m->gang_waits_ns = waits_since(quantum, m);
	for (struct ckt_quantum_member *m = quantum->first; m; m = m->next)
		if (m->want[gpu] && (m->ahead || waits_for_rest(m)) &&
			serve_ahead(quantum, m, gpu, free_bytes, now_ns, ret_decision))
			return;
	const struct room room = count_room(quantum, NULL, gpu, free_bytes);
	for (struct ckt_quantum_member *m = NULL; (m = next_waiter(quantum, m, gpu, now_ns));) {
		if (m->want[gpu] <= room.left &&
			(!first || fits_between(quantum, m, gpu, ret_decision->again_ns, now_ns))) {
			admit(m, first ? CKT_QUANTUM_BETWEEN : CKT_QUANTUM_FITS, now_ns,
				ret_decision);
			return;
		}
		if (!first && serve(quantum, m, gpu, &room, now_ns, ret_decision))
			return;
		first = first ? first : m;
	}
}

/* ---- Switches */

static void measure(double *rate, uint64_t bytes, int64_t ns)
{
	if (bytes >= RATE_BYTES && ns > 0)
		*rate = (*rate + (double)ns / (double)bytes) / 2;
}

static void count(struct ckt_quantum_member *member, int64_t now_ns)
{
	member->switched_ns[(member->outs + member->ins) % CKT_QUANTUM_SWITCHES_KEPT] = now_ns;
}

void ckt_quantum_left(struct ckt_quantum *quantum, struct ckt_quantum_member *member,
	uint64_t bytes, int64_t ns, int64_t now_ns)
{
	/* The first time the host makes the pages for it, which takes ten times as long. */
	if (member->outs)
		measure(&quantum->out_ns_per_byte, bytes, ns);
	count(member, now_ns);
	member->outs++;
	member->out = true;
	member->leaving = member->giving = member->between = false;
	member->chosen = member->served = false;
	member->failures = 0;
	member->skip_until_ns = 0;
}

void ckt_quantum_measure_in(struct ckt_quantum *quantum, uint64_t bytes, int64_t ns)
{
	measure(&quantum->in_ns_per_byte, bytes, ns);
}

void ckt_quantum_came(struct ckt_quantum_member *member, int64_t now_ns)
{
	count(member, now_ns);
	member->ins++;
	member->out = member->chosen = member->served = member->ahead = false;
	member->waited_ns = member->want_since_ns;
	member->want_since_ns = 0;
	member->in_since_ns = now_ns;
	member->idle_since_ns = member->idle_seen_ns = 0;
}

void ckt_quantum_failed(struct ckt_quantum_member *member, int64_t now_ns)
{
	int64_t skip = CKT_QUANTUM_SKIP_NS;
	for (unsigned i = 0; i < member->failures && skip < CKT_QUANTUM_SKIP_MOST_NS; i++)
		skip *= 2;
	member->failures++;
	member->leaving = member->giving = member->coming = false;
	member->chosen = member->served = member->ahead = false;
	member->skip_until_ns = now_ns + skip;
}

unsigned ckt_quantum_switches(const struct ckt_quantum_member *member, int64_t now_ns)
{
	unsigned switches = 0;
	for (unsigned i = 0; i < CKT_QUANTUM_SWITCHES_KEPT; i++)
		switches += member->switched_ns[i] &&
			now_ns - member->switched_ns[i] < INT64_C(1000000000);
	return switches;
}
