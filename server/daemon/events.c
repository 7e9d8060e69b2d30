/* SPDX-License-Identifier: Apache-2.0 */
/* Events; see events.h. */
#include "server/daemon/events.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/probes.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/event_ring.h"
#include "server/daemon/log_limited.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_audit.h"

enum {
	MEMORY_WATCH_MS = 5000,
	STATUS_TIMEOUT_MS = 2000,
	MEMORY_LOW_PERCENT = 90,
	/* lower, so that a session near the threshold does not report it again and again */
	MEMORY_FINE_PERCENT = 85,
};

static const char *const names[CKT_EVENTS] = {"started", "ended", "frozen", "saved", "restored",
	"moved", "paused", "resumed", "memory-low", "lost", "unsaved", "swapped-out", "swapped-in",
	"not-swapped", "asleep", "awake", "not-asleep", "came", "leased", "wait", "granted",
	"refused", "withdrawn", "freed", "left", "choose", "decided", "fallback", "overdue", "back",
	"capped"};

const char *ckt_daemon_event_text(enum ckt_event_name name)
{
	return names[name];
}

static ckt_control_event describe(const struct ckt_kept_event *kept)
{
	return (ckt_control_event){.number = kept->number,
		.when = kept->when,
		.name = (char *)names[kept->name],
		.session = (char *)kept->session,
		.program_name = (char *)kept->program,
		.detail = (char *)kept->detail};
}

/* The reply to OWNED_EVENTS instead of EVENTS. */
static void reply_owned(struct ckt_peer *peer, const ckt_control_events_res *plain,
	const uint32_t owners[CKT_CONTROL_EVENTS_MAX])
{
	static char texts[CKT_CONTROL_EVENTS_MAX][CKT_OWNER_NAME_SIZE];
	ckt_control_owned_event events[CKT_CONTROL_EVENTS_MAX];
	ckt_control_owned_events_res res = {
		.events = {plain->events.events_len, events}, .last = plain->last};
	for (u_int i = 0; i < plain->events.events_len; i++) {
		ckt_owner_text(peer->server, owners[i], texts[i]);
		events[i] = (ckt_control_owned_event){.event = plain->events.events_val[i],
			.owner = {texts[i], (char *)ckt_tokens_project(peer->server, owners[i])}};
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_owned_events_res, &res);
}

/* Whether there was something to report. */
static bool tell(struct ckt_peer *peer)
{
	ckt_control_event events[CKT_CONTROL_EVENTS_MAX];
	uint32_t owners[CKT_CONTROL_EVENTS_MAX];
	ckt_control_events_res res = {.events = {.events_val = events}, .last = peer->events_after};
	const struct ckt_kept_event *kept;
	while (res.events.events_len < CKT_CONTROL_EVENTS_MAX &&
		(kept = ckt_event_ring_next(res.last, false))) {
		res.last = kept->number;
		if (!ckt_peer_may(peer, kept->uid))
			continue;
		owners[res.events.events_len] = kept->uid;
		events[res.events.events_len++] = describe(kept);
	}
	peer->events_after = res.last;
	if (!res.events.events_len)
		return false;
	peer->wants_events = false;
	if (peer->wants_owners)
		reply_owned(peer, &res, owners);
	else
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_events_res, &res);
	return true;
}

static void serve(struct ckt_peer *peer, const ckt_control_events_args *args, bool owners)
{
	peer->events_after =
		args->after > ckt_event_ring_last() ? ckt_event_ring_last() : args->after;
	peer->wants_owners = owners;
	peer->wants_facts = false;
	if (!tell(peer))
		ckt_daemon_events_listen(peer);
}

void ckt_daemon_events_listen(struct ckt_peer *peer)
{
	struct ckt_decision decision;
	/* This call has no field for a sentence; the log says why. */
	ckt_ask_event_listener(peer, &decision);
	peer->wants_events = !decision.answer;
	if (!peer->wants_events) {
		ckt_daemon_log_limited(
			peer->server, CKT_LIMIT_REFUSED, "%s: %s", peer->who.text, decision.reason);
		ckt_peer_audit_cut(peer, decision.reason);
		ckt_peer_close(peer);
	}
}

void ckt_control_events(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)passed_fd;
	serve(peer, decoded, false);
}

void ckt_control_owned_events(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)passed_fd;
	serve(peer, decoded, true);
}

/* The audit log hears of sessions that begin and end. */
static void audit(const struct ckt_session *session, const struct ckt_kept_event *kept)
{
	static const enum ckt_event_name audited[] = {
		CKT_EVENT_STARTED, CKT_EVENT_RESTORED, CKT_EVENT_ENDED, CKT_EVENT_LOST};
	for (size_t i = 0; i < sizeof audited / sizeof *audited; i++)
		if (audited[i] == kept->name)
			ckt_session_audit(session, names[kept->name], kept->name == CKT_EVENT_LOST,
				kept->detail);
}

void ckt_daemon_events_deliver(struct ckt_server *server)
{
	for (struct ckt_peer *peer = server->peers_first, *next; peer; peer = next) {
		next = peer->next;
		if (peer->wants_events)
			(peer->wants_facts ? ckt_daemon_facts_tell : tell)(peer);
	}
}

void ckt_daemon_event(
	struct ckt_session *session, enum ckt_event_name name, const char *format, ...)
{
	struct ckt_server *server = session->server;
	struct ckt_kept_event *kept = ckt_event_ring_add(false, 0);
	va_list arguments;
	kept->uid = session->uid;
	kept->name = name;
	snprintf(kept->session, sizeof kept->session, "%s", session->id);
	snprintf(kept->job, sizeof kept->job, "%s", session->job);
	snprintf(kept->program, sizeof kept->program, "%s",
		session->status.program_name ? session->status.program_name : "");
	va_start(arguments, format);
	vsnprintf(kept->detail, sizeof kept->detail, format, arguments);
	va_end(arguments);
	ckt_debug("session %s: event %s %s", kept->session, names[name], kept->detail);
	ckt_counters.events[name]++;
	CKT_PROBE4(session_event, kept->session, names[name], kept->uid, kept->detail);
	audit(session, kept);
	ckt_daemon_events_deliver(server);
	ckt_control_event event = describe(kept);
	if (server->options.hooks)
		ckt_hooks_run(server, &event);
}

/* ---- Memory */

static void look_at_gpu(struct ckt_server *server, unsigned gpu)
{
	struct ckt_session *largest = NULL;
	uint64_t used = 0, total = server->driver.gpus[gpu].memory_bytes;
	for (struct ckt_session *session = server->sessions; session; session = session->next) {
		if (session->phase != CKT_SESSION_LIVE || session->status.gpu != (int)gpu)
			continue;
		used += session->status.memory_bytes;
		if (!largest || session->status.memory_bytes > largest->status.memory_bytes)
			largest = session;
	}
	if (largest && !server->memory_low[gpu] && total &&
		used >= total / 100 * MEMORY_LOW_PERCENT) {
		server->memory_low[gpu] = true;
		ckt_daemon_event(largest, CKT_EVENT_MEMORY_LOW,
			"GPU %u: sessions hold %llu of %llu bytes", gpu, (unsigned long long)used,
			(unsigned long long)total);
	} else if (used < total / 100 * MEMORY_FINE_PERCENT) {
		server->memory_low[gpu] = false;
	}
}

static void memory_status(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_worker_status_res *status = result;
	(void)context;
	if (error)
		return;
	session->status.memory_bytes = status->memory_bytes;
	if (status->gpu >= 0 && status->gpu < (int)session->server->driver.gpu_count)
		look_at_gpu(session->server, (unsigned)status->gpu);
}

static void watch_memory(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, memory_timer);
	bool wanted = server->options.hooks != NULL;
	for (struct ckt_peer *peer = server->peers_first; peer && !wanted; peer = peer->next)
		wanted = peer->wants_events;
	for (struct ckt_session *session = server->sessions; wanted && session;
		session = session->next)
		if (session->phase == CKT_SESSION_LIVE)
			ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
				(xdrproc_t)xdr_ckt_worker_status_res,
				sizeof(struct ckt_worker_status_res), STATUS_TIMEOUT_MS,
				memory_status, NULL);
	ckt_timer_set(&server->loop, timer, MEMORY_WATCH_MS);
}

int ckt_daemon_events_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	int result = server->options.hooks
		? ckt_hooks_check(server->options.hooks, ret_message, message_size)
		: 0;
	if (result)
		return result;
	server->memory_timer.fire = watch_memory;
	ckt_timer_set(&server->loop, &server->memory_timer, MEMORY_WATCH_MS);
	return 0;
}
