/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that leave and come in together; see together.h. */
#include "server/daemon/session/together.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "server/daemon/events.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/quanta.h"
#include "server/daemon/session/session.h"

static struct ckt_together *of(const struct ckt_session *session)
{
	return session->quantum.together;
}

/* ---- Who belongs together */

static bool shares(const struct ckt_session *session)
{
	const struct ckt_activity *page = session->quantum.page;
	return session->quantum.stopped ||
		(page ? __atomic_load_n(&page->shares, __ATOMIC_RELAXED)
		      : session->group.mate_count != 0);
}

static struct ckt_session *find_serial(const struct ckt_server *server, uint64_t serial)
{
	struct ckt_session *s = server->sessions;
	while (s && s->serial != serial)
		s = s->next;
	return s;
}

/* Everybody's label becomes the least serial of those that it is connected with. */
static void label(struct ckt_server *server)
{
	bool changed = true;
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		s->quantum.label = s->quantum.is_member && s->phase == CKT_SESSION_LIVE && shares(s)
			? s->serial
			: 0;
	while (changed) {
		changed = false;
		for (struct ckt_session *s = server->sessions; s; s = s->next)
			for (size_t i = 0; s->quantum.label && i < s->group.mate_count; i++) {
				struct ckt_session *mate = find_serial(server, s->group.mates[i]);
				if (!mate || mate->quantum.label <= s->quantum.label)
					continue;
				mate->quantum.label = s->quantum.label;
				changed = true;
			}
	}
}

/* The same sessions as before, or some of them move: then they stay as they are. */
static bool is_as_it_was(const struct ckt_server *server, uint64_t label)
{
	const struct ckt_together *known = NULL;
	unsigned count = 0;
	bool same = true, first = true;
	for (const struct ckt_session *s = server->sessions; s; s = s->next) {
		if (s->quantum.label != label)
			continue;
		if (of(s) && of(s)->step)
			return true;
		same &= first || of(s) == known;
		known = of(s);
		first = false;
		count++;
	}
	return same && known && known->count == count;
}

static void join(struct ckt_together *together, struct ckt_session *session)
{
	session->quantum.together = together;
	together->count++;
	together->member.out |= session->quantum.stopped;
	ckt_quantum_remove(&session->server->quantum, &session->quantum.member);
}

static void part(struct ckt_session *session, int64_t now_ns)
{
	struct ckt_together *together = of(session);
	if (!together)
		return;
	together->count--;
	session->quantum.together = NULL;
	ckt_quantum_add(&session->server->quantum, &session->quantum.member, now_ns);
}

static void gather(struct ckt_server *server, uint64_t label, int64_t now_ns)
{
	struct ckt_together *together = calloc(1, sizeof *together);
	if (!together)
		return;
	together->server = server;
	together->member.several = true;
	ckt_quantum_add(&server->quantum, &together->member, now_ns);
	together->next = server->togethers;
	server->togethers = together;
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->quantum.label == label) {
			part(s, now_ns);
			join(together, s);
		}
}

static void free_empty(struct ckt_server *server)
{
	for (struct ckt_together **at = &server->togethers; *at;) {
		struct ckt_together *together = *at;
		if (together->count || together->step) {
			at = &together->next;
			continue;
		}
		*at = together->next;
		ckt_quantum_remove(&server->quantum, &together->member);
		free(together);
	}
}

void ckt_together_gather(struct ckt_server *server, int64_t now_ns)
{
	label(server);
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		uint64_t label = s->quantum.label;
		if (label == s->serial && !is_as_it_was(server, label))
			gather(server, label, now_ns);
		else if (!label && of(s) && !of(s)->step)
			part(s, now_ns);
	}
	free_empty(server);
}

void ckt_together_leave(struct ckt_session *session)
{
	struct ckt_together *together = of(session);
	if (!together)
		return;
	together->count--;
	session->quantum.together = NULL;
	if (together->asked == session)
		together->asked = NULL;
	free_empty(session->server);
}

void ckt_together_close(struct ckt_server *server)
{
	while (server->togethers) {
		struct ckt_together *together = server->togethers;
		server->togethers = together->next;
		ckt_timer_clear(&together->meeting.timer);
		ckt_quantum_remove(&server->quantum, &together->member);
		free(together);
	}
}

/* ---- What is known of them */

static bool anybody(const struct ckt_together *together, bool (*is)(const struct ckt_session *))
{
	for (const struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (of(s) == together && is(s))
			return true;
	return false;
}

static bool is_out(const struct ckt_session *session)
{
	return session->quantum.member.out;
}

static bool is_stopped(const struct ckt_session *session)
{
	return session->quantum.stopped;
}

static int64_t earlier(int64_t one, int64_t two)
{
	return !one || (two && two < one) ? two : one;
}

static void add_facts(struct ckt_together *together, const struct ckt_session *session)
{
	struct ckt_quantum_member *all = &together->member;
	const struct ckt_daemon_quantum *quantum = &session->quantum;
	const struct ckt_quantum_member *one = &quantum->member;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++) {
		all->here[gpu] += one->here[gpu];
		all->want[gpu] += !all->out                    ? one->want[gpu]
			: one->out && quantum->away >> gpu & 1 ? quantum->gone[gpu]
							       : 0;
	}
	all->want_since_ns = earlier(all->want_since_ns, one->want_since_ns);
	all->fixed |= one->fixed;
	all->priority = one->priority < all->priority ? one->priority : all->priority;
	all->weight = one->weight < all->weight ? one->weight : all->weight;
	/* Idle since the last one is. */
	if (!one->idle_since_ns)
		all->idle_since_ns = 0;
	else if (all->idle_since_ns && one->idle_since_ns > all->idle_since_ns)
		all->idle_since_ns = one->idle_since_ns;
}

static void collect(struct ckt_together *together, int64_t now_ns)
{
	struct ckt_quantum_member *all = &together->member;
	/* They come in unasked, or what has left of them is in already. */
	bool unasked = together->half || all->coming || (all->out && !anybody(together, is_out));
	int64_t since = unasked ? all->want_since_ns : 0;
	memset(all->here, 0, sizeof all->here);
	memset(all->want, 0, sizeof all->want);
	all->want_since_ns = 0;
	all->fixed = false;
	all->priority = INT32_MAX;
	all->weight = UINT32_MAX;
	all->idle_since_ns = 1;
	for (const struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (of(s) == together)
			add_facts(together, s);
	all->want_since_ns = earlier(all->want_since_ns, since);
	if (all->out && !all->want_since_ns)
		memset(all->want, 0, sizeof all->want);
	if (all->idle_since_ns == 1)
		all->idle_since_ns = 0;
	ckt_quantum_note(all, now_ns);
}

void ckt_together_facts(struct ckt_server *server, int64_t now_ns)
{
	for (struct ckt_together *together = server->togethers; together; together = together->next)
		collect(together, now_ns);
}

bool ckt_together_bars(const struct ckt_session *session)
{
	return of(session) && session->quantum.stopped && !of(session)->step &&
		of(session)->member.out;
}

bool ckt_together_grants(const struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	const struct ckt_daemon_quantum *quantum = &session->quantum;
	return of(session) && of(session)->step == CKT_TOGETHER_IN && quantum->member.out &&
		quantum->away >> gpu & 1 && bytes <= quantum->gone[gpu];
}

/* ---- Steps */

static void next_step(struct ckt_together *together);

static void answered(struct ckt_session *session, void *data, int error,
	const ckt_worker_swap_res *res, const char *message)
{
	struct ckt_together *together = data;
	struct ckt_daemon_quantum *quantum = &session->quantum;
	/* It has died, and the server may not know that yet; or it comes in by itself. */
	bool gone = session->phase != CKT_SESSION_LIVE ||
		(!res && (error == -ECONNRESET || error == -EPIPE));
	quantum->member.leaving = quantum->member.coming = false;
	quantum->stopped = !gone &&
		(together->step == CKT_TOGETHER_STOP ? !error
						     : error || together->step != CKT_TOGETHER_GO);
	if (together->step == CKT_TOGETHER_STOP || error)
		ckt_quantum_answered(session, error && !res && !gone);
	if (error && !gone && !together->error) {
		together->error = error;
		snprintf(together->message, sizeof together->message, "session %s: %.400s",
			session->id, message);
	}
	if (--together->awaited == 0)
		next_step(together);
}

static void call(struct ckt_together *together, struct ckt_session *session)
{
	struct ckt_daemon_quantum *quantum = &session->quantum;
	const unsigned drain_ms = together->server->options.drain * 1000;
	quantum->member.leaving = together->out;
	quantum->member.coming = !together->out;
	quantum->member.reason = together->member.reason;
	quantum->begun_ns = ckt_now_ns();
	together->awaited++;
	int error = ckt_session_swap_together(
		session, together->step, drain_ms ? drain_ms : 1, answered, together);
	if (error)
		answered(session, together, error, NULL, strerror(-error));
}

/* Of all that it is for.  The answers come later, but for those of calls that fail. */
static void begin_step(struct ckt_together *together, enum ckt_together_step step)
{
	together->step = step;
	together->awaited = 1;
	for (struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (of(s) == together && s->phase == CKT_SESSION_LIVE &&
			(step == CKT_TOGETHER_STOP || s->quantum.stopped))
			call(together, s);
	if (--together->awaited == 0)
		next_step(together);
}

static void tell_all(struct ckt_together *together, const char *why)
{
	for (struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (of(s) == together)
			ckt_quantum_stays(s, why);
}

static void end_move(struct ckt_together *together)
{
	struct ckt_server *server = together->server;
	ckt_swap_done done = together->done;
	struct ckt_session *asked = together->asked;
	ckt_worker_swap_res res = {.message = together->message};
	together->step = 0;
	together->done = NULL;
	together->asked = NULL;
	together->member.leaving = together->member.giving = together->member.coming = false;
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (of(s) == together)
			s->quantum.member.leaving = s->quantum.member.coming = false;
	if (done && asked) {
		for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
			res.bytes += asked->quantum.gone[gpu];
		res.swapped = asked->quantum.stopped;
		done(asked, together->data, together->error, &res, together->message);
	}
	free_empty(server);
	ckt_quantum_soon(server);
}

/* They are where they were, or half of them is out. */
static void end_failed(struct ckt_together *together)
{
	struct ckt_quantum_member *member = &together->member;
	int64_t now = ckt_now_ns();
	bool out = anybody(together, is_out);
	ckt_quantum_failed(member, now);
	member->out = out || anybody(together, is_stopped);
	together->half = member->out && together->out;
	if (member->out && !member->want_since_ns)
		member->want_since_ns = now;
	if (together->half) {
		/* In at once, out again after a while. */
		member->want_since_ns = now;
		together->skip_ns = member->skip_until_ns - now;
		member->skip_until_ns = 0;
	}
	if (together->out)
		tell_all(together, together->message);
	else
		ckt_info("sessions that belong together do not come in: %s", together->message);
	end_move(together);
}

static void end_well(struct ckt_together *together)
{
	struct ckt_quantum_member *member = &together->member;
	int64_t now = ckt_now_ns();
	for (struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (of(s) == together && together->out)
			*s->quantum.note = 0;
	/* What it took is measured for each. */
	if (together->out)
		ckt_quantum_left(&together->server->quantum, member, 0, 0, now);
	else
		ckt_quantum_came(member, now);
	if (together->out)
		member->want_since_ns = 0;
	else if (together->half)
		member->skip_until_ns = now + together->skip_ns;
	together->half = false;
	end_move(together);
}

static void next_out(struct ckt_together *together)
{
	bool failed = together->error != 0;
	switch (together->step) {
	case CKT_TOGETHER_STOP:
		/* What stands still does so without being held. */
		ckt_together_meet_end(together);
		begin_step(together, failed ? CKT_TOGETHER_OPEN : CKT_TOGETHER_DROP);
		return;
	case CKT_TOGETHER_DROP:
		if (!failed)
			ckt_fault(CKT_FAULT_TOGETHER_SERVER);
		begin_step(together, failed ? CKT_TOGETHER_OPEN : CKT_TOGETHER_OUT);
		return;
	case CKT_TOGETHER_OUT:
		if (!failed)
			end_well(together);
		else if (anybody(together, is_out))
			end_failed(together);
		else
			begin_step(together, CKT_TOGETHER_OPEN);
		return;
	case CKT_TOGETHER_OPEN:
		begin_step(together, CKT_TOGETHER_GO);
		return;
	default:
		end_failed(together);
	}
}

static void next_in(struct ckt_together *together)
{
	bool failed = together->error != 0;
	switch (together->step) {
	case CKT_TOGETHER_IN:
		together->returns = failed;
		begin_step(together, failed ? CKT_TOGETHER_DROP : CKT_TOGETHER_OPEN);
		return;
	case CKT_TOGETHER_DROP:
		begin_step(together, CKT_TOGETHER_OUT);
		return;
	case CKT_TOGETHER_OUT:
		end_failed(together);
		return;
	case CKT_TOGETHER_OPEN:
		/* One that cannot be asked holds nobody up for longer. */
		begin_step(together, CKT_TOGETHER_GO);
		return;
	default:
		if (failed)
			end_failed(together);
		else
			end_well(together);
	}
}

static void next_step(struct ckt_together *together)
{
	if (!together->count)
		end_move(together);
	else if (together->out)
		next_out(together);
	else
		next_in(together);
}

void ckt_together_met(struct ckt_together *together)
{
	if (together->count && !together->error) {
		begin_step(together, CKT_TOGETHER_STOP);
		return;
	}
	ckt_together_meet_end(together);
	if (together->count)
		end_failed(together);
	else
		end_move(together);
}

static void begin_move(struct ckt_together *together, bool out)
{
	together->out = out;
	together->returns = false;
	together->error = 0;
	*together->message = 0;
	together->member.leaving = out;
	together->member.giving = false;
	together->member.coming = !out;
	ckt_info("%u sessions that belong together %s", together->count, out ? "leave" : "come in");
	if (!out)
		begin_step(together, CKT_TOGETHER_IN);
	else if (!ckt_together_must_meet(together))
		begin_step(together, CKT_TOGETHER_STOP);
	else {
		together->step = CKT_TOGETHER_MEET;
		ckt_together_meet(together);
	}
}

void ckt_together_evict(struct ckt_together *together, enum ckt_quantum_reason reason)
{
	together->member.reason = reason;
	begin_move(together, true);
}

/* The limits of each, and the GPUs' budgets for all. */
static bool fits(const struct ckt_together *together)
{
	const struct ckt_server *server = together->server;
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		for (unsigned gpu = 0; of(s) == together && gpu < CKT_DEVICES_MAX; gpu++) {
			const struct ckt_ledger_holder *holder = &s->lease.holder;
			bool away = s->quantum.member.out && s->quantum.away >> gpu & 1;
			if (away &&
				s->quantum.gone[gpu] > ckt_ledger_left(&server->ledger,
							       &holder->subject, gpu,
							       holder->contexts >> gpu & 1))
				return false;
		}
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (together->member.want[gpu] && server->ledger.budgets[gpu] &&
			together->member.want[gpu] + ckt_ledger_budget_used(&server->ledger, gpu) >
				server->ledger.budgets[gpu])
			return false;
	return true;
}

void ckt_together_admit(struct ckt_together *together)
{
	if (together->member.out && !together->step && fits(together))
		begin_move(together, false);
}

void ckt_together_evict_idle(struct ckt_server *server, int64_t now_ns, int64_t after_ns)
{
	for (struct ckt_together *t = server->togethers; t; t = t->next) {
		const struct ckt_quantum_member *member = &t->member;
		bool may = !t->step && !member->out && !member->want_since_ns &&
			member->idle_since_ns && now_ns >= member->skip_until_ns &&
			now_ns - member->idle_since_ns >= after_ns;
		for (const struct ckt_session *s = server->sessions; s; s = s->next)
			may &= of(s) != t ||
				(ckt_quantum_may_move(s) && !s->lease.holder.unsettled);
		if (may)
			ckt_together_evict(t, CKT_QUANTUM_IDLE_LONG);
	}
}

/* Of GPUs without a budget nobody decides: who wants to come in does. */
static bool comes_unasked(const struct ckt_together *together, int64_t now_ns)
{
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (together->member.want[gpu] && together->server->ledger.budgets[gpu])
			return false;
	return together->member.want_since_ns && now_ns >= together->member.skip_until_ns;
}

void ckt_together_continue(struct ckt_server *server, int64_t now_ns)
{
	for (struct ckt_together *t = server->togethers, *next; t; t = next) {
		next = t->next;
		if (t->member.out && !t->step && t->member.want_since_ns &&
			now_ns >= t->member.skip_until_ns && !anybody(t, is_out))
			begin_move(t, false);
		else if (t->member.chosen || comes_unasked(t, now_ns))
			ckt_together_admit(t);
	}
}

int ckt_together_move(struct ckt_session *session, bool out, ckt_swap_done done, void *data)
{
	struct ckt_together *together = of(session);
	bool may = !together->step && together->member.out == !out;
	for (const struct ckt_session *s = session->server->sessions; s; s = s->next)
		may &= of(s) != together || ckt_quantum_may_move(s);
	if (!may)
		return -EBUSY;
	together->done = done;
	together->data = data;
	together->asked = session;
	together->member.reason = CKT_QUANTUM_BY_HAND;
	begin_move(together, out);
	return 0;
}
