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

#include "server/daemon/peer/control.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/session_marks.h"
#include "base/log.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session.h"
#include "server/daemon/image/stage.h"

enum {
	HELLO_TIMEOUT_MS = 5000,
	SLOT_TIMEOUT_MS = 2000,
	SECRET_TIMEOUT_MS = 2000,
	CONTROL_IDLE_MS = 60000, /* an idle cricketctl costs a descriptor */
	JOB_IDLE_MS = 10000,     /* and one that holds a job costs its programs' time */
	CONTROL_MAX = 64 << 10,  /* every control call is far smaller */
	HELLO_HEADER_SIZE = 40,  /* a call with an empty credential */
	VERSION = 1,             /* of CRICKET_SESSION_PROG */
};

static void peer_unlink(struct ckt_peer *peer)
{
	struct ckt_server *server = peer->server;
	*(peer->previous ? &peer->previous->next : &server->peers_first) = peer->next;
	*(peer->next ? &peer->next->previous : &server->peers_last) = peer->previous;
}

static void left_greeting(struct ckt_peer *peer)
{
	if (peer->phase == CKT_PEER_GREETED) {
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
	left_greeting(peer);
	if (peer->memory_fd >= 0)
		close(peer->memory_fd);
	peer->memory_fd = -1;
	ckt_stream_fini(&peer->stream);
	peer_unlink(peer);
	peer->gone = true;
	ckt_image_peer_gone(peer);
	ckt_job_peer_gone(peer);
	ckt_stage_peer_gone(peer);
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

static void peer_closed(struct ckt_stream *stream, int error)
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
		ckt_error("%s: cannot encode an answer", peer->who.text);
		ckt_peer_close(peer);
		return;
	}
	ckt_stream_send(&peer->stream, data, size, -1);
	if (peer->phase == CKT_PEER_CONTROL) {
		ckt_stream_pause(&peer->stream, false);
		peer->timer.fire = idle_late;
		ckt_timer_set(&peer->server->loop, &peer->timer,
			peer->holds_job ? JOB_IDLE_MS : CONTROL_IDLE_MS);
	}
}

bool ckt_peer_may(const struct ckt_peer *peer, uint32_t owner_uid)
{
	if (peer->token)
		return true;
	/*
	 * Peers without a name are many, not one user: what one of them owns is none of the others'
	 * business.
	 */
	if (ckt_peer_is_anonymous(peer))
		return false;
	return peer->who.uid == 0 || peer->who.uid == geteuid() || peer->who.uid == owner_uid;
}

bool ckt_peer_is_anonymous(const struct ckt_peer *peer)
{
	return !peer->token &&
		(peer->who.kind != CKT_PEER_UNIX || peer->who.uid == CKT_UID_UNKNOWN);
}

bool ckt_peer_may_session(const struct ckt_peer *peer, const struct ckt_session *session)
{
	return (peer->shown && peer->shown == session->serial) || ckt_peer_may(peer, session->uid);
}

/* ---- Hello */

static void refuse_text(
	struct ckt_peer *peer, ckt_hello_status status, char *message, char *moved_to)
{
	ckt_log_limited(
		peer->server, CKT_LIMIT_REFUSED, "%s: refused: %s", peer->who.text, message);
	ckt_hello_res res = {.status = status,
		.ckt_hello_res_u.refused = {.message = message, .moved_to = moved_to}};
	left_greeting(peer);
	peer->phase = CKT_PEER_WAITING;
	ckt_peer_hold(peer);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_hello_res, &res);
	if (ckt_peer_release(peer))
		ckt_stream_finish(&peer->stream);
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
 * What was shown is wrong: whoever tries often waits for the answer, and counts as waiting
 * meanwhile.
 */
static void deny(struct ckt_peer *peer, const char *why)
{
	unsigned delay_ms = ckt_admit_failed(peer->server, &peer->source);
	peer->denial = why;
	if (!delay_ms) {
		refuse(peer, CKT_HELLO_DENIED, "%s", why);
		return;
	}
	ckt_stream_pause(&peer->stream, true);
	peer->timer.fire = deny_late;
	ckt_timer_set(&peer->server->loop, &peer->timer, delay_ms);
}

/*
 * The secret proves a client; over the UNIX socket the user must be the session's too, so that a
 * secret that was read somewhere is of no use to another user of the host.
 */
static bool may_resume(const struct ckt_peer *peer, uint32_t owner_uid)
{
	return peer->who.kind != CKT_PEER_UNIX || owner_uid == CKT_UID_UNKNOWN ||
		ckt_peer_may(peer, owner_uid);
}

/*
 * A mark under an id that an image alone named says nothing to a client whose secret makes that id.
 */
static bool read_mark(
	const struct ckt_peer *peer, enum ckt_mark mark, char *ret_text, size_t text_size)
{
	const char *id = peer->hello.session;
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	uint32_t owner;
	if (!ckt_mark_read(peer->server, id, mark, &owner, ret_text, text_size) ||
		!may_resume(peer, owner))
		return false;
	ckt_auth_hash(peer->hello.secret, sizeof peer->hello.secret, hash);
	return owner == CKT_UID_UNKNOWN || ckt_mark_is_proven(peer->server, id, mark) ||
		!ckt_key_fits(id, hash);
}

/*
 * A session that is not here: it may have been sent away or stopped on purpose, and then its client
 * must not give up.
 */
static void refuse_absent(struct ckt_peer *peer)
{
	struct ckt_server *server = peer->server;
	char text[CKT_ADDRESS_MAX + 1], message[CKT_MESSAGE_MAX];
	if (read_mark(peer, CKT_MARK_MOVED, text, sizeof text)) {
		snprintf(message, sizeof message, "session %s has moved to %s", peer->hello.session,
			text);
		refuse_text(peer, CKT_HELLO_MOVED, message, text);
	} else if (read_mark(peer, CKT_MARK_PARKED, text, sizeof text)) {
		refuse(peer, CKT_HELLO_PARKED,
			"session %s was stopped on purpose on %s: wait until it is restored",
			peer->hello.session, server->host);
	} else {
		refuse(peer, CKT_HELLO_NO_SESSION, "session %s is not on %s", peer->hello.session,
			server->host);
	}
}

/*
 * Reads the header and the token of a hello; the cursor stays at the arguments.  False: not such a
 * call at all.
 */
static bool hello_header(struct ckt_cursor *c, uint32_t *ret_xid, const uint8_t **ret_hmac)
{
	*ret_xid = ckt_get_u32(c);
	bool good = ckt_get_u32(c) == 0 && ckt_get_u32(c) == 2;
	good = ckt_get_u32(c) == CRICKET_SESSION_PROG && good;
	good = ckt_get_u32(c) == VERSION && good;
	good = ckt_get_u32(c) == CKT_SESSION_HELLO && good;
	uint32_t flavour = ckt_get_u32(c), length;
	const uint8_t *body = ckt_get_opaque(c, CKT_AUTH_HMAC_SIZE, &length);
	*ret_hmac = NULL;
	if (flavour == CKT_AUTH_CRICKET_TOKEN && length == CKT_AUTH_HMAC_SIZE)
		*ret_hmac = body;
	else
		good = flavour == CKT_AUTH_NONE && length == 0 && good;
	/* The verifier. */
	good = ckt_get_u32(c) == CKT_AUTH_NONE && good;
	good = ckt_get_u32(c) == 0 && good;
	return good && !c->bad;
}

/* Whether the peer gets in; a refusal is sent. Nothing of the arguments is decoded yet. */
static bool admit(struct ckt_peer *peer, const struct ckt_cursor *args, const uint8_t *hmac)
{
	struct ckt_server *server = peer->server;
	if (hmac && server->token.size_bytes) {
		uint8_t expected[CKT_AUTH_HMAC_SIZE];
		ckt_auth_hmac(&server->token, peer->nonce, args->p, (size_t)(args->end - args->p),
			expected);
		if (!ckt_auth_equal(hmac, expected, sizeof expected)) {
			deny(peer,
				"the token is not this server's: CRICKET_TOKEN_FILE must name a copy of its token file");
			return false;
		}
		peer->token = true;
	}
	if (peer->token || peer->who.kind == CKT_PEER_UNIX || server->options.insecure)
		return true;
	/*
	 * A forwarded port makes everybody look local: so a token that there is counts for loopback
	 * too, and no peer there has a uid.
	 */
	if (server->token.size_bytes) {
		refuse(peer, CKT_HELLO_DENIED,
			"this server wants a token: set CRICKET_TOKEN_FILE to a copy of its token file");
		return false;
	}
	if (peer->who.kind == CKT_PEER_LOOPBACK)
		return true;
	refuse(peer, CKT_HELLO_DENIED,
		"this server takes no clients from other hosts: start it with --token-file");
	return false;
}

static void control_begin(struct ckt_peer *peer)
{
	char buffer[CKT_MESSAGE_MAX];
	if (!ckt_admit_control(peer, buffer)) {
		refuse(peer, CKT_HELLO_FULL, "%s", buffer);
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
		deny(peer, "the secret is not this session's: its secret is another");
	}
}

/* Who names a session shows its secret, and controls it whoever owns it. */
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
		ckt_stream_pause(&peer->stream, true);
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
		refuse(peer, error == -ENODEV ? CKT_HELLO_NO_DEVICE : CKT_HELLO_FAILED, "%s",
			message);
		return;
	}
	/* A peer that has not even read the greeting has no business here. */
	int fd = ckt_stream_queued(&peer->stream) ? -1 : ckt_stream_detach(&peer->stream);
	int memory_fd = peer->memory_fd;
	peer->memory_fd = -1;
	/*
	 * A program may be stopped, and a worker behind a long kernel: from here on both may leave
	 * data unread.
	 */
	if (fd >= 0)
		ckt_net_must_read(fd, 0);
	int result = ckt_session_host_memory(session, memory_fd);
	if (result && fd >= 0)
		close(fd);
	if (!result)
		result = fd < 0 ? -EPROTO
				: ckt_session_hand_over(
					  session, peer->xid, &peer->hello, &peer->who, fd, is_new);
	if (result) {
		ckt_warning("session %s: cannot hand its client over: %s", session->id,
			strerror(-result));
		if (is_new)
			ckt_session_kill(session, "it has no client");
	}
	ckt_peer_close(peer);
}

static void wait_for(struct ckt_peer *peer, struct ckt_session *session)
{
	left_greeting(peer);
	peer->phase = CKT_PEER_WAITING;
	ckt_stream_pause(&peer->stream, true);
	ckt_peer_hold(peer);
	int result = ckt_session_wait_started(session, session_ready, peer);
	if (result && ckt_peer_release(peer))
		refuse_absent(peer);
}

static void start_session(struct ckt_peer *peer)
{
	struct ckt_session *session;
	char message[CKT_MESSAGE_MAX];
	struct ckt_session_spec spec = {.uid = peer->who.uid,
		.identity = ckt_identity_of_peer(peer),
		.hello = &peer->hello,
		.image_fd = -1,
		.gpu = -1};
	if (!ckt_admit_session(peer->server, &spec.identity, message)) {
		refuse(peer, CKT_HELLO_FULL, "%s", message);
		return;
	}
	int error = ckt_session_create(peer->server, &spec, &session, message, sizeof message);
	if (error == -ENODEV || error == -EINVAL) {
		/* The program wanted it so. */
		refuse(peer, error == -ENODEV ? CKT_HELLO_NO_DEVICE : CKT_HELLO_INVALID_DEVICE,
			"%s", message);
	} else if (error) {
		ckt_error("%s", message);
		refuse(peer, CKT_HELLO_FAILED, "%s", message);
	} else {
		wait_for(peer, session);
	}
}

static bool is_full(const struct ckt_server *server)
{
	return server->options.max_sessions &&
		server->session_count >= server->options.max_sessions;
}

static void slot_late(struct ckt_timer *timer)
{
	struct ckt_peer *peer = CKT_CONTAINER(timer, struct ckt_peer, timer);
	peer->wants_slot = false;
	refuse(peer, CKT_HELLO_FULL,
		"the server on %s has all its %u sessions (--max-sessions): try again later, or another server",
		peer->server->host, peer->server->options.max_sessions);
}

static void hello_new(struct ckt_peer *peer)
{
	struct ckt_server *server = peer->server;
	if (server->stopping) {
		refuse(peer, CKT_HELLO_SHUTTING_DOWN, "the server on %s is shutting down",
			server->host);
	} else if (!is_full(server)) {
		start_session(peer);
	} else {
		/*
		 * A program that has just ended still takes its place while its worker gives the
		 * memory back.
		 */
		left_greeting(peer);
		peer->phase = CKT_PEER_WAITING;
		peer->wants_slot = true;
		ckt_stream_pause(&peer->stream, true);
		peer->timer.fire = slot_late;
		ckt_timer_set(&server->loop, &peer->timer, SLOT_TIMEOUT_MS);
	}
}

void ckt_peer_session_gone(struct ckt_server *server)
{
	struct ckt_peer *peer = server->peers_first;
	while (peer && !peer->wants_slot)
		peer = peer->next;
	if (!peer || (is_full(server) && !server->stopping))
		return;
	peer->wants_slot = false;
	ckt_timer_clear(&peer->timer);
	hello_new(peer);
}

static void hello_existing(struct ckt_peer *peer)
{
	struct ckt_session *session = ckt_session_find(peer->server, peer->hello.session);
	if (!session)
		refuse_absent(peer);
	else if (!session->unclaimed && !may_resume(peer, session->uid))
		refuse(peer, CKT_HELLO_DENIED, "session %s belongs to another user", session->id);
	else
		wait_for(peer, session); /* the secret is the worker's to check, who knows it */
}

static void hello(struct ckt_peer *peer, const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	const uint8_t *hmac;
	if (size < HELLO_HEADER_SIZE || !hello_header(&c, &peer->xid, &hmac)) {
		ckt_debug("%s: the first message is no hello", peer->who.text);
		ckt_peer_close(peer);
		return;
	}
	if (!admit(peer, &c, hmac))
		return;
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &peer->hello)) {
		peer->hello = (struct ckt_hello_args){0};
		ckt_debug("%s: the hello does not decode", peer->who.text);
		ckt_peer_close(peer);
		return;
	}
	if (peer->hello.protocol != CKT_PROTOCOL_VERSION) {
		refuse(peer, CKT_HELLO_BAD_VERSION,
			"the server speaks protocol version %d (Cricket %s), the client %u (Cricket %.40s): install the same",
			CKT_PROTOCOL_VERSION, CKT_VERSION, peer->hello.protocol, peer->hello.build);
		return;
	}
	char buffer[CKT_MESSAGE_MAX];
	if (!ckt_admit_hello(peer, buffer)) {
		refuse(peer, CKT_HELLO_FULL, "%s", buffer);
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
		ckt_peer_close(peer);
		break;
	}
}

static void peer_record(struct ckt_stream *stream, uint8_t *data, size_t size, int passed_fd)
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
	hello(peer, data, size);
	explicit_bzero(data, size);
	free(data);
}

static void greet(struct ckt_peer *peer)
{
	uint32_t flavours[] = {CKT_AUTH_CRICKET_TOKEN, CKT_AUTH_NONE}, *first = flavours;
	bool needs_token = peer->server->token.size_bytes && peer->who.kind != CKT_PEER_UNIX &&
		!peer->server->options.insecure;
	ckt_greeting greeting = {.protocol = CKT_PROTOCOL_VERSION};
	if (!peer->server->token.size_bytes)
		first++;
	greeting.flavours.flavours_val = first;
	greeting.flavours.flavours_len = (u_int)(flavours + 2 - first) - (needs_token ? 1 : 0);
	memcpy(greeting.nonce, peer->nonce, sizeof greeting.nonce);
	uint8_t *data;
	size_t size;
	if (ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		    (xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size) == 0)
		ckt_stream_send(&peer->stream, data, size, -1);
	else
		shutdown(peer->stream.source.fd, SHUT_RDWR);
}

void ckt_peer_accept(struct ckt_server *server, int fd)
{
	struct ckt_auth_peer who;
	if (ckt_auth_peer_get(fd, &who))
		close(fd);
	else
		ckt_peer_accept_as(server, fd, &who);
}

void ckt_peer_accept_as(struct ckt_server *server, int fd, const struct ckt_auth_peer *who)
{
	struct ckt_identity source = ckt_identity_of(who, false);
	/* First of all, so that a flood costs no more than this. */
	if (!ckt_admit_connection(server, &source, fd)) {
		close(fd);
		return;
	}
	struct ckt_peer *peer = calloc(1, sizeof *peer);
	int one = 1;
	if (!peer || getrandom(peer->nonce, sizeof peer->nonce, 0) != sizeof peer->nonce) {
		ckt_admit_greeted(server, &source);
		free(peer);
		close(fd);
		return;
	}
	peer->server = server;
	peer->who = *who;
	peer->since_ms = ckt_net_now_ms();
	peer->source = source;
	peer->memory_fd = -1;
	peer->stream.max_bytes = CKT_HELLO_MAX;
	peer->stream.record = peer_record;
	peer->stream.closed = peer_closed;
	peer->stream.take_fds = peer->who.kind == CKT_PEER_UNIX;
	if (ckt_stream_init(&peer->stream, &server->loop, fd)) {
		ckt_admit_greeted(server, &peer->source);
		free(peer);
		close(fd);
		return;
	}
	if (peer->who.kind != CKT_PEER_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		ckt_net_keep_alive(fd);
		ckt_net_must_read(fd, CKT_NET_VANISHED_MS);
	}
	peer->previous = server->peers_last;
	*(server->peers_last ? &server->peers_last->next : &server->peers_first) = peer;
	server->peers_last = peer;
	server->peers_waiting++;
	peer->timer.fire = hello_late;
	ckt_timer_set(&server->loop, &peer->timer, HELLO_TIMEOUT_MS);
	greet(peer);
}
