/* SPDX-License-Identifier: Apache-2.0 */
/* Connections up to their hello; see peer.h. */
#include "server/daemon/peer/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/session_key.h"
#include "server/daemon/durable/afresh.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/image/stage.h"
#include "server/daemon/log_limited.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/peer/peer_certificate.h"
#include "server/daemon/peer/entry.h"
#include "server/daemon/peer/peer_tls.h"
#include "server/daemon/peer/client_container.h"
#include "server/daemon/policy/admission.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/owner_file.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_marks.h"

enum {
	HELLO_TIMEOUT_MS = 5000,
	SLOT_TIMEOUT_MS = 2000,
	/* While a worker is being ended: longer than 5 s until it is killed, and 3 s of MPS. */
	SLOT_WAITS_MAX = 5,
	SECRET_TIMEOUT_MS = 2000,
	CONTROL_IDLE_MS = 60000, /* an idle cricketctl costs a descriptor */
	JOB_IDLE_MS = 10000,     /* a connection that holds a job costs its programs' time */
	CONTROL_MAX = 64 << 10,  /* every control call is far smaller */
};

static void peer_unlink(struct ckt_peer *peer)
{
	struct ckt_server *server = peer->server;
	*(peer->previous ? &peer->previous->next : &server->peers_first) = peer->next;
	*(peer->next ? &peer->next->previous : &server->peers_last) = peer->previous;
}

static void left_greeting(struct ckt_peer *peer)
{
	if (peer->phase == CKT_PEER_GREETED || peer->phase == CKT_PEER_SECURING) {
		peer->server->peers_waiting--;
		ckt_admit_greeted(peer->server, &peer->source);
	}
	ckt_timer_clear(&peer->timer);
}

static void peer_free(struct ckt_peer *peer)
{
	xdr_free((xdrproc_t)xdr_ckt_hello_args, &peer->hello);
	explicit_bzero(&peer->hello, sizeof peer->hello);
	free(peer);
}

void ckt_peer_close(struct ckt_peer *peer)
{
	if (peer->gone)
		return;
	ckt_peer_audit_cut(peer, "the connection ended before the answer");
	left_greeting(peer);
	if (peer->memory_fd >= 0)
		close(peer->memory_fd);
	peer->memory_fd = -1;
	ckt_record_stream_fini(&peer->stream);
	peer_unlink(peer);
	peer->gone = true;
	if (peer->follows)
		ckt_scheduler_gone(peer->server);
	ckt_daemon_image_peer_gone(peer);
	ckt_daemon_job_peer_gone(peer);
	ckt_stage_peer_gone(peer);
	ckt_control_trace_peer_gone(peer);
	ckt_peer_certificate_drop(peer);
	if (!peer->holds)
		peer_free(peer);
}

void ckt_peer_hold(struct ckt_peer *peer)
{
	peer->holds++;
}

bool ckt_peer_release(struct ckt_peer *peer)
{
	peer->holds--;
	if (!peer->gone)
		return true;
	if (!peer->holds)
		peer_free(peer);
	return false;
}

static void peer_closed(struct ckt_record_stream *stream, int error)
{
	struct ckt_peer *peer = CKT_CONTAINER(stream, struct ckt_peer, stream);
	if (error)
		ckt_debug("%s: closed: %s", peer->who.text,
			error == -EMSGSIZE ? "record too long" : strerror(-error));
	ckt_peer_close(peer);
}

static void hello_late(struct ckt_timer *timer)
{
	struct ckt_peer *peer = CKT_CONTAINER(timer, struct ckt_peer, timer);
	ckt_debug("%s: no hello within %d s", peer->who.text, HELLO_TIMEOUT_MS / 1000);
	ckt_peer_close(peer);
}

static void idle_late(struct ckt_timer *timer)
{
	ckt_peer_close(CKT_CONTAINER(timer, struct ckt_peer, timer));
}

void ckt_peer_reply(struct ckt_peer *peer, xdrproc_t xdr_result, void *result)
{
	uint8_t *data;
	size_t size;
	if (ckt_net_encode_reply(peer->xid, 0, xdr_result, result, &data, &size)) {
		ckt_error("%s: cannot encode a reply", peer->who.text);
		ckt_peer_close(peer);
		return;
	}
	ckt_peer_audit_end(peer, result);
	ckt_record_stream_send(&peer->stream, data, size, -1);
	if (peer->phase == CKT_PEER_CONTROL) {
		ckt_record_stream_pause(&peer->stream, false);
		peer->timer.fire = idle_late;
		ckt_timer_set(&peer->server->loop, &peer->timer,
			peer->holds_job ? JOB_IDLE_MS : CONTROL_IDLE_MS);
	}
}

/* Of the token or certificate that the peer proved, as long as that is valid; NULL: none. */
static const struct ckt_token_entry *token_entry(const struct ckt_peer *peer)
{
	/* Its own certificate, and not another one of the same name. */
	if (peer->holder && peer->holder->owner == peer->token)
		return ckt_peer_certificate_entry(peer);
	return ckt_tokens_find_owner(peer->server, peer->token);
}

static uint32_t local_uid(const struct ckt_peer *peer)
{
	return peer->who.kind == CKT_PEER_UNIX ? peer->who.uid : CKT_UID_UNKNOWN;
}

uint32_t ckt_peer_owner(const struct ckt_peer *peer)
{
	if (local_uid(peer) != CKT_UID_UNKNOWN)
		return local_uid(peer);
	return token_entry(peer) ? peer->token : CKT_UID_UNKNOWN;
}

enum ckt_role ckt_peer_role(const struct ckt_peer *peer)
{
	const struct ckt_token_entry *entry = token_entry(peer);
	if (local_uid(peer) != CKT_UID_UNKNOWN && ckt_uid_is_operator(local_uid(peer)))
		return CKT_ROLE_ADMINISTRATOR;
	return entry ? entry->role : CKT_ROLE_USER;
}

struct ckt_control_facts ckt_peer_control_facts(const struct ckt_peer *peer, uint32_t owner_uid)
{
	const struct ckt_token_entry *entry = token_entry(peer);
	return (struct ckt_control_facts){.uid = local_uid(peer),
		.token = entry ? peer->token : 0,
		.role = entry ? entry->role : CKT_ROLE_USER,
		.operates = ckt_token_entry_operates(peer->server, entry, owner_uid),
		.owner_uid = owner_uid};
}

static bool may_control(const struct ckt_peer *peer, const struct ckt_control_facts *facts)
{
	const struct ckt_policy_server server = ckt_policy_server_of(peer->server);
	struct ckt_decision decision;
	peer->server->policy->control(&server, facts, &decision);
	return !decision.answer;
}

bool ckt_peer_may(const struct ckt_peer *peer, uint32_t owner_uid)
{
	const struct ckt_control_facts facts = ckt_peer_control_facts(peer, owner_uid);
	return may_control(peer, &facts);
}

bool ckt_peer_is_anonymous(const struct ckt_peer *peer)
{
	return ckt_peer_owner(peer) == CKT_UID_UNKNOWN;
}

bool ckt_peer_may_session(const struct ckt_peer *peer, const struct ckt_session *session)
{
	struct ckt_control_facts facts = ckt_peer_control_facts(peer, session->uid);
	facts.secret = peer->shown && peer->shown == session->serial;
	return may_control(peer, &facts);
}

/* ---- Hello */

static void refuse_text(
	struct ckt_peer *peer, ckt_hello_status status, char *message, char *moved_to)
{
	ckt_daemon_log_limited(
		peer->server, CKT_LIMIT_REFUSED, "%s: refused: %s", peer->who.text, message);
	ckt_peer_audit_refused(peer, "hello", message);
	ckt_hello_res res = {.status = status,
		.ckt_hello_res_u.refused = {.message = message, .moved_to = moved_to}};
	left_greeting(peer);
	peer->phase = CKT_PEER_WAITING;
	ckt_peer_hold(peer);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_hello_res, &res);
	if (ckt_peer_release(peer))
		ckt_record_stream_finish(&peer->stream);
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct ckt_peer *peer, ckt_hello_status status, const char *format, ...)
{
	char message[CKT_MESSAGE_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	refuse_text(peer, status, message, (char *)"");
}

static void deny_late(struct ckt_timer *timer)
{
	struct ckt_peer *peer = CKT_CONTAINER(timer, struct ckt_peer, timer);
	refuse(peer, CKT_HELLO_DENIED, "%s", peer->denial);
}

/*
 * A wrong token or secret: a source that tries often waits for the reply, and counts as waiting
 * meanwhile.
 */
static void deny(struct ckt_peer *peer, const char *why)
{
	unsigned delay_ms = ckt_admit_failed(peer->server, &peer->source);
	if (!delay_ms) {
		refuse(peer, CKT_HELLO_DENIED, "%s", why);
		return;
	}
	snprintf(peer->denial, sizeof peer->denial, "%s", why);
	/* Now, because who only guesses need not wait for the answer. */
	ckt_peer_audit_refused(peer, "hello", why);
	ckt_record_stream_pause(&peer->stream, true);
	peer->timer.fire = deny_late;
	ckt_timer_set(&peer->server->loop, &peer->timer, delay_ms);
}

/* Whether the peer may have the session of its hello, which that user owns. */
static void ask_client(const struct ckt_peer *peer, uint32_t owner_uid, bool unclaimed,
	struct ckt_decision *ret_decision)
{
	const struct ckt_policy_server server = ckt_policy_server_of(peer->server);
	const struct ckt_client_facts facts = {.control = ckt_peer_control_facts(peer, owner_uid),
		.session = peer->hello.session,
		.local = peer->who.kind == CKT_PEER_UNIX,
		.unclaimed = unclaimed};
	peer->server->policy->client(&server, &facts, ret_decision);
}

/*
 * A mark under an ID that only an image named means nothing to a client whose secret makes that ID.
 */
static bool read_mark(
	const struct ckt_peer *peer, enum ckt_session_mark mark, char *ret_text, size_t text_size)
{
	const char *id = peer->hello.session;
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	uint32_t owner;
	struct ckt_decision decision;
	if (!ckt_session_mark_read(peer->server, id, mark, &owner, ret_text, text_size))
		return false;
	ask_client(peer, owner, false, &decision);
	if (decision.answer)
		return false;
	ckt_auth_hash(peer->hello.secret, sizeof peer->hello.secret, hash);
	return owner == CKT_UID_UNKNOWN || ckt_session_mark_is_proven(peer->server, id, mark) ||
		!ckt_server_key_fits(id, hash);
}

/*
 * A session that is not here: it may have moved or been stopped on purpose, and then its client
 * must not give up.
 */
static void refuse_absent(struct ckt_peer *peer)
{
	struct ckt_server *server = peer->server;
	char text[CKT_ADDRESS_MAX + 1], message[CKT_MESSAGE_MAX];
	const char *why;
	if (read_mark(peer, CKT_MARK_MOVED, text, sizeof text)) {
		snprintf(message, sizeof message, "session %s has moved to %s", peer->hello.session,
			text);
		refuse_text(peer, CKT_HELLO_MOVED, message, text);
	} else if (read_mark(peer, CKT_MARK_PARKED, text, sizeof text)) {
		refuse(peer, CKT_HELLO_PARKED,
			"session %s was stopped on purpose on %s: wait until it is "
			"restored",
			peer->hello.session, server->host);
	} else if ((why = ckt_worker_bounds_why(server, peer->hello.session))) {
		refuse(peer, CKT_HELLO_NO_SESSION, "session %s was ended on %s: %s",
			peer->hello.session, server->host, why);
	} else if (ckt_session_find(server, peer->hello.session)) {
		/* A client that hears now that there is none may never ask again. */
		refuse(peer, CKT_HELLO_FAILED, "session %s is starting or ending on %s: ask again",
			peer->hello.session, server->host);
	} else {
		refuse(peer, CKT_HELLO_NO_SESSION, "session %s is not on %s", peer->hello.session,
			server->host);
	}
}

/* Whether the peer may connect; sends a refusal. None of the arguments is decoded yet. */
static bool admit(struct ckt_peer *peer, const struct ckt_entry *entry)
{
	const struct ckt_policy_server server = ckt_policy_server_of(peer->server);
	struct ckt_entry_facts facts = {.local = peer->who.kind == CKT_PEER_UNIX,
		.loopback = peer->who.kind == CKT_PEER_LOOPBACK};
	struct ckt_decision decision;
	if (peer->holder_refused) {
		refuse(peer, CKT_HELLO_DENIED, "%s", peer->denial);
		return false;
	}
	ckt_entry_judge_token(peer, entry, &facts);
	peer->server->policy->entry(&server, &facts, &decision);
	if (!decision.answer)
		return true;
	if (facts.token == CKT_PROOF_WRONG || facts.token == CKT_PROOF_EXPIRED)
		deny(peer, decision.reason);
	else
		refuse(peer, CKT_HELLO_DENIED, "%s", decision.reason);
	return false;
}

static void control_begin(struct ckt_peer *peer)
{
	struct ckt_decision decision;
	ckt_ask_control_connection(peer, &decision);
	if (decision.answer) {
		refuse(peer, CKT_HELLO_FULL, "%s", decision.reason);
		return;
	}
	left_greeting(peer);
	peer->phase = CKT_PEER_CONTROL;
	peer->stream.max_bytes = CONTROL_MAX;
	ckt_hello_res res = {.status = CKT_HELLO_OK,
		.ckt_hello_res_u.ok = {.protocol = CKT_PROTOCOL_VERSION,
			.session = "",
			.server = peer->server->host,
			.build = CKT_VERSION}};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_hello_res, &res);
}

static void secret_known(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_peer *peer = context;
	const struct ckt_worker_status_res *status = result;
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	if (!ckt_peer_release(peer))
		return;
	ckt_auth_hash(peer->hello.secret, sizeof peer->hello.secret, hash);
	if (error) {
		refuse(peer, CKT_HELLO_FAILED, "session %s: its worker does not answer: %s",
			session->id, strerror(-error));
	} else if (ckt_auth_equal(hash, status->secret_hash, sizeof hash)) {
		peer->shown = session->serial;
		control_begin(peer);
	} else {
		deny(peer, "the client's secret does not match the session's");
	}
}

/* A client that names a session shows its secret, and controls it whoever owns it. */
static void hello_control(struct ckt_peer *peer)
{
	struct ckt_session *session =
		*peer->hello.session ? ckt_session_find(peer->server, peer->hello.session) : NULL;
	if (!*peer->hello.session) {
		control_begin(peer);
	} else if (!session || session->phase != CKT_SESSION_LIVE) {
		refuse_absent(peer);
	} else {
		left_greeting(peer);
		peer->phase = CKT_PEER_WAITING;
		ckt_record_stream_pause(&peer->stream, true);
		ckt_peer_hold(peer);
		if (ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
			    (xdrproc_t)xdr_ckt_worker_status_res,
			    sizeof(struct ckt_worker_status_res), SECRET_TIMEOUT_MS, secret_known,
			    peer) &&
			ckt_peer_release(peer))
			refuse_absent(peer);
	}
}

/* The session is live, or will never be. */
static void session_ready(
	struct ckt_session *session, void *context, int error, const char *message)
{
	struct ckt_peer *peer = context;
	bool is_new = peer->hello.kind == CKT_HELLO_NEW;
	if (!ckt_peer_release(peer)) {
		if (!error && is_new)
			ckt_session_kill(session, "its client went away");
		return;
	}
	if (error) {
		/* What could not be woken sleeps on, and its client waits. */
		bool asleep = !is_new && ckt_sleep_find(peer->hello.session);
		refuse(peer,
			asleep                     ? CKT_HELLO_PARKED
				: error == -ENODEV ? CKT_HELLO_NO_DEVICE
						   : CKT_HELLO_FAILED,
			"%s", message);
		return;
	}
	/* A peer that has not even read the greeting is dropped. */
	int fd = ckt_record_stream_queued(&peer->stream) ? -1
							 : ckt_record_stream_detach(&peer->stream);
	int memory_fd = peer->memory_fd;
	peer->memory_fd = -1;
	/*
	 * A program may be stopped, and a worker behind a long kernel: from here on both may leave
	 * data unread.
	 */
	if (fd >= 0)
		ckt_net_must_read(fd, 0);
	struct ckt_auth_peer who = peer->who;
	who.uid = ckt_peer_owner(peer);
	/* Of a session that was restored; otherwise the one that it began in. */
	if (!*session->container && *peer->container) {
		strcpy(session->container, peer->container);
		ckt_owner_file_write(session);
	}
	int result = ckt_session_host_memory(session, memory_fd);
	if (result && fd >= 0)
		close(fd);
	if (!result)
		result = fd < 0
			? -EPROTO
			: ckt_session_hand_over(session, peer->xid, &peer->hello, &who, fd, is_new);
	if (result) {
		ckt_warning("session %s: cannot pass its client's connection to the worker: %s",
			session->id, strerror(-result));
		if (is_new)
			ckt_session_kill(session, "it has no client");
	}
	ckt_peer_close(peer);
}

static void wait_for(struct ckt_peer *peer, struct ckt_session *session)
{
	if (session->sleep.falls) {
		refuse(peer, CKT_HELLO_PARKED, "session %s falls asleep: ask again", session->id);
		return;
	}
	left_greeting(peer);
	peer->phase = CKT_PEER_WAITING;
	ckt_record_stream_pause(&peer->stream, true);
	ckt_peer_hold(peer);
	int result = ckt_session_wait_started(session, session_ready, peer);
	if (result && ckt_peer_release(peer))
		refuse_absent(peer);
}

static void start_session(struct ckt_peer *peer)
{
	struct ckt_session *session;
	char message[CKT_MESSAGE_MAX];
	struct ckt_session_spec spec = {.uid = ckt_peer_owner(peer),
		.identity = ckt_identity_of_peer(peer),
		.hello = &peer->hello,
		.container = peer->container,
		.image_fd = -1,
		.gpu = -1};
	int error = ckt_session_create(peer->server, &spec, &session, message, sizeof message);
	if (error == -ENODEV || error == -EINVAL) {
		/* The program chose that. */
		refuse(peer, error == -ENODEV ? CKT_HELLO_NO_DEVICE : CKT_HELLO_INVALID_DEVICE,
			"%s", message);
	} else if (error) {
		ckt_error("%s", message);
		refuse(peer, CKT_HELLO_FAILED, "%s", message);
	} else {
		wait_for(peer, session);
	}
}

static void slot_late(struct ckt_timer *timer)
{
	struct ckt_peer *peer = CKT_CONTAINER(timer, struct ckt_peer, timer);
	peer->wants_slot =
		++peer->slot_waits < SLOT_WAITS_MAX && ckt_session_any_ends(peer->server);
	if (peer->wants_slot)
		ckt_timer_set(&peer->server->loop, &peer->timer, SLOT_TIMEOUT_MS);
	else
		refuse(peer, CKT_HELLO_FULL, "%s", peer->denial);
}

/*
 * A program that has just ended still occupies its place while its worker frees the memory: so the
 * refusal waits.
 */
static void wait_for_slot(struct ckt_peer *peer, const char *reason)
{
	snprintf(peer->denial, sizeof peer->denial, "%s", reason);
	left_greeting(peer);
	peer->phase = CKT_PEER_WAITING;
	peer->wants_slot = true;
	peer->slot_waits = 0;
	ckt_record_stream_pause(&peer->stream, true);
	peer->timer.fire = slot_late;
	ckt_timer_set(&peer->server->loop, &peer->timer, SLOT_TIMEOUT_MS);
}

static void hello_new(struct ckt_peer *peer)
{
	struct ckt_decision decision;
	char message[CKT_MESSAGE_MAX];
	if (ckt_drain_refuses(peer->server, message)) {
		refuse(peer, CKT_HELLO_FULL, "%s", message);
		return;
	}
	ckt_ask_session(peer, false, -1, &decision);
	if (!decision.answer)
		start_session(peer);
	else if (decision.answer == CKT_POLICY_WAIT)
		wait_for_slot(peer, decision.reason);
	else
		refuse(peer,
			decision.answer == CKT_POLICY_STOPPING            ? CKT_HELLO_SHUTTING_DOWN
				: decision.answer == CKT_POLICY_NO_DEVICE ? CKT_HELLO_NO_DEVICE
									  : CKT_HELLO_FULL,
			"%s", decision.reason);
}

void ckt_peer_session_gone(struct ckt_server *server)
{
	struct ckt_peer *peer = server->peers_first;
	struct ckt_decision decision;
	while (peer && !peer->wants_slot)
		peer = peer->next;
	if (!peer)
		return;
	ckt_ask_session(peer, false, -1, &decision);
	if (decision.answer == CKT_POLICY_WAIT)
		return;
	peer->wants_slot = false;
	ckt_timer_clear(&peer->timer);
	hello_new(peer);
}

/* A session that is not here, but in its automatic images. */
static void come_back(struct ckt_peer *peer)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_session *session;
	bool keep = ckt_sleep_is_kept(&peer->hello);
	int result = keep ? ckt_sleep_keep(peer, message)
		: peer->hello.kind == CKT_HELLO_RESUME
		? ckt_automatic_resume(peer, &session, message)
		: -ENOENT;
	if (!result && keep)
		return;
	if (result == -ENOENT && !keep)
		result = ckt_afresh_resume(peer, &session, message);
	if (!result)
		wait_for(peer, session);
	else if (result == -ENOENT)
		refuse_absent(peer);
	else if (result == -EACCES)
		deny(peer, message);
	else if (ckt_sleep_find(peer->hello.session))
		refuse(peer, CKT_HELLO_PARKED, "%s", message);
	else
		refuse(peer, result == -EPERM ? CKT_HELLO_DENIED : CKT_HELLO_FAILED, "%s", message);
}

static void hello_existing(struct ckt_peer *peer)
{
	struct ckt_session *session = ckt_session_find(peer->server, peer->hello.session);
	struct ckt_decision decision;
	if (!session) {
		come_back(peer);
		return;
	}
	/* A lane: only the program itself has the key. */
	if (peer->hello.kind == CKT_HELLO_DATA &&
		!ckt_session_secret_is_key((const uint8_t *)peer->hello.secret)) {
		deny(peer, "only a session with a key has further connections");
		return;
	}
	ask_client(peer, session->uid, session->unclaimed, &decision);
	if (decision.answer)
		refuse(peer, CKT_HELLO_DENIED, "%s", decision.reason);
	else
		wait_for(peer, session); /* only the worker can check the secret */
}

static void hello(struct ckt_peer *peer, const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_entry entry;
	if (!ckt_entry_read(&c, peer, &entry)) {
		ckt_debug("%s: the first message is not a hello", peer->who.text);
		ckt_peer_audit_refused(peer, "hello", "the first message is not a hello");
		ckt_peer_close(peer);
		return;
	}
	peer->xid = entry.xid;
	if (ckt_peer_lacks_tls(peer)) {
		refuse(peer, CKT_HELLO_DENIED, CKT_PEER_NEEDS_TLS);
		return;
	}
	if (!admit(peer, &entry))
		return;
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &peer->hello)) {
		peer->hello = (struct ckt_hello_args){0};
		ckt_debug("%s: cannot decode the hello", peer->who.text);
		ckt_peer_audit_refused(peer, "hello", "the hello is malformed");
		ckt_peer_close(peer);
		return;
	}
	if (peer->hello.protocol != CKT_PROTOCOL_VERSION) {
		refuse(peer, CKT_HELLO_BAD_VERSION,
			"the server speaks protocol version %d (Cricket %s), the "
			"client %u (Cricket %.40s): install the same version on both "
			"hosts",
			CKT_PROTOCOL_VERSION, CKT_VERSION, peer->hello.protocol, peer->hello.build);
		return;
	}
	if (ckt_entry_lacks_key(peer, &entry)) {
		deny(peer, "the client does not prove that it holds the session's key");
		return;
	}
	struct ckt_decision decision;
	ckt_ask_waiting(peer, &decision);
	if (decision.answer) {
		refuse(peer, CKT_HELLO_FULL, "%s", decision.reason);
		return;
	}
	switch (peer->hello.kind) {
	case CKT_HELLO_NEW:
		hello_new(peer);
		break;
	case CKT_HELLO_RESUME:
	case CKT_HELLO_DATA:
		hello_existing(peer);
		break;
	case CKT_HELLO_CONTROL:
		hello_control(peer);
		break;
	default: /* XDR's enums take any number */
		ckt_peer_audit_refused(peer, "hello", "the hello is of an unknown kind");
		ckt_peer_close(peer);
		break;
	}
}

static void peer_record(struct ckt_record_stream *stream, uint8_t *data, size_t size, int passed_fd)
{
	struct ckt_peer *peer = CKT_CONTAINER(stream, struct ckt_peer, stream);
	if (peer->phase == CKT_PEER_CONTROL) {
		ckt_timer_clear(&peer->timer);
		ckt_control_call(peer, data, size, passed_fd);
		return;
	}
	if (peer->memory_fd >= 0)
		close(peer->memory_fd);
	peer->memory_fd = passed_fd;
	if (!ckt_peer_tls_record(peer, data, size))
		hello(peer, data, size);
	explicit_bzero(data, size);
	free(data);
}

void ckt_peer_greet(struct ckt_peer *peer)
{
	const struct ckt_server *server = peer->server;
	bool knows_token = ckt_tokens_known(server);
	bool needs_token = knows_token && peer->who.kind != CKT_PEER_UNIX &&
		!server->options.insecure && !ckt_peer_certificate_entry(peer);
	ckt_greeting greeting = {.protocol = CKT_PROTOCOL_VERSION};
	uint32_t flavours[CKT_AUTH_FLAVOURS_MAX];
	u_int count = 0;
	/* Clients of earlier versions know one token alone. */
	if (server->token.size_bytes)
		flavours[count++] = CKT_AUTH_CRICKET_TOKEN;
	if (knows_token)
		flavours[count++] = CKT_AUTH_CRICKET_NAMED;
	flavours[count++] = CKT_AUTH_CRICKET_PROOF;
	if (!needs_token)
		flavours[count++] = CKT_AUTH_NONE;
	if (ckt_peer_offers_tls(peer))
		flavours[count++] = CKT_AUTH_TLS;
	greeting.flavours.flavours_val = flavours;
	greeting.flavours.flavours_len = count;
	memcpy(greeting.nonce, peer->nonce, sizeof greeting.nonce);
	uint8_t *data;
	size_t size;
	if (ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		    (xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size) == 0)
		ckt_record_stream_send(&peer->stream, data, size, -1);
	else
		ckt_transport_shutdown(&peer->stream.transport);
}

/*
 * Each worker leads a session (setsid) that it and its children cannot leave in their cage.  Where
 * the server is not root they are its user, who may control all sessions.
 */
static bool is_of_worker(const struct ckt_server *server, const struct ckt_auth_peer *who)
{
	pid_t leader = who->kind == CKT_PEER_UNIX && who->pid > 0 ? getsid((pid_t)who->pid) : -1;
	for (const struct ckt_session *session = server->sessions; session && leader > 0;
		session = session->next)
		if (session->pid == leader)
			return true;
	return false;
}

void ckt_peer_accept(struct ckt_server *server, int fd)
{
	struct ckt_auth_peer who;
	if (ckt_auth_peer_get(fd, &who)) {
		close(fd);
	} else if (is_of_worker(server, &who)) {
		ckt_daemon_log_limited(server, CKT_LIMIT_REFUSED,
			"refused: process %d of a worker connected; a worker has no business here",
			(int)who.pid);
		close(fd);
	} else {
		ckt_peer_accept_as(server, fd, &who);
	}
}

void ckt_peer_accept_as(struct ckt_server *server, int fd, const struct ckt_auth_peer *who)
{
	struct ckt_identity source = ckt_identity_of(who);
	/* First of all, so that a flood costs only this. */
	if (!ckt_admit_connection(server, &source, fd)) {
		close(fd);
		return;
	}
	struct ckt_peer *peer = calloc(1, sizeof *peer);
	if (!peer || getrandom(peer->nonce, sizeof peer->nonce, 0) != sizeof peer->nonce) {
		ckt_admit_greeted(server, &source);
		free(peer);
		close(fd);
		return;
	}
	peer->server = server;
	peer->who = *who;
	ckt_client_container(fd, who, peer->container, sizeof peer->container);
	peer->since_ms = ckt_net_now_ms();
	peer->source = source;
	peer->memory_fd = -1;
	peer->stream.max_bytes = CKT_HELLO_MAX;
	peer->stream.record = peer_record;
	peer->stream.closed = peer_closed;
	peer->stream.take_fds = peer->who.kind == CKT_PEER_UNIX;
	if (ckt_record_stream_init(&peer->stream, &server->loop, fd)) {
		ckt_admit_greeted(server, &peer->source);
		free(peer);
		close(fd);
		return;
	}
	if (peer->who.kind != CKT_PEER_UNIX) {
		ckt_net_prepare(fd);
		ckt_net_must_read(fd, CKT_NET_VANISHED_MS);
	}
	peer->previous = server->peers_last;
	*(server->peers_last ? &server->peers_last->next : &server->peers_first) = peer;
	server->peers_last = peer;
	server->peers_waiting++;
	peer->timer.fire = hello_late;
	ckt_timer_set(&server->loop, &peer->timer, HELLO_TIMEOUT_MS);
	ckt_peer_greet(peer);
}
