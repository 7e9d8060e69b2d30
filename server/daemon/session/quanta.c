/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that swap each other out; see quantum.h. */
#include "server/daemon/session/quanta.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/daemon/events.h"
#include "server/daemon/sealed_page.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/together.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

enum {
	CALL_TIMEOUT_MS = 10000,
	/* Between two looks at who is idle: while somebody waits, and otherwise. */
	WAITED_LOOK_MS = 10,
	IDLE_LOOK_MS = 500,
	/* Decisions of one look. */
	STEPS_MAX = 64,
	SILENT_MAX = 3,
};
/* What a worker promised has come by then, or never comes. */
#define PROMISE_NS (2 * NS_PER_S)
/*
 * A move that takes longer ends the session, whatever its worker says of its progress: others wait for
 * it.  20 MB/s is less than any disk does; who follows waits for another one, too.
 */
#define MOVE_NS (120 * NS_PER_S)
#define MOVE_NS_PER_BYTE 50

static unsigned long long mib(uint64_t bytes)
{
	return (unsigned long long)(bytes >> 20);
}

static struct ckt_session *session_of(const struct ckt_quantum_member *member)
{
	return CKT_CONTAINER(member, struct ckt_session, quantum.member);
}

static uint64_t sum(const uint64_t bytes[CKT_DEVICES_MAX])
{
	uint64_t all = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		all += bytes[gpu];
	return all;
}

void ckt_quantum_soon(struct ckt_server *server)
{
	if (server->swaps)
		ckt_timer_set(&server->loop, &server->quantum_timer, 0);
}

/* ---- Out */

void ckt_quantum_stays(struct ckt_session *session, const char *why)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	/* Once, until it has left after all. */
	if (!*quantum->note) {
		ckt_warning("session %s keeps its memory on the GPU, others wait: %s", session->id,
			why);
		ckt_daemon_event(session, CKT_EVENT_NOT_SWAPPED, "%s", why);
	}
	snprintf(quantum->note, sizeof quantum->note, "%s", why);
	quantum->member.reason = CKT_QUANTUM_STAYED;
}

void ckt_quantum_answered(struct ckt_session *session, bool silent)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	quantum->silent = silent ? quantum->silent + 1 : 0;
	if (quantum->silent >= SILENT_MAX && session->phase == CKT_SESSION_LIVE)
		ckt_session_kill(session, "its worker does not obey the scheduler of GPU memory");
}

static void evicted(struct ckt_session *session, void *data, int error,
	const ckt_worker_swap_res *res, const char *message)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	struct ckt_server *server = session->server;
	(void)data;
	if (error && quantum->is_member) {
		bool out = quantum->member.out;
		ckt_quantum_failed(&quantum->member, ckt_now_ns());
		if (out)
			ckt_warning("session %s: %s", session->id, message);
		else
			ckt_quantum_stays(session, message);
	}
	ckt_quantum_answered(session, error && !res);
	ckt_quantum_soon(server);
}

static void evict(struct ckt_session *session, enum ckt_quantum_reason reason)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	unsigned drain_ms = session->server->options.drain * 1000;
	quantum->member.leaving = true;
	quantum->member.giving = quantum->returns = false;
	quantum->member.reason = reason;
	int error = ckt_session_swap_yield(session, drain_ms ? drain_ms : 1, evicted, NULL);
	if (!error)
		return;
	ckt_quantum_failed(&quantum->member, ckt_now_ns());
	ckt_debug("session %s cannot be swapped out now: %s", session->id, strerror(-error));
}

/* ---- In */

static void end_follow(struct ckt_session *session, bool failed, bool answered)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	if (!quantum->follows)
		return;
	quantum->follows = false;
	quantum->cannot_follow = failed && !answered;
	if (failed)
		quantum->member.want[quantum->follow_gpu] += quantum->member.got_bytes;
	quantum->member.got_bytes = 0;
}

static void admitted(struct ckt_session *session, void *data, int error,
	const ckt_worker_swap_res *res, const char *message)
{
	struct ckt_quantum_member *member = &session->quantum.member;
	struct ckt_server *server = session->server;
	(void)data;
	end_follow(session, error != 0, res != NULL);
	if (session->quantum.is_member && member->out) {
		ckt_debug("session %s does not come in: %s", session->id, error ? message : "");
		ckt_quantum_failed(member, ckt_now_ns());
		/* Paused meanwhile: it has nothing to bring in. */
		if (res && !res->swapped)
			member->want_since_ns = 0;
	}
	member->coming = false;
	ckt_quantum_soon(server);
}

static bool fits_everywhere(const struct ckt_session *session)
{
	const struct ckt_server *server = session->server;
	const struct ckt_quantum_member *member = &session->quantum.member;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (member->want[gpu] &&
			member->want[gpu] > ckt_ledger_left(&server->ledger,
						    &session->lease.holder.subject, gpu,
						    session->lease.holder.contexts >> gpu & 1))
			return false;
	return true;
}

/* Whether the limits of its owner leave it what it wants: others that leave do not help there. */
static bool limits_allow(const struct ckt_session *session, unsigned gpu)
{
	return session->quantum.member.want[gpu] <= ckt_ledger_limits_left(&session->server->ledger,
							    &session->lease.holder.subject, gpu);
}

static int begin_follow(struct ckt_session *session, unsigned gpu)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	quantum->follows = true;
	quantum->follow_gpu = gpu;
	quantum->member.got_bytes = quantum->arrived_bytes = quantum->met_bytes = 0;
	int error = ckt_session_swap_follow(session, admitted, NULL);
	quantum->follows = !error;
	return error;
}

static void admit(struct ckt_session *session, unsigned gpu, bool behind)
{
	struct ckt_quantum_member *member = &session->quantum.member;
	if (!member->out || !(behind ? limits_allow(session, gpu) : fits_everywhere(session)))
		return;
	member->coming = true;
	int error =
		behind ? begin_follow(session, gpu) : ckt_session_swap_in(session, admitted, NULL);
	if (!error)
		return;
	member->coming = false;
	ckt_quantum_failed(member, ckt_now_ns());
}

/* ---- Decisions */

bool ckt_quantum_anybody_waits(const struct ckt_server *server)
{
	for (const struct ckt_quantum_member *m = server->quantum.first; m; m = m->next)
		if (m->want_since_ns || m->leaving || m->coming)
			return true;
	return false;
}

static uint64_t free_bytes(const struct ckt_server *server, unsigned gpu)
{
	uint64_t budget = server->ledger.budgets[gpu];
	uint64_t used = ckt_ledger_budget_used(&server->ledger, gpu);
	return used < budget ? budget - used : 0;
}

static void obey_together(const struct ckt_quantum_decision *decision, unsigned gpu)
{
	struct ckt_together *together =
		CKT_CONTAINER(decision->member, struct ckt_together, member);
	bool evict = decision->step == CKT_QUANTUM_EVICT;
	ckt_log(decision->member->failures ? CKT_LOG_DEBUG : CKT_LOG_INFO,
		"%u sessions that belong together %s GPU %u: %s", together->count,
		evict ? "leave" : "get memory of", gpu, ckt_quantum_reason_text(decision->reason));
	if (evict)
		ckt_together_evict(together, decision->reason);
	else
		ckt_together_admit(together);
}

/* Returns when to look again, 0: when something happens. */
static int64_t decide(struct ckt_server *server, unsigned gpu, int64_t now_ns)
{
	struct ckt_quantum_decision decision;
	for (unsigned step = 0; step < STEPS_MAX; step++) {
		ckt_quantum_decide(
			&server->quantum, gpu, free_bytes(server, gpu), now_ns, &decision);
		if (!decision.step)
			return decision.again_ns;
		if (decision.member->several) {
			obey_together(&decision, gpu);
			continue;
		}
		struct ckt_session *session = session_of(decision.member);
		/* Tries that follow one that failed are told of by their result. */
		ckt_log(decision.member->failures ? CKT_LOG_DEBUG : CKT_LOG_INFO,
			"session %s %s GPU %u: %s", session->id,
			decision.step == CKT_QUANTUM_EVICT ? "leaves" : "gets memory of", gpu,
			ckt_quantum_reason_text(decision.reason));
		if (decision.step == CKT_QUANTUM_EVICT)
			evict(session, decision.reason);
		else
			admit(session, gpu, decision.behind);
	}
	return now_ns;
}

static void evict_idle(struct ckt_server *server, int64_t now_ns)
{
	int64_t after_ns = (int64_t)server->options.idle_memory * NS_PER_S;
	for (struct ckt_session *s = server->sessions; s && after_ns; s = s->next) {
		const struct ckt_quantum_member *member = &s->quantum.member;
		if (!s->quantum.is_member || s->quantum.together || member->out ||
			member->leaving || member->coming || member->want_since_ns ||
			!member->idle_since_ns || now_ns < member->skip_until_ns ||
			now_ns - member->idle_since_ns < after_ns || !ckt_quantum_may_move(s) ||
			(!sum(member->here) && !s->lease.holder.unsettled))
			continue;
		ckt_info("session %s leaves: %s", s->id,
			ckt_quantum_reason_text(CKT_QUANTUM_IDLE_LONG));
		evict(s, CKT_QUANTUM_IDLE_LONG);
	}
	if (after_ns)
		ckt_together_evict_idle(server, now_ns, after_ns);
}

/* A worker that said that it gave memory back, and did not. */
static void check_promises(struct ckt_server *server, int64_t now_ns)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		struct ckt_daemon_quantum *quantum = &s->quantum;
		if (!quantum->promised_bytes || s->phase != CKT_SESSION_LIVE)
			continue;
		if (sum(quantum->gone) >= quantum->promised_bytes)
			quantum->promised_bytes = 0;
		else if (now_ns - quantum->promised_ns > PROMISE_NS) {
			quantum->promised_bytes = 0;
			ckt_session_kill(s, "its worker keeps memory that it says it gave back");
		}
	}
}

/* The time that the session may take to leave or to come in. */
static int64_t longest_move_ns(const struct ckt_session *session)
{
	const struct ckt_daemon_quantum *quantum = &session->quantum;
	const struct ckt_server *server = session->server;
	uint64_t bytes = sum(quantum->member.here) + sum(quantum->member.want);
	if (quantum->follows)
		bytes += server->ledger.budgets[quantum->follow_gpu];
	return MOVE_NS + (int64_t)server->options.drain * NS_PER_S +
		(int64_t)bytes * MOVE_NS_PER_BYTE;
}

/* A worker that moves for ever: it would keep its memory, and nobody could make it leave. */
static void check_moves(struct ckt_server *server, int64_t now_ns)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		const struct ckt_quantum_member *member = &s->quantum.member;
		if ((member->leaving || member->coming) && s->phase == CKT_SESSION_LIVE &&
			now_ns - s->quantum.begun_ns > longest_move_ns(s))
			ckt_session_kill(s, "its worker does not end a swap");
	}
}

static void look(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, quantum_timer);
	int64_t now = ckt_now_ns(), again = 0;
	ckt_quantum_facts(server, now);
	check_promises(server, now);
	check_moves(server, now);
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++) {
		int64_t at = server->ledger.budgets[gpu] ? decide(server, gpu, now) : 0;
		again = at && (!again || at < again) ? at : again;
	}
	evict_idle(server, now);
	ckt_together_continue(server, now);
	ckt_lease_look(server);
	ckt_memory_wait_look(server);
	int64_t most_ms = ckt_quantum_anybody_waits(server) ? WAITED_LOOK_MS
		: server->options.idle_memory               ? IDLE_LOOK_MS
							    : 0;
	int64_t delay_ms = again > now ? (again - now + NS_PER_MS - 1) / NS_PER_MS : most_ms;
	if (most_ms && !timer->link)
		ckt_timer_set(&server->loop, timer, delay_ms < most_ms ? delay_ms : most_ms);
}

/* ---- Hooks */

/* One that leaves asks for memory: it could not leave, and wants back what has left. */
static void stop_giving(struct ckt_daemon_quantum *quantum)
{
	if (!quantum->member.giving)
		return;
	quantum->member.giving = false;
	quantum->returns = true;
	if (quantum->together)
		quantum->together->member.giving = false;
}

void ckt_quantum_granted(struct ckt_session *session, unsigned gpu)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	stop_giving(quantum);
	if (!quantum->is_member || !quantum->member.out)
		return;
	quantum->away &= ~(UINT64_C(1) << gpu);
	quantum->member.want[gpu] = 0;
	if (quantum->away)
		return;
	ckt_quantum_came(&quantum->member, ckt_now_ns());
	ckt_quantum_soon(session->server);
}

void ckt_quantum_refused(struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	struct ckt_quantum_member *member = &quantum->member;
	int64_t now = ckt_now_ns();
	stop_giving(quantum);
	if (!quantum->is_member || !member->out)
		return;
	quantum->asked_ns = now;
	quantum->away |= UINT64_C(1) << gpu;
	member->want[gpu] = bytes;
	if (!member->want_since_ns)
		member->want_since_ns = now;
	ckt_quantum_soon(session->server);
}

void ckt_quantum_waits(struct ckt_session *session)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	if (quantum->is_member && quantum->member.out && !quantum->member.leaving)
		ckt_quantum_came(&quantum->member, ckt_now_ns());
	ckt_quantum_soon(session->server);
}

/* Its quantum begins, by whatever way it got the memory. */
void ckt_quantum_waited(struct ckt_session *session)
{
	struct ckt_quantum_member *member = &session->quantum.member;
	member->in_since_ns = ckt_now_ns();
	member->idle_since_ns = 0;
	if (session->quantum.together)
		session->quantum.together->member.in_since_ns = member->in_since_ns;
}

void ckt_quantum_asked(struct ckt_session *session)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	if (!quantum->together || !quantum->stopped)
		return;
	quantum->asked_ns = ckt_now_ns();
	if (!quantum->member.want_since_ns)
		quantum->member.want_since_ns = quantum->asked_ns;
	ckt_quantum_soon(session->server);
}

/* What others have of theirs on the GPU came before these bytes had left. */
static void meet(struct ckt_server *server, unsigned gpu)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->quantum.follows && s->quantum.follow_gpu == gpu)
			s->quantum.met_bytes = s->quantum.arrived_bytes;
}

void ckt_quantum_gave(struct ckt_session *session, unsigned gpu)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	struct ckt_quantum_member *member = &quantum->member;
	/* What it took on one GPU while another had no room. */
	if (quantum->is_member && member->out && quantum->away)
		quantum->away |= UINT64_C(1) << gpu;
	if (member->leaving && !quantum->returns) {
		member->giving = true;
		if (quantum->together)
			quantum->together->member.giving = true;
		meet(session->server, gpu);
	}
	if (quantum->is_member && ckt_quantum_anybody_waits(session->server))
		ckt_quantum_soon(session->server);
}

enum ckt_follow ckt_quantum_follow(struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	struct ckt_server *server = session->server;
	if (!quantum->is_member || !quantum->follows || quantum->follow_gpu != gpu ||
		bytes > quantum->member.want[gpu])
		return CKT_FOLLOW_END;
	quantum->arrived_bytes = quantum->member.got_bytes;
	uint64_t left = ckt_ledger_left(&server->ledger, &session->lease.holder.subject, gpu,
		session->lease.holder.contexts >> gpu & 1);
	if (bytes <= left)
		return CKT_FOLLOW_TAKE;
	return quantum->member.ahead || ckt_quantum_gives(&server->quantum, gpu) ? CKT_FOLLOW_WAIT
										 : CKT_FOLLOW_END;
}

void ckt_quantum_followed(struct ckt_session *session, uint64_t bytes)
{
	session->quantum.member.got_bytes += bytes;
	session->quantum.member.want[session->quantum.follow_gpu] -= bytes;
}

void ckt_quantum_unfollowed(struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	if (!quantum->follows || quantum->follow_gpu != gpu)
		return;
	if (bytes > quantum->member.got_bytes)
		bytes = quantum->member.got_bytes;
	quantum->member.got_bytes -= bytes;
	quantum->member.want[gpu] += bytes;
	if (quantum->arrived_bytes > quantum->member.got_bytes)
		quantum->arrived_bytes = quantum->member.got_bytes;
}

bool ckt_quantum_bars(struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes)
{
	struct ckt_server *server = queue->data;
	const struct ckt_session *session = CKT_CONTAINER(holder, struct ckt_session, lease.holder);
	const struct ckt_quantum_member *member = session->quantum.together
		? &session->quantum.together->member
		: &session->quantum.member;
	if (ckt_together_bars(session))
		return true;
	/* What it had given up for others it takes back, if it cannot leave. */
	if (!server->swaps || !session->quantum.is_member || member->chosen ||
		(member->leaving && session->quantum.returns))
		return false;
	uint64_t kept = ckt_quantum_kept(&server->quantum, member, gpu);
	uint64_t left = free_bytes(server, gpu);
	return kept && (left < kept || bytes > left - kept);
}

void ckt_quantum_moves(struct ckt_session *session, bool out)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	quantum->begun_ns = ckt_now_ns();
	if (out && !quantum->member.out)
		memcpy(quantum->before, session->lease.holder.leased, sizeof quantum->before);
}

static void moved_out(struct ckt_session *session, const ckt_worker_swap_res *res)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	struct ckt_quantum_member *member = &quantum->member;
	int64_t now = ckt_now_ns();
	/* What it gave back came before its answer. */
	ckt_lease_read(session);
	quantum->away = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++) {
		uint64_t left = session->lease.holder.leased[gpu];
		quantum->gone[gpu] = quantum->before[gpu] > left ? quantum->before[gpu] - left : 0;
		quantum->away |= (uint64_t)(quantum->gone[gpu] != 0) << gpu;
	}
	bool counted = !session->lease.holder.unsettled;
	if (!quantum->promised_bytes)
		quantum->promised_ns = now;
	quantum->promised_bytes =
		counted ? res->bytes / CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE : 0;
	quantum->page_ns = ckt_quantum_page_ns(session);
	if (!counted && session->status.gpu >= 0 && session->status.gpu < CKT_DEVICES_MAX)
		quantum->gone[session->status.gpu] = res->bytes;
	if (!member->leaving)
		member->reason = CKT_QUANTUM_BY_HAND;
	ckt_quantum_left(
		&session->server->quantum, member, res->bytes, now - quantum->begun_ns, now);
	quantum->begun_ns = now;
	*quantum->note = 0;
	/* Without memory to take back it comes in without a question. */
	member->out = res->bytes && (quantum->away || !counted);
	if (!member->out && !quantum->together)
		ckt_quantum_failed(member, now);
	member->want_since_ns = 0;
	memset(member->want, 0, sizeof member->want);
	ckt_daemon_event(session, CKT_EVENT_SWAPPED_OUT, "%llu MiB: %s", mib(res->bytes),
		ckt_quantum_reason_text(member->reason));
}

/* Others took what had left before it failed: it waits for that, though its client may be idle. */
static void left_half(struct ckt_session *session)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	if (!quantum->member.out)
		return;
	quantum->half = true;
	quantum->member.want_since_ns = ckt_now_ns();
	memcpy(quantum->member.want, quantum->gone, sizeof quantum->gone);
}

/* ret_text: for the event; empty: it did not follow. */
static void arrived(struct ckt_session *session, char *ret_text, size_t size)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	quantum->half = false;
	if (!quantum->follows)
		return;
	quantum->away = 0;
	ckt_quantum_came(&quantum->member, ckt_now_ns());
	memset(quantum->member.want, 0, sizeof quantum->member.want);
	ckt_info("session %s: %llu of %llu MiB came in while other sessions left", session->id,
		mib(quantum->met_bytes), mib(quantum->member.got_bytes));
	if (quantum->met_bytes)
		snprintf(ret_text, size, ", %llu of them while others left",
			mib(quantum->met_bytes));
}

void ckt_quantum_moved(
	struct ckt_session *session, bool out, int error, const ckt_worker_swap_res *res)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	/* It failed half way. */
	bool half = error && out && res && res->swapped;
	if (!quantum->is_member || !res || (error && !half))
		return;
	if (out) {
		moved_out(session, res);
		if (half)
			left_half(session);
	} else {
		char met[64] = "";
		arrived(session, met, sizeof met);
		ckt_quantum_measure_in(
			&session->server->quantum, res->bytes, ckt_now_ns() - quantum->begun_ns);
		ckt_daemon_event(session, CKT_EVENT_SWAPPED_IN, "%llu MiB%s: %s", mib(res->bytes),
			met, ckt_quantum_reason_text(quantum->member.reason));
	}
	ckt_quantum_soon(session->server);
}

/* ---- Sessions come and go */

static bool wants_page(const struct ckt_session *session)
{
	const struct ckt_server *server = session->server;
	bool swaps = session->quantum.is_member &&
		(server->options.idle_memory ||
			ckt_memory_when_full(session) == CKT_WHEN_FULL_SWAP);
	return !session->quantum.page && session->phase == CKT_SESSION_LIVE &&
		(swaps || server->options.idle_context);
}

static void unmap(struct ckt_session *session)
{
	if (session->quantum.page)
		munmap((void *)session->quantum.page, CKT_ACTIVITY_PAGE_SIZE);
	session->quantum.page = NULL;
}

static void watched(struct ckt_session *session, void *context, int error, void *result)
{
	const ckt_worker_result *res = result;
	(void)context;
	if (error || res->status)
		ckt_debug("session %s: its worker does not tell whether it is idle: %s",
			session->id, strerror(error ? -error : -res->status));
}

void ckt_quantum_watch(struct ckt_session *session)
{
	if (!wants_page(session))
		return;
	const void *page;
	int fd = ckt_sealed_page_make("cricket-activity", CKT_ACTIVITY_PAGE_SIZE, &page);
	if (fd < 0) {
		ckt_debug("session %s: no page for its activity: %s", session->id, strerror(-fd));
		return;
	}
	session->quantum.page = page;
	if (ckt_session_call(session, CKT_WORKER_ACTIVITY, NULL, NULL, fd,
		    (xdrproc_t)xdr_ckt_worker_result, sizeof(ckt_worker_result), CALL_TIMEOUT_MS,
		    watched, NULL))
		unmap(session);
	ckt_quantum_soon(session->server);
}

void ckt_quantum_join(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	struct ckt_daemon_quantum *quantum = &session->quantum;
	if (!server->swaps || quantum->is_member)
		return;
	quantum->is_member = true;
	ckt_quantum_add(&server->quantum, &quantum->member, ckt_now_ns());
	/* An earlier server swapped it out. */
	int gpu = session->status.gpu;
	if (!session->child && session->status.state == CKT_STATE_SWAPPED && gpu >= 0 &&
		gpu < CKT_DEVICES_MAX) {
		quantum->member.out = true;
		quantum->away = UINT64_C(1) << gpu;
	}
}

void ckt_quantum_leave(struct ckt_session *session)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	ckt_together_leave(session);
	if (quantum->is_member)
		ckt_quantum_remove(&session->server->quantum, &quantum->member);
	unmap(session);
	quantum->is_member = false;
	if (ckt_quantum_anybody_waits(session->server))
		ckt_quantum_soon(session->server);
}

void ckt_quantum_limits_changed(struct ckt_server *server)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		ckt_quantum_watch(s);
	ckt_quantum_soon(server);
}

void ckt_quantum_open(struct ckt_server *server)
{
	const struct ckt_options *options = &server->options;
	server->swaps = options->swap_memory || options->swap;
	server->quantum_timer.fire = look;
	ckt_quantum_init(&server->quantum, (int64_t)options->max_wait * NS_PER_S);
	if (server->swaps)
		server->waits.bars = ckt_quantum_bars;
}

void ckt_quantum_close(struct ckt_server *server)
{
	ckt_timer_clear(&server->quantum_timer);
	ckt_together_close(server);
}
