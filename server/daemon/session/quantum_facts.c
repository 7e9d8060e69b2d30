/* SPDX-License-Identifier: Apache-2.0 */
/* What the server knows of sessions that may be swapped, for decisions and listings; see quantum.h. */
#include "base/clock.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/quanta.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/together.h"

/* A worker asks again every 100 ms while its client's command waits. */
#define ASKS_NS INT64_C(5000000000)

#define NS_PER_MS INT64_C(1000000)

bool ckt_quantum_may_move(const struct ckt_session *session)
{
	const struct ckt_daemon_lease *lease = &session->lease;
	return session->phase == CKT_SESSION_LIVE && lease->is_holder && lease->open &&
		!session->swap.busy && !session->holder && !session->job_hold &&
		!session->preloader && !session->metrics.paused;
}

int64_t ckt_quantum_page_ns(const struct ckt_session *session)
{
	const struct ckt_activity *page = session->quantum.page;
	return page ? __atomic_load_n(&page->idle_since_ns, __ATOMIC_RELAXED) : 0;
}

/* The worker's word; one of the future is none. */
static int64_t idle_since(const struct ckt_session *session, int64_t now_ns)
{
	int64_t since = ckt_quantum_page_ns(session);
	return since > 0 && since <= now_ns ? since : 0;
}

/* The least that the rules which fit say of it. */
static void take_weight(const struct ckt_session *session, struct ckt_quantum_member *member)
{
	const struct ckt_limit_table *limits = &session->server->ledger.limits;
	bool has_priority = false;
	member->priority = 0;
	member->weight = 100;
	for (size_t i = 0; i < limits->count; i++) {
		const struct ckt_limit_rule *rule = &limits->rules[i];
		if (!(rule->sets & (CKT_LIMIT_SETS_PRIORITY | CKT_LIMIT_SETS_SHARE)) ||
			!ckt_limit_fits(rule, &session->lease.holder.subject))
			continue;
		if (rule->sets & CKT_LIMIT_SETS_PRIORITY &&
			(!has_priority || rule->priority < member->priority)) {
			member->priority = rule->priority;
			has_priority = true;
		}
		if (rule->sets & CKT_LIMIT_SETS_SHARE && rule->share < member->weight)
			member->weight = rule->share;
	}
}

/*
 * The sessions of a job that share memory or communicators: by the worker's word and the client's
 * name.  Whoever lies is served as if its sessions had all begun to wait with the first one.
 */
static uint64_t gang_of(const struct ckt_session *session)
{
	const struct ckt_activity *page = session->quantum.page;
	uint64_t gang = session->uid + 1;
	if (!*session->job || !page ||
		__atomic_load_n(&page->sleep, __ATOMIC_RELAXED) != CKT_ACTIVITY_SLEEP_TIED)
		return 0;
	for (const char *c = session->job; *c; c++)
		gang = gang * 0x100000001b3u ^ (uint8_t)*c;
	return gang | 1;
}

/* A session of several GPUs comes in when all of them have room: it would hold one for the other. */
static bool follows(const struct ckt_session *session)
{
	const struct ckt_quantum_member *member = &session->quantum.member;
	unsigned gpus = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		gpus += (member->out ? member->want[gpu] : member->here[gpu]) != 0;
	return gpus == 1 && !session->quantum.cannot_follow;
}

/* An earlier wish stays; one that is not repeated is over. */
static void take_wish(struct ckt_session *session, int64_t now_ns)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	struct ckt_quantum_member *member = &quantum->member;
	if (member->out || session->quantum.stopped) {
		if (member->want_since_ns && !member->chosen && !member->coming && !quantum->half &&
			now_ns - quantum->asked_ns > ASKS_NS)
			member->want_since_ns = 0;
		return;
	}
	member->want_since_ns = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		member->want[gpu] = 0;
	/* Of several requests for a GPU the first one: each is granted by itself. */
	for (const struct ckt_wait_request *r = session->server->waits.first; r; r = r->next) {
		if (r->holder != &session->lease.holder || r->gpu >= CKT_DEVICES_MAX ||
			member->want[r->gpu])
			continue;
		int64_t since = r->since_ms * NS_PER_MS;
		member->want[r->gpu] = r->bytes;
		if (!member->want_since_ns || since < member->want_since_ns)
			member->want_since_ns = since > 0 ? since : 1;
	}
}

void ckt_quantum_facts(struct ckt_server *server, int64_t now_ns)
{
	ckt_together_gather(server, now_ns);
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		struct ckt_quantum_member *member = &s->quantum.member;
		if (!s->quantum.is_member)
			continue;
		bool swaps = ckt_memory_when_full(s) == CKT_WHEN_FULL_SWAP;
		bool may = ckt_quantum_may_move(s);
		for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
			member->here[gpu] = s->lease.holder.leased[gpu];
		member->fixed = !swaps || !may || s->lease.holder.unsettled;
		/* A command was executed, and its worker needed to ask for nothing. */
		if (member->out && !member->coming && ckt_quantum_page_ns(s) != s->quantum.page_ns)
			ckt_quantum_came(member, now_ns);
		/* Who cannot leave now may be waited for in a circle. */
		s->lease.holder.swaps =
			swaps && !member->failures && (may || s->swap.busy || member->out);
		member->gang = gang_of(s);
		take_weight(s, member);
		take_wish(s, now_ns);
		member->follows = follows(s);
		if (!member->out)
			member->idle_since_ns = idle_since(s, now_ns);
		/* What ran on has ended since it was tried. */
		if (member->idle_since_ns > s->quantum.begun_ns)
			member->skip_until_ns = 0;
		ckt_quantum_note(member, now_ns);
	}
	ckt_together_facts(server, now_ns);
}

/* ---- Listings */

static uint64_t sum(const uint64_t bytes[CKT_DEVICES_MAX])
{
	uint64_t all = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		all += bytes[gpu];
	return all;
}

static enum ckt_quantum_state state_of(const struct ckt_session *session, int64_t now_ns)
{
	const struct ckt_quantum_member *member = &session->quantum.member;
	if (member->leaving || member->coming || session->swap.busy)
		return CKT_QUANTUM_MOVES;
	if (member->want_since_ns)
		return CKT_QUANTUM_WAITS;
	if (member->out)
		return CKT_QUANTUM_SWAPPED;
	if (*session->quantum.note)
		return CKT_QUANTUM_STAYS;
	return idle_since(session, now_ns) ? CKT_QUANTUM_IDLE : CKT_QUANTUM_RUNS;
}

bool ckt_quantum_describe(const struct ckt_session *session, struct ckt_quantum_view *ret_view)
{
	const struct ckt_daemon_quantum *quantum = &session->quantum;
	const struct ckt_quantum_member *member = &quantum->member;
	int64_t now = ckt_now_ns();
	if (!quantum->is_member)
		return false;
	*ret_view = (struct ckt_quantum_view){.state = state_of(session, now),
		.here_bytes = sum(session->lease.holder.leased),
		.swapped_bytes = member->out ? sum(quantum->gone) : 0,
		.wanted_bytes = member->want_since_ns ? sum(member->want) : 0,
		.waited_ms = member->want_since_ns && now > member->want_since_ns
			? (now - member->want_since_ns) / NS_PER_MS + 1
			: 0,
		.outs = member->outs,
		.ins = member->ins,
		.switches = ckt_quantum_switches(member, now),
		.reason = *quantum->note ? quantum->note : ckt_quantum_reason_text(member->reason)};
	ret_view->gpu = session->status.gpu >= 0 ? (unsigned)session->status.gpu : 0;
	return true;
}

uint64_t ckt_quantum_swapped_bytes(const struct ckt_server *server, unsigned gpu)
{
	uint64_t bytes = 0;
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		bytes += s->quantum.member.out ? s->quantum.gone[gpu] : 0;
	return bytes;
}
