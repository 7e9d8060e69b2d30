/* SPDX-License-Identifier: Apache-2.0 */
/* Events of decisions; see decision_events.h. */
#include "server/daemon/decision_events.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/event_ring.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"

enum {
	WINDOW_MS = 1000,
	/* Events of a kind and a session in that time: far above what programs do. */
	TOLD_MAX = 128,
	/* A program that looks for the largest allocation is refused hundreds of times. */
	REFUSALS_MS = 10000,
};

static bool is_refusal(enum ckt_event_name name)
{
	return name == CKT_EVENT_REFUSED || name == CKT_EVENT_CAPPED;
}

static struct ckt_kept_event *add(struct ckt_server *server, const struct ckt_session *session,
	enum ckt_event_name name, const struct ckt_event_facts *facts, uint64_t folded)
{
	struct ckt_kept_event *kept = ckt_event_ring_add(true, folded);
	kept->name = name;
	kept->facts = *facts;
	kept->general = !session;
	if (session) {
		kept->uid = session->uid;
		snprintf(kept->session, sizeof kept->session, "%s", session->id);
		snprintf(kept->job, sizeof kept->job, "%s", session->job);
		snprintf(kept->program, sizeof kept->program, "%s",
			session->status.program_name ? session->status.program_name : "");
	}
	if (facts->gpu >= 0 && facts->gpu < CKT_DEVICES_MAX) {
		kept->budget_bytes = server->ledger.budgets[facts->gpu];
		kept->used_bytes = ckt_ledger_budget_used(&server->ledger, (unsigned)facts->gpu);
	}
	if (!server->decision_events.deliver.link)
		ckt_timer_set(&server->loop, &server->decision_events.deliver, 0);
	return kept;
}

static struct ckt_event_fold *fold_of(struct ckt_session *session, enum ckt_event_name name)
{
	return &session->folds[name - CKT_EVENT_CAME];
}

/* The end of its time. */
static void unfold(struct ckt_session *session, enum ckt_event_name name)
{
	struct ckt_event_fold *fold = fold_of(session, name);
	if (fold->folded) {
		fold->facts.bytes = is_refusal(name) ? fold->facts.bytes : fold->bytes;
		struct ckt_kept_event *kept =
			add(session->server, session, name, &fold->facts, fold->folded - 1);
		snprintf(kept->detail, sizeof kept->detail, "%s, and %llu more",
			fold->facts.reason ? fold->facts.reason : "the last one",
			(unsigned long long)kept->folded);
	}
	*fold = (struct ckt_event_fold){0};
}

/* Whether it is not told now. */
static bool fold_it(
	struct ckt_session *session, enum ckt_event_name name, const struct ckt_event_facts *facts)
{
	struct ckt_event_fold *fold = fold_of(session, name);
	struct ckt_timer *timer = &session->server->decision_events.unfold;
	int64_t now_ms = ckt_net_now_ms();
	if (fold->until_ms && now_ms >= fold->until_ms)
		unfold(session, name);
	if (!fold->until_ms)
		fold->until_ms = now_ms + (is_refusal(name) ? REFUSALS_MS : WINDOW_MS);
	if (fold->told < (is_refusal(name) ? 1 : TOLD_MAX)) {
		fold->told++;
		return false;
	}
	fold->folded++;
	fold->bytes += facts->bytes;
	fold->facts = *facts;
	if (!timer->link)
		ckt_timer_set(&session->server->loop, timer, WINDOW_MS);
	return true;
}

void ckt_decision_event(struct ckt_server *server, struct ckt_session *session,
	enum ckt_event_name name, const struct ckt_event_facts *facts, const char *format, ...)
{
	va_list arguments;
	if (session && fold_it(session, name, facts))
		return;
	struct ckt_kept_event *kept = add(server, session, name, facts, 0);
	va_start(arguments, format);
	vsnprintf(kept->detail, sizeof kept->detail, format, arguments);
	va_end(arguments);
}

void ckt_decision_events_gone(struct ckt_session *session)
{
	for (int name = CKT_EVENT_CAME; name < CKT_EVENTS; name++)
		unfold(session, (enum ckt_event_name)name);
}

static void unfold_all(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, decision_events.unfold);
	int64_t now_ms = ckt_net_now_ms();
	bool more = false;
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		for (int name = CKT_EVENT_CAME; name < CKT_EVENTS; name++) {
			struct ckt_event_fold *fold = fold_of(s, (enum ckt_event_name)name);
			if (fold->until_ms && now_ms >= fold->until_ms)
				unfold(s, (enum ckt_event_name)name);
			more |= fold->folded != 0;
		}
	if (more)
		ckt_timer_set(&server->loop, timer, WINDOW_MS);
}

static void deliver(struct ckt_timer *timer)
{
	ckt_daemon_events_deliver(CKT_CONTAINER(timer, struct ckt_server, decision_events.deliver));
}

void ckt_decision_events_init(struct ckt_server *server)
{
	server->decision_events.deliver.fire = deliver;
	server->decision_events.unfold.fire = unfold_all;
}

void ckt_decision_events_fini(struct ckt_server *server)
{
	ckt_timer_clear(&server->decision_events.deliver);
	ckt_timer_clear(&server->decision_events.unfold);
}
