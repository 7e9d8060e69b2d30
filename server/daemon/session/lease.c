/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of workers; see lease.h. */
#include "server/daemon/session/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/lease.h"
#include "rpc/net.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/together.h"

enum {
	/* Packets that are handled before others get their turn: some microseconds each. */
	AT_A_TIME = 16,
	CALL_TIMEOUT_MS = 10000,
	RECALL_TIMEOUT_MS = 2000,
	/* Of a question that waits until others have left: a worker takes us for dead after 10 s. */
	FOLLOW_ANSWER_MS = 2000,
};

_Static_assert(CKT_LEASE_GRANULE == CKT_LEDGER_GRANULE, "one granule");
_Static_assert(CKT_LEASE_NO_LIMIT == CKT_LEDGER_NO_LIMIT, "one word for none");

struct ckt_limit_subject ckt_lease_subject(const struct ckt_session *session)
{
	return (struct ckt_limit_subject){.session = session->id,
		.container = session->container,
		.job = session->job,
		.owner = session->uid};
}

/* The owner of a session may become known late. */
static void refresh(struct ckt_server *server)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		s->lease.holder.subject = ckt_lease_subject(s);
}

static void close_channel(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	if (!lease->open)
		return;
	lease->open = lease->pressed = false;
	lease->question.pending = false;
	ckt_memory_wait_withdraw_all(session);
	close(ckt_loop_remove(&session->server->loop, &lease->channel));
}

static void distrust(struct ckt_session *session, const char *what)
{
	ckt_warning("session %s: its worker %d sent %s: it gets no more memory", session->id,
		(int)session->pid, what);
	close_channel(session);
}

/* ---- Answers */

static void answer(struct ckt_session *session, uint64_t bytes, uint32_t flags)
{
	struct ckt_daemon_lease *lease = &session->lease;
	const struct ckt_ledger *ledger = &session->server->ledger;
	const struct ckt_limit_subject *subject = &lease->holder.subject;
	uint32_t gpu = lease->question.gpu;
	bool has_context = lease->holder.contexts >> gpu & 1;
	struct ckt_lease_message message = {.kind = CKT_LEASE_ANSWER,
		.number = lease->question.number,
		.gpu = gpu,
		.flags = flags,
		.bytes = bytes,
		.total = ckt_ledger_total(ledger, subject, gpu),
		.left = ckt_ledger_left(ledger, subject, gpu, has_context)};
	lease->question.pending = false;
	/* A worker that leaves the answers to its own questions unread is not waited for. */
	if (send(lease->channel.fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		sizeof message)
		distrust(session, "questions without reading the answers");
}

/* Somebody's question waits: what is left then belongs to it, and is not leased ahead. */
static bool somebody_waits(const struct ckt_server *server, const struct ckt_session *but)
{
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		if (s != but && s->lease.question.pending)
			return true;
	return server->waits.count != 0 || ckt_quantum_anybody_waits(server);
}

static void count(enum ckt_policy_answer answer)
{
	ckt_count_decision(CKT_QUESTION_MEMORY, &(const struct ckt_decision){.answer = answer});
}

static bool grant(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	struct ckt_server *server = session->server;
	uint32_t gpu = lease->question.gpu;
	uint64_t bytes = lease->question.bytes;
	if (lease->holder.unsettled ||
		(!lease->question.recalled &&
			!ckt_ledger_is_settled(&server->ledger, &lease->holder, gpu)))
		return false;
	bool comes = ckt_together_grants(session, gpu, bytes);
	if (bytes && (comes || ckt_memory_wait_allows(session, gpu, bytes)))
		bytes = ckt_ledger_grant(&server->ledger, &lease->holder, gpu, bytes,
			comes ? bytes : lease->question.want,
			comes || lease->question.recalled || somebody_waits(server, session));
	else
		bytes = 0;
	if (lease->question.bytes && !bytes)
		return false;
	if (!bytes)
		ckt_quantum_asked(session);
	count(CKT_POLICY_YES);
	if (bytes) {
		ckt_memory_wait_leased(session, gpu, bytes);
		ckt_quantum_granted(session, gpu);
	}
	answer(session, bytes, 0);
	return true;
}

/* The worker's question waits, or it is told that it may. */
static void refuse_or_wait(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	uint64_t bytes = lease->question.bytes;
	ckt_quantum_refused(session, lease->question.gpu, bytes);
	if (!ckt_memory_can_wait(session)) {
		count(CKT_POLICY_FULL);
		ckt_memory_wait_refused(session, lease->question.gpu, bytes,
			ckt_memory_wait_reason(session, lease->question.gpu, bytes));
		answer(session, 0, 0);
		return;
	}
	if (!lease->question.wait) {
		answer(session, 0, CKT_LEASE_MAY_WAIT);
		return;
	}
	enum ckt_memory_decision decision =
		ckt_memory_wait_ask(session, lease->question.number, lease->question.gpu, bytes);
	count(decision == CKT_MEMORY_GRANT            ? CKT_POLICY_YES
			: decision == CKT_MEMORY_WAIT ? CKT_POLICY_WAIT
						      : CKT_POLICY_FULL);
	answer(session, decision == CKT_MEMORY_GRANT ? bytes : 0,
		decision == CKT_MEMORY_WAIT ? CKT_LEASE_WAIT : 0);
	ckt_memory_wait_look(session->server);
}

static void refuse(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	uint64_t bytes = lease->question.bytes;
	if (!lease->question.force) {
		refuse_or_wait(session);
		return;
	}
	count(CKT_POLICY_YES);
	ckt_ledger_force(&lease->holder, lease->question.gpu, bytes);
	ckt_memory_wait_leased(session, lease->question.gpu, bytes);
	answer(session, bytes, 0);
}

/* ---- What neighbours do not use */

struct recall {
	uint64_t session, question; /* for whom; 0: the server itself */
};

static struct ckt_session *find_asker(struct ckt_server *server, const struct recall *recall)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->serial == recall->session && s->lease.question.pending &&
			s->lease.question.serial == recall->question)
			return s;
	return NULL;
}

/* False: it says what cannot be. */
static bool take_leases(struct ckt_session *session, const ckt_worker_lease_res *res)
{
	struct ckt_ledger_holder *holder = &session->lease.holder;
	uint64_t seen = 0;
	for (u_int i = 0; i < res->gpus.gpus_len; i++) {
		const ckt_worker_lease *gpu = &res->gpus.gpus_val[i];
		if (gpu->gpu >= CKT_DEVICES_MAX || seen >> gpu->gpu & 1 ||
			gpu->leased_bytes % CKT_LEDGER_GRANULE ||
			gpu->leased_bytes > INT64_MAX / CKT_DEVICES_MAX)
			return false;
		seen |= UINT64_C(1) << gpu->gpu;
		if (holder->unsettled) {
			uint64_t early = session->lease.early[gpu->gpu], had = gpu->leased_bytes;
			holder->leased[gpu->gpu] = had > early ? had - early : 0;
			holder->contexts |= UINT64_C(1) << gpu->gpu;
		} else if (ckt_ledger_give(holder, gpu->gpu, gpu->given_bytes)) {
			return false;
		} else if (gpu->given_bytes) {
			ckt_quantum_unfollowed(session, gpu->gpu, gpu->given_bytes);
			ckt_memory_wait_freed(session, gpu->gpu, gpu->given_bytes);
		}
	}
	return true;
}

/* A worker that does not say, such as one of an earlier version: what it last told of its memory. */
static void keep_lease(struct ckt_session *session, int error)
{
	struct ckt_ledger_holder *holder = &session->lease.holder;
	int gpu = session->status.gpu;
	ckt_debug("session %s: its worker keeps its lease: %s", session->id, strerror(-error));
	if (holder->unsettled && gpu >= 0 && gpu < CKT_DEVICES_MAX)
		holder->leased[gpu] = (session->status.memory_bytes + CKT_LEDGER_GRANULE - 1) /
			CKT_LEDGER_GRANULE * CKT_LEDGER_GRANULE;
}

static void ask_again(struct ckt_session *session);

static void recalled(struct ckt_session *session, void *context, int error, void *result)
{
	struct recall *recall = context;
	struct ckt_server *server = session->server;
	struct ckt_daemon_lease *lease = &session->lease;
	const ckt_worker_lease_res *res = result;
	if (!error && lease->is_holder) {
		if (!take_leases(session, res))
			distrust(session, "leases that cannot be");
		else
			lease->holder.unsettled = res->unlimited;
		ckt_quantum_soon(server);
	} else if (error) {
		keep_lease(session, error);
	}
	struct ckt_session *asker = find_asker(server, recall);
	free(recall);
	/* What waits longer comes first. */
	ckt_memory_wait_look(server);
	if (!error && lease->question.pending && !lease->question.awaited &&
		!lease->holder.unsettled)
		ask_again(session);
	if (!asker || asker == session)
		return;
	asker->lease.question.awaited--;
	if (grant(asker) || asker->lease.question.awaited)
		return;
	asker->lease.question.recalled = true;
	if (!grant(asker))
		refuse(asker);
}

static bool recall_from(struct ckt_session *session, const struct ckt_session *asker)
{
	struct recall *recall = calloc(1, sizeof *recall);
	if (!recall)
		return false;
	if (asker)
		*recall = (struct recall){asker->serial, asker->lease.question.serial};
	if (!ckt_session_call(session, CKT_WORKER_LEASE_RECALL, NULL, NULL, -1,
		    (xdrproc_t)xdr_ckt_worker_lease_res, sizeof(ckt_worker_lease_res),
		    RECALL_TIMEOUT_MS, recalled, recall))
		return true;
	free(recall);
	return false;
}

static void recall_all(struct ckt_session *asker)
{
	struct ckt_server *server = asker->server;
	struct ckt_daemon_lease *lease = &asker->lease;
	uint32_t gpu = lease->question.gpu;
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		const struct ckt_ledger_holder *holder = &s->lease.holder;
		if (s->lease.is_holder && (holder->leased[gpu] || holder->unsettled) &&
			ckt_ledger_shares(&server->ledger, &lease->holder, holder, gpu))
			lease->question.awaited += recall_from(s, asker);
	}
}

static bool anybody_unknown(const struct ckt_server *server)
{
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->lease.unknown)
			return true;
	return false;
}

/* Of a session that comes in behind others.  Nothing is recalled for it: it has its promise. */
static void follow(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	struct ckt_ledger *ledger = &session->server->ledger;
	uint32_t gpu = lease->question.gpu;
	enum ckt_follow state = ckt_quantum_follow(session, gpu, lease->question.bytes);
	uint64_t bytes = 0;
	if (state == CKT_FOLLOW_TAKE && ckt_ledger_is_settled(ledger, &lease->holder, gpu))
		bytes = ckt_ledger_grant(ledger, &lease->holder, gpu, lease->question.bytes,
			lease->question.bytes, true);
	if (bytes) {
		count(CKT_POLICY_YES);
		ckt_quantum_followed(session, bytes);
		ckt_memory_wait_leased(session, gpu, bytes);
	} else if (state == CKT_FOLLOW_WAIT &&
		ckt_net_now_ms() - lease->question.since_ms < FOLLOW_ANSWER_MS) {
		return;
	}
	answer(session, bytes, state == CKT_FOLLOW_WAIT ? CKT_LEASE_FOLLOW : 0);
}

void ckt_lease_look(struct ckt_server *server)
{
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->lease.question.pending && s->lease.question.follow &&
			!s->lease.holder.unsettled)
			follow(s);
}

static void ask_again(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	refresh(session->server);
	/* Its worker's answer to the recall, or to the channel, is on its way. */
	if (lease->holder.unsettled || anybody_unknown(session->server))
		return;
	if (lease->question.follow) {
		follow(session);
		return;
	}
	if (grant(session))
		return;
	recall_all(session);
	if (!lease->question.awaited)
		refuse(session);
}

void ckt_lease_is_unknown(struct ckt_session *session)
{
	session->lease.unknown = true;
}

void ckt_lease_is_known(struct ckt_session *session)
{
	if (!session->lease.unknown)
		return;
	session->lease.unknown = false;
	if (anybody_unknown(session->server))
		return;
	for (struct ckt_session *s = session->server->sessions; s; s = s->next)
		if (s->lease.question.pending && !s->lease.question.awaited)
			ask_again(s);
}

/* ---- Channels */

static bool take_question(struct ckt_session *session, const struct ckt_lease_message *message)
{
	struct ckt_daemon_lease *lease = &session->lease;
	if (lease->question.pending || message->bytes % CKT_LEDGER_GRANULE ||
		message->bytes > INT64_MAX / CKT_DEVICES_MAX || message->want < message->bytes)
		return false;
	lease->question.pending = true;
	lease->question.serial = ++session->server->lease_questions;
	lease->question.awaited = 0;
	lease->question.recalled = false;
	lease->question.number = message->number;
	lease->question.gpu = message->gpu;
	lease->question.force = message->flags & CKT_LEASE_FORCE;
	lease->question.wait = message->flags & CKT_LEASE_WAIT;
	lease->question.follow = message->flags & CKT_LEASE_FOLLOW;
	lease->question.since_ms = ckt_net_now_ms();
	lease->question.bytes = message->bytes;
	lease->question.want = message->want;
	if (!message->bytes && session->quantum.stopped) {
		/* It wants no number, only to come in: also where nobody counts what it has. */
		ckt_quantum_asked(session);
		answer(session, 0, 0);
		return true;
	}
	ask_again(session);
	return true;
}

/* It may come before the answer that tells what the worker had. */
static bool take_back(struct ckt_session *session, const struct ckt_lease_message *message)
{
	struct ckt_daemon_lease *lease = &session->lease;
	if (!lease->holder.unsettled) {
		if (ckt_ledger_give(&lease->holder, message->gpu, message->bytes))
			return false;
		ckt_memory_wait_freed(session, message->gpu, message->bytes);
		ckt_quantum_unfollowed(session, message->gpu, message->bytes);
		ckt_quantum_gave(session, message->gpu);
		ckt_memory_wait_look(session->server);
		return true;
	}
	if (message->bytes > INT64_MAX / CKT_DEVICES_MAX)
		return false;
	lease->early[message->gpu] += message->bytes;
	return true;
}

/* False: nothing more is there, or the channel is closed. */
static bool take_packet(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	struct ckt_lease_message message;
	ssize_t n = recv(lease->channel.fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close_channel(session);
		return false;
	}
	bool good = n == sizeof message && message.gpu < CKT_DEVICES_MAX;
	if (good && message.kind == CKT_LEASE_ASK)
		good = take_question(session, &message);
	else if (good && message.kind == CKT_LEASE_GIVE)
		good = take_back(session, &message);
	else if (good && message.kind == CKT_LEASE_WITHDRAW)
		ckt_memory_wait_withdraw(
			session, message.number, message.flags & CKT_LEASE_KEEP_PLACE);
	else if (good && message.kind == CKT_LEASE_END)
		good = ckt_mps_wants_end(session, (int)message.number);
	else
		good = false;
	if (!good)
		distrust(session, "what is no question");
	else if (message.kind == CKT_LEASE_WITHDRAW)
		ckt_memory_wait_look(session->server);
	return lease->open;
}

static void channel_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, lease.channel);
	(void)events;
	for (int i = 0; i < AT_A_TIME && take_packet(session); i++)
		;
}

void ckt_lease_read(struct ckt_session *session)
{
	while (session->lease.open && take_packet(session))
		;
}

/* A new worker has nothing; one of an earlier server says what it has. */
static void joined(struct ckt_session *session, void *context, int error, void *result)
{
	const ckt_worker_lease_res *res = result;
	(void)context;
	if (error || session->child)
		return;
	struct ckt_daemon_lease *lease = &session->lease;
	if (lease->holder.unsettled && !take_leases(session, res))
		distrust(session, "leases that cannot be");
	else
		lease->holder.unsettled &= res->unlimited;
	if (lease->holder.unsettled)
		ckt_lease_limits_changed(session->server);
	else if (lease->question.pending)
		ask_again(session);
	ckt_memory_wait_look(session->server);
}

int ckt_lease_open(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	struct ckt_server *server = session->server;
	int ends[2];
	if (lease->is_holder)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	lease->channel = (struct ckt_source){.fd = ends[0], .ready = channel_ready};
	int result = ckt_loop_add(&server->loop, &lease->channel, EPOLLIN);
	if (result) {
		close(ends[0]);
		close(ends[1]);
		return result;
	}
	struct ckt_share share;
	lease->open = lease->is_holder = true;
	lease->holder.subject = ckt_lease_subject(session);
	ckt_ask_share(server, &session->identity, &lease->holder.subject, &share);
	lease->holder.serial = session->serial;
	lease->holder.maximum = share.device_memory_bytes;
	struct ckt_worker_lease_args args = {
		.unlimited = !ckt_ledger_limits(&server->ledger, &lease->holder.subject)};
	lease->holder.unsettled = !session->child || args.unlimited;
	if (session->status.gpu >= 0 && session->status.gpu < CKT_DEVICES_MAX)
		lease->holder.contexts |= UINT64_C(1) << session->status.gpu;
	ckt_ledger_add(&server->ledger, &lease->holder);
	ckt_lease_is_known(session);
	ckt_memory_wait_came(session);
	ckt_quantum_join(session);
	return ckt_session_call(session, CKT_WORKER_LEASE, (xdrproc_t)xdr_ckt_worker_lease_args,
		&args, ends[1], (xdrproc_t)xdr_ckt_worker_lease_res, sizeof(ckt_worker_lease_res),
		CALL_TIMEOUT_MS, joined, NULL);
}

void ckt_lease_close(struct ckt_session *session)
{
	struct ckt_daemon_lease *lease = &session->lease;
	close_channel(session);
	ckt_lease_is_known(session);
	if (!lease->is_holder)
		return;
	lease->is_holder = false;
	ckt_quantum_leave(session);
	ckt_memory_wait_gone(session);
	ckt_ledger_remove(&session->server->ledger, &lease->holder);
	ckt_memory_wait_look(session->server);
}

void ckt_lease_limits_changed(struct ckt_server *server)
{
	refresh(server);
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->lease.is_holder && s->lease.holder.unsettled &&
			ckt_ledger_limits(&server->ledger, &s->lease.holder.subject))
			recall_from(s, NULL);
	ckt_memory_wait_look(server);
}
