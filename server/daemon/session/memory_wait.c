/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that wait for memory; see memory_wait.h. */
#include "server/daemon/session/memory_wait.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"

enum { CALL_TIMEOUT_MS = 10000 };

static struct ckt_session *session_of(const struct ckt_ledger_holder *holder)
{
	return CKT_CONTAINER(holder, struct ckt_session, lease.holder);
}

struct ckt_session *ckt_memory_wait_session(const struct ckt_wait_request *request)
{
	return session_of(request->holder);
}

static struct ckt_wait_queue *queue_now(struct ckt_server *server)
{
	server->waits.now_ms = ckt_net_now_ms();
	return &server->waits;
}

static unsigned long long mib(uint64_t bytes)
{
	return (unsigned long long)(bytes >> 20);
}

/* ---- Who waits */

enum ckt_when_full ckt_memory_when_full(const struct ckt_session *session)
{
	const struct ckt_server *server = session->server;
	return ckt_limit_table_when_full(
		&server->ledger.limits, &session->lease.holder.subject, server->when_full);
}

bool ckt_memory_can_wait(const struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	enum ckt_when_full when_full = ckt_memory_when_full(session);
	if (when_full == CKT_WHEN_FULL_SWAP && !server->swaps && !server->swap_told) {
		server->swap_told = true;
		ckt_warning(
			"when-full=swap: this server has no swap memory: sessions wait; start it with --swap-memory or --swap");
	}
	return when_full != CKT_WHEN_FULL_FAIL;
}

bool ckt_memory_wait_allows(struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	enum ckt_memory_reason reason;
	return ckt_wait_judge(queue_now(session->server), &session->lease.holder, gpu, bytes,
		       ckt_memory_can_wait(session), &reason) == CKT_MEMORY_GRANT;
}

bool ckt_memory_wait_admits(struct ckt_server *server, unsigned gpu)
{
	return ckt_ledger_has_room(&server->ledger, gpu) &&
		(server->when_full == CKT_WHEN_FULL_FAIL || ckt_wait_admits(&server->waits, gpu));
}

/* ---- Requests */

static uint32_t question_of(const struct ckt_wait_request *request)
{
	return (uint32_t)(uintptr_t)request->data;
}

enum ckt_memory_decision ckt_memory_wait_ask(
	struct ckt_session *session, uint32_t number, unsigned gpu, uint64_t bytes)
{
	struct ckt_wait_queue *queue = queue_now(session->server);
	enum ckt_memory_reason reason;
	uint64_t request;
	enum ckt_memory_decision decision = ckt_wait_ask(queue, &session->lease.holder, gpu, bytes,
		(void *)(uintptr_t)number, &request, &reason);
	if (decision == CKT_MEMORY_WAIT)
		ckt_quantum_waits(session);
	if (decision == CKT_MEMORY_WAIT)
		ckt_info("session %s waits for %llu MiB of GPU %u: %s", session->id, mib(bytes),
			gpu, ckt_memory_reason_text(reason));
	else if (decision == CKT_MEMORY_GRANT)
		ckt_memory_wait_leased(session, gpu, bytes);
	/* A program may ask for too much as often as it likes. */
	else if (decision == CKT_MEMORY_REFUSE) {
		ckt_memory_wait_refused(session, gpu, bytes, reason);
		ckt_debug("session %s does not wait for %llu MiB of GPU %u: %s", session->id,
			mib(bytes), gpu, ckt_memory_reason_text(reason));
	}
	return decision;
}

void ckt_memory_wait_leased(struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	ckt_decision_event(session->server, session, CKT_EVENT_LEASED,
		&(struct ckt_event_facts){.gpu = (int)gpu, .bytes = bytes}, "%llu MiB of GPU %u",
		mib(bytes), gpu);
}

void ckt_memory_wait_refused(
	struct ckt_session *session, unsigned gpu, uint64_t bytes, enum ckt_memory_reason reason)
{
	const char *text = ckt_memory_reason_text(reason);
	ckt_decision_event(session->server, session, CKT_EVENT_REFUSED,
		&(struct ckt_event_facts){.reason = text, .gpu = (int)gpu, .bytes = bytes},
		"%llu MiB of GPU %u: %s", mib(bytes), gpu, text);
}

enum ckt_memory_reason ckt_memory_wait_reason(
	struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	enum ckt_memory_reason reason;
	ckt_wait_judge(
		queue_now(session->server), &session->lease.holder, gpu, bytes, true, &reason);
	return reason;
}

static const struct ckt_wait_request *find(
	const struct ckt_session *session, const uint32_t *number)
{
	const struct ckt_wait_request *request = session->server->waits.first;
	while (request &&
		(request->holder != &session->lease.holder ||
			(number && question_of(request) != *number)))
		request = request->next;
	return request;
}

static void withdraw(
	struct ckt_session *session, const struct ckt_wait_request *request, bool keep_place)
{
	ckt_info("session %s no longer waits for %llu MiB of GPU %u: %s", session->id,
		mib(request->bytes), request->gpu,
		keep_place ? "it is being saved, and asks again afterwards"
			   : "its client has gone");
	ckt_wait_withdraw(queue_now(session->server), request->number, keep_place);
}

bool ckt_memory_wait_withdraw(struct ckt_session *session, uint32_t number, bool keep_place)
{
	const struct ckt_wait_request *request = find(session, &number);
	if (request)
		withdraw(session, request, keep_place);
	return request != NULL;
}

void ckt_memory_wait_withdraw_all(struct ckt_session *session)
{
	const struct ckt_wait_request *request;
	while ((request = find(session, NULL)))
		withdraw(session, request, false);
}

/* ---- Ends */

static void told(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_warning("session %s: its worker did not hear how its wait for memory ended",
			session->id);
}

static void ended(struct ckt_wait_queue *queue, const struct ckt_wait_request *request,
	bool granted, enum ckt_memory_reason reason)
{
	struct ckt_session *session = session_of(request->holder);
	struct ckt_worker_waited_args args = {.number = question_of(request),
		.gpu = request->gpu,
		.bytes = granted ? request->bytes : 0};
	ckt_info("session %s %s %llu MiB of GPU %u after %lld ms: %s", session->id,
		granted ? "gets" : "is refused", mib(request->bytes), request->gpu,
		(long long)(queue->now_ms - request->since_ms), ckt_memory_reason_text(reason));
	if (granted)
		ckt_quantum_waited(session);
	int error = ckt_session_call(session, CKT_WORKER_LEASE_WAITED,
		(xdrproc_t)xdr_ckt_worker_waited_args, &args, -1, NULL, 0, CALL_TIMEOUT_MS, told,
		NULL);
	/* It ends, or cannot be reached: then others may have it. */
	if (error && granted && !ckt_ledger_give(request->holder, request->gpu, request->bytes))
		queue->again = true;
}

/* ---- Events */

/* Who has what it waits for: those of its owner by name, others as a number. */
static void name_holders(struct ckt_session *session, unsigned gpu, char *ret_text, size_t size)
{
	enum { NAMED_MAX = 4 };
	unsigned named = 0, others = 0;
	size_t length = 0;
	*ret_text = 0;
	for (const struct ckt_session *s = session->server->sessions; s; s = s->next) {
		uint64_t bytes = s->lease.is_holder ? s->lease.holder.leased[gpu] : 0;
		if (!bytes || s == session)
			continue;
		if (s->uid != session->uid || named == NAMED_MAX) {
			others++;
			continue;
		}
		named++;
		length += (size_t)snprintf(
			ret_text + length, size - length, "; %s holds %llu MiB", s->id, mib(bytes));
	}
	if (others)
		snprintf(ret_text + length, size - length, "; %u other sessions hold some", others);
}

/* One that ends is no longer on the server's list. */
static struct ckt_session *find_serial(struct ckt_server *server, uint64_t serial)
{
	for (struct ckt_ledger_holder *h = server->ledger.first; h; h = h->next)
		if (h->serial == serial)
			return session_of(h);
	return NULL;
}

static void happened(struct ckt_wait_queue *queue, const struct ckt_memory_event *event)
{
	static const enum ckt_event_name names[] = {[CKT_MEMORY_CAME] = CKT_EVENT_CAME,
		[CKT_MEMORY_ASKED] = CKT_EVENT_WAIT,
		[CKT_MEMORY_GRANTED] = CKT_EVENT_GRANTED,
		[CKT_MEMORY_REFUSED] = CKT_EVENT_REFUSED,
		[CKT_MEMORY_WITHDRAWN] = CKT_EVENT_WITHDRAWN,
		[CKT_MEMORY_FREED] = CKT_EVENT_FREED,
		[CKT_MEMORY_ENDED] = CKT_EVENT_LEFT};
	struct ckt_server *server = queue->data;
	struct ckt_session *session = find_serial(server, event->session);
	char holders[CKT_MESSAGE_MAX / 2] = "";
	/* Where nothing limits it, its worker takes what it likes, and nothing is decided. */
	if (!session || !ckt_ledger_limits(&server->ledger, &session->lease.holder.subject))
		return;
	bool judged = event->kind == CKT_MEMORY_ASKED || event->kind == CKT_MEMORY_GRANTED ||
		event->kind == CKT_MEMORY_REFUSED;
	bool of_gpu = event->kind != CKT_MEMORY_CAME && event->kind != CKT_MEMORY_ENDED;
	struct ckt_event_facts facts = {
		.reason = judged ? ckt_memory_reason_text(event->reason) : NULL,
		.request = event->request,
		.gpu = of_gpu ? (int)event->gpu : session->status.gpu,
		.bytes = event->bytes,
		.waited_ms = event->waited_ms};
	if (event->kind == CKT_MEMORY_ASKED)
		name_holders(session, event->gpu, holders, sizeof holders);
	if (of_gpu)
		ckt_decision_event(server, session, names[event->kind], &facts,
			"%llu MiB of GPU %u%s%s%s", mib(event->bytes), event->gpu,
			judged ? ": " : "", judged ? facts.reason : "", holders);
	else
		ckt_decision_event(server, session, names[event->kind], &facts, "%s", "");
	if (event->kind == CKT_MEMORY_ENDED)
		ckt_decision_events_gone(session);
}

/* ---- All of them */

static void press_done(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_debug("session %s: its worker gives back only what it must", session->id);
}

static void press(struct ckt_server *server)
{
	ckt_worker_press_args args = {
		.on = server->waits.count != 0 || ckt_quantum_anybody_waits(server)};
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		if (!s->lease.is_holder || !s->lease.open || s->lease.pressed == args.on)
			continue;
		s->lease.pressed = args.on;
		ckt_session_call(s, CKT_WORKER_LEASE_PRESS, (xdrproc_t)xdr_ckt_worker_press_args,
			&args, -1, NULL, 0, CALL_TIMEOUT_MS, press_done, NULL);
	}
}

static void set_timer(struct ckt_server *server)
{
	int64_t first = INT64_MAX, timeout_ms = (int64_t)server->options.wait_timeout * 1000;
	for (const struct ckt_wait_request *r = server->waits.first; r; r = r->next)
		if (r->since_ms < first)
			first = r->since_ms;
	if (!timeout_ms || first == INT64_MAX) {
		ckt_timer_clear(&server->wait_timer);
		return;
	}
	int64_t left = first + timeout_ms - ckt_net_now_ms();
	ckt_timer_set(&server->loop, &server->wait_timer, left > 0 ? left : 0);
}

static void timeout(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, wait_timer);
	struct ckt_wait_queue *queue = queue_now(server);
	int64_t timeout_ms = (int64_t)server->options.wait_timeout * 1000;
	for (struct ckt_wait_request *r = queue->first; r;) {
		uint64_t number = r->number;
		bool late = queue->now_ms - r->since_ms >= timeout_ms;
		r = r->next;
		if (late)
			ckt_wait_refuse(queue, number, CKT_MEMORY_TIMEOUT);
	}
	ckt_memory_wait_look(server);
}

void ckt_memory_wait_look(struct ckt_server *server)
{
	ckt_wait_pump(queue_now(server));
	press(server);
	set_timer(server);
}

void ckt_memory_wait_came(struct ckt_session *session)
{
	ckt_wait_came(queue_now(session->server), &session->lease.holder);
}

void ckt_memory_wait_freed(struct ckt_session *session, unsigned gpu, uint64_t bytes)
{
	ckt_wait_freed(queue_now(session->server), &session->lease.holder, gpu, bytes);
}

void ckt_memory_wait_gone(struct ckt_session *session)
{
	ckt_memory_wait_withdraw_all(session);
	ckt_wait_gone(queue_now(session->server), &session->lease.holder);
}

/* ---- The server's beginning and end */

/* Without --gpu-memory there is nothing to wait for: then the budget is what each card has. */
static void default_budgets(struct ckt_server *server)
{
	if (server->options.gpu_memory || server->driver.soft)
		return;
	for (unsigned gpu = 0; gpu < server->driver.gpu_count && gpu < CKT_DEVICES_MAX; gpu++)
		server->ledger.budgets[gpu] = server->driver.gpus[gpu].memory_bytes /
			CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE;
}

int ckt_memory_wait_open(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const struct ckt_options *options = &server->options;
	const char *name = options->wait_policy ? options->wait_policy : ckt_wait_fifo.name;
	const struct ckt_wait_policy *policy = ckt_wait_policy_find(name);
	uint64_t random = 0;
	if (!policy && !ckt_scheduler_open(server, name))
		policy = &server->scheduler.policy;
	if (!policy ||
		(options->when_full &&
			ckt_when_full_parse(options->when_full, &server->when_full))) {
		snprintf(ret_message, message_size, "--wait-policy or --when-full is not valid");
		return -EINVAL;
	}
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		random = 1;
	ckt_wait_queue_init(&server->waits, &server->ledger, policy, random);
	server->waits.ended = ended;
	server->waits.event = happened;
	server->waits.data = server;
	ckt_scheduler_attach(server);
	ckt_decision_events_init(server);
	server->wait_timer.fire = timeout;
	if (server->when_full != CKT_WHEN_FULL_FAIL)
		default_budgets(server);
	return 0;
}

void ckt_memory_wait_close(struct ckt_server *server)
{
	ckt_timer_clear(&server->wait_timer);
	ckt_scheduler_close(server);
	ckt_decision_events_fini(server);
	ckt_wait_queue_fini(&server->waits);
}
