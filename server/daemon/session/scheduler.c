/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler outside of the server; see scheduler.h. */
#include "server/daemon/session/scheduler.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/event_ring.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/server.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"

/* By somebody who may still decide: a token can be revoked. */
static bool is_followed(const struct ckt_server *server)
{
	for (const struct ckt_peer *peer = server->peers_first; peer; peer = peer->next)
		if (peer->follows && ckt_control_is_administrator(peer))
			return true;
	return false;
}

static void set_timer(struct ckt_server *server)
{
	struct ckt_scheduler *scheduler = &server->scheduler;
	int64_t due_ms = scheduler->held_until_ms ? scheduler->held_until_ms : scheduler->due_ms;
	int64_t left = due_ms - ckt_net_now_ms();
	if (!scheduler->choice && !scheduler->held_until_ms)
		ckt_timer_clear(&scheduler->timer);
	else
		ckt_timer_set(&server->loop, &scheduler->timer, left > 0 ? left : 0);
}

/* The choice is over. */
static void close_choice(struct ckt_server *server, const char *how)
{
	struct ckt_scheduler *scheduler = &server->scheduler;
	struct ckt_choice_past *past = &scheduler->past[scheduler->past_count++ % CKT_CHOICES_KEPT];
	past->event = scheduler->choice;
	snprintf(past->how, sizeof past->how, "%s", how);
	scheduler->choice = 0;
	scheduler->count = 0;
}

/* ---- Asking */

static bool is_same(
	const struct ckt_scheduler *scheduler, const struct ckt_wait_facts *list, unsigned count)
{
	bool same = scheduler->choice && scheduler->count == count;
	for (unsigned i = 0; same && i < count; i++)
		same = scheduler->candidates[i].request == list[i].request;
	return same;
}

static void ask(struct ckt_server *server, const struct ckt_wait_facts *list, unsigned count)
{
	struct ckt_scheduler *scheduler = &server->scheduler;
	if (scheduler->choice)
		close_choice(
			server, "other requests can be granted now, and a later event asks again");
	else
		scheduler->due_ms = ckt_net_now_ms() + scheduler->external.timeout_ms;
	memcpy(scheduler->candidates, list, count * sizeof *list);
	scheduler->count = count;
	ckt_decision_event(server, NULL, CKT_EVENT_CHOOSE,
		&(struct ckt_event_facts){.gpu = (int)list[0].gpu},
		"%u requests can be granted: decide within %u ms, or %s does", count,
		scheduler->external.timeout_ms, scheduler->external.fallback->name);
	scheduler->choice = ckt_event_ring_last();
}

/* Of the queue; see wait_queue.h. */
static bool outside(struct ckt_wait_queue *queue, const struct ckt_wait_facts *list, unsigned count)
{
	struct ckt_server *server = queue->data;
	struct ckt_scheduler *scheduler = &server->scheduler;
	if (count > CKT_CONTROL_CANDIDATES_MAX)
		count = CKT_CONTROL_CANDIDATES_MAX;
	if (!count || scheduler->silent || !is_followed(server)) {
		if (scheduler->choice)
			close_choice(server,
				count ? "the fallback decides" : "nothing can be granted any more");
		scheduler->held_until_ms = 0;
		set_timer(server);
		return false;
	}
	if (scheduler->held_until_ms > queue->now_ms)
		return true;
	scheduler->held_until_ms = 0;
	if (!is_same(scheduler, list, count))
		ask(server, list, count);
	set_timer(server);
	return true;
}

/* The time is over, or nobody follows any more. */
static void fire(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, scheduler.timer);
	struct ckt_scheduler *scheduler = &server->scheduler;
	bool followed = is_followed(server);
	if (scheduler->choice && (!followed || ckt_net_now_ms() >= scheduler->due_ms)) {
		char how[CKT_CHOICE_TEXT];
		scheduler->silent = followed;
		snprintf(how, sizeof how, "%s, and %s decided",
			followed ? "no decision came in time" : "nobody follows any more",
			scheduler->external.fallback->name);
		ckt_decision_event(server, NULL, CKT_EVENT_FALLBACK,
			&(struct ckt_event_facts){.gpu = (int)scheduler->candidates[0].gpu},
			"event %llu: %s", (unsigned long long)scheduler->choice, how);
		ckt_info("event %llu: %s", (unsigned long long)scheduler->choice, how);
		close_choice(server, how);
	}
	ckt_memory_wait_look(server);
}

void ckt_scheduler_came(struct ckt_server *server)
{
	server->scheduler.silent = false;
}

void ckt_scheduler_gone(struct ckt_server *server)
{
	struct ckt_scheduler *scheduler = &server->scheduler;
	if (scheduler->choice || scheduler->held_until_ms)
		ckt_timer_set(&server->loop, &scheduler->timer, 0);
}

/* ---- Decisions */

static const struct ckt_wait_request *find_request(const struct ckt_server *server, uint64_t number)
{
	const struct ckt_wait_request *request = server->waits.first;
	while (request && request->number != number)
		request = request->next;
	return request;
}

static const char *action_name(ckt_control_action action)
{
	return action == CKT_CONTROL_GRANT ? "grant" : "refuse";
}

bool ckt_scheduler_decide(struct ckt_server *server, uint64_t number, ckt_control_action action,
	const char *by, char *ret_message, size_t message_size)
{
	const struct ckt_wait_request *request = find_request(server, number);
	enum ckt_memory_reason reason = CKT_MEMORY_DECIDED;
	server->scheduler.silent = false;
	if (!request) {
		snprintf(ret_message, message_size, "request %llu waits no more",
			(unsigned long long)number);
		return false;
	}
	struct ckt_session *session = ckt_memory_wait_session(request);
	struct ckt_event_facts facts = {.request = number,
		.gpu = (int)request->gpu,
		.bytes = request->bytes,
		.waited_ms = ckt_net_now_ms() - request->since_ms};
	server->waits.now_ms = ckt_net_now_ms();
	bool good = action == CKT_CONTROL_GRANT ? ckt_wait_grant(&server->waits, number, &reason)
						: ckt_wait_refuse(&server->waits, number, reason);
	if (!good) {
		snprintf(ret_message, message_size,
			"request %llu of session %s cannot be granted: %s",
			(unsigned long long)number, session->id, ckt_memory_reason_text(reason));
		return false;
	}
	ckt_decision_event(
		server, session, CKT_EVENT_DECIDED, &facts, "%s, by %s", action_name(action), by);
	return true;
}

/* The candidate of that number; NULL: it is none. */
static const struct ckt_wait_facts *find_candidate(
	const struct ckt_scheduler *scheduler, uint64_t request)
{
	for (unsigned i = 0; i < scheduler->count; i++)
		if (scheduler->candidates[i].request == request)
			return &scheduler->candidates[i];
	return NULL;
}

/* Why that event asks nothing. */
static void tell_past(const struct ckt_scheduler *scheduler, uint64_t event, char *ret_message,
	size_t message_size)
{
	for (unsigned i = 0; i < CKT_CHOICES_KEPT; i++)
		if (event && scheduler->past[i].event == event) {
			snprintf(ret_message, message_size, "event %llu is decided: %s",
				(unsigned long long)event, scheduler->past[i].how);
			return;
		}
	snprintf(ret_message, message_size,
		"event %llu asks nothing, or no longer: decide the last event 'choose'",
		(unsigned long long)event);
}

bool ckt_scheduler_choose(struct ckt_server *server, uint64_t event, uint64_t number,
	ckt_control_action action, const char *by, char *ret_message, size_t message_size)
{
	struct ckt_scheduler *scheduler = &server->scheduler;
	char how[CKT_CHOICE_TEXT];
	scheduler->silent = false;
	if (!event || event != scheduler->choice) {
		tell_past(scheduler, event, ret_message, message_size);
		return false;
	}
	if (action == CKT_CONTROL_WAIT) {
		int gpu = (int)scheduler->candidates[0].gpu;
		ckt_decision_event(server, NULL, CKT_EVENT_DECIDED,
			&(struct ckt_event_facts){.gpu = gpu}, "event %llu: wait, by %s",
			(unsigned long long)event, by);
		snprintf(how, sizeof how, "wait, by %s", by);
		close_choice(server, how);
		scheduler->held_until_ms = ckt_net_now_ms() + scheduler->external.timeout_ms;
		set_timer(server);
		return true;
	}
	if (!find_candidate(scheduler, number)) {
		snprintf(ret_message, message_size, "request %llu is no candidate of event %llu",
			(unsigned long long)number, (unsigned long long)event);
		return false;
	}
	if (!ckt_scheduler_decide(server, number, action, by, ret_message, message_size))
		return false;
	snprintf(how, sizeof how, "%s request %llu, by %s", action_name(action),
		(unsigned long long)number, by);
	close_choice(server, how);
	return true;
}

/* ---- The server's beginning and end */

int ckt_scheduler_open(struct ckt_server *server, const char *text)
{
	struct ckt_scheduler *scheduler = &server->scheduler;
	int result = ckt_wait_external_parse(text, &scheduler->external);
	if (result)
		return result;
	scheduler->policy = *scheduler->external.fallback;
	snprintf(scheduler->name, sizeof scheduler->name, "external:%s",
		scheduler->external.fallback->name);
	scheduler->policy.name = scheduler->name;
	scheduler->policy.overtakes_max = CKT_WAIT_EXTERNAL_OVERTAKES;
	scheduler->timer.fire = fire;
	return 0;
}

void ckt_scheduler_attach(struct ckt_server *server)
{
	if (server->scheduler.external.fallback)
		server->waits.outside = outside;
}

void ckt_scheduler_close(struct ckt_server *server)
{
	ckt_timer_clear(&server->scheduler.timer);
	server->waits.outside = NULL;
}
