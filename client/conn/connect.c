/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to connect to one address: greeting, token, hello.  See conn.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/conn/conn.h"
#include "client/conn/hostmem.h"
#include "client/conn/replay.h"
#include "client/conn/settings.h"
#include "rpc/greeting.h"
#include "rpc/lane.h"
#include "rpc/record.h"
#include "rpc/secure.h"
#include "rpc/transport/shared_memory.h"
#include "base/log.h"
#include "cudacommon/visible_devices.h"

enum { HELLO_XID = 0 };

/* The token is the file's contents without trailing white space. */
static int read_token(struct ckt_token *ret_token, char *ret_message, size_t message_size)
{
	const char *path = ckt_settings.token_file;
	if (!path) {
		snprintf(ret_message, message_size,
			"the server requires a token: set CRICKET_TOKEN_FILE to a file "
			"that holds it");
		return -EACCES;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_token->bytes, sizeof ret_token->bytes);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		snprintf(ret_message, message_size, "CRICKET_TOKEN_FILE=%s: %s", path,
			strerror(error));
		return -EACCES;
	}
	while (n > 0 && strchr(" \t\r\n", ret_token->bytes[n - 1]))
		n--;
	if (n == 0) {
		snprintf(ret_message, message_size, "CRICKET_TOKEN_FILE=%s is empty", path);
		return -EACCES;
	}
	ret_token->size_bytes = (size_t)n;
	return 0;
}

/*
 * A server that requires a token does not offer AUTH_NONE.  A server that only knows tokens gets
 * the client's token if there is one.  Its UNIX socket needs no token, because the kernel tells it
 * the user.
 */
static int choose_token(const struct ckt_greeting *greeting, int fd, struct ckt_token *ret_token,
	char *ret_message, size_t message_size)
{
	ret_token->size_bytes = 0;
	if (!ckt_greeting_offers(greeting, CKT_AUTH_NONE))
		return read_token(ret_token, ret_message, message_size);
	if (ckt_greeting_offers(greeting, CKT_AUTH_CRICKET_NAMED) && ckt_settings.token_file &&
		!ckt_net_is_local(fd))
		return read_token(ret_token, ret_message, message_size);
	return 0;
}

/*
 * A session has a key from its first hello on.  A server of an earlier version identifies the
 * session by a secret that the client sends.
 */
static int choose_secret(
	struct ckt_conn *conn, const struct ckt_greeting *greeting, enum ckt_hello_kind kind)
{
	if (kind != CKT_HELLO_NEW)
		return 0;
	if (conn->key && ckt_greeting_offers(greeting, CKT_AUTH_CRICKET_PROOF)) {
		ckt_session_key_secret(conn->key->public_key, conn->secret);
		return 0;
	}
	do
		if (getrandom(conn->secret, sizeof conn->secret, 0) != sizeof conn->secret)
			return -EIO;
	while (ckt_session_secret_is_key(conn->secret));
	return 0;
}

/*
 * The server reads CUDA_VISIBLE_DEVICES, because it knows the GPUs; the hello holds it in pieces.
 */
struct visible {
	/* with room for the job, the rings, calls again, sleep and replays */
	ckt_capability pieces[CKT_VISIBLE_TEXT_MAX / CKT_VISIBLE_PIECE + 6];
	char names[CKT_VISIBLE_TEXT_MAX / CKT_VISIBLE_PIECE + 1][64 + 1];
	unsigned count;
};

static int put_visible(
	const char *text, struct visible *visible, char *ret_message, size_t message_size)
{
	visible->count = 0;
	if (text && strlen(text) > CKT_VISIBLE_TEXT_MAX) {
		snprintf(ret_message, message_size,
			"CUDA_VISIBLE_DEVICES is longer than %d characters", CKT_VISIBLE_TEXT_MAX);
		return -EMSGSIZE;
	}
	if (!text)
		return 0;
	do {
		snprintf(visible->names[visible->count], sizeof visible->names[0],
			CKT_VISIBLE_CAPABILITY "%.*s", CKT_VISIBLE_PIECE, text);
		visible->pieces[visible->count] = (ckt_capability){
			.name = visible->names[visible->count], .value = visible->count};
		visible->count++;
		text += strnlen(text, CKT_VISIBLE_PIECE);
	} while (*text);
	return 0;
}

/* The worker gets the memory's descriptor only if it is on the same host. */
static int memory_for(int fd)
{
	return ckt_net_is_local(fd) ? ckt_host_memory_file() : -1;
}

uint64_t ckt_conn_told(const struct ckt_hello_ok *ok, const char *name)
{
	for (u_int i = 0; i < ok->capabilities.capabilities_len; i++)
		if (strcmp(ok->capabilities.capabilities_val[i].name, name) == 0)
			return ok->capabilities.capabilities_val[i].value;
	return 0;
}

uint64_t ckt_conn_copy_of(const struct ckt_hello_ok *ok)
{
	return ckt_conn_told(ok, CKT_CAPABILITY_COPY);
}

struct capabilities {
	ckt_capability own[CKT_CAPABILITIES_MAX], *list;
	char job[sizeof CKT_JOB_CAPABILITY + CKT_JOB_NAME_MAX];
	unsigned count;
};

/* What the hello says besides.  The list of a new session lies in `visible`. */
static void put_capabilities(const struct ckt_conn *conn, int fd, enum ckt_hello_kind kind,
	struct visible *visible, struct capabilities *ret)
{
	ret->list = ret->own;
	ret->count = 0;
	if (kind == CKT_HELLO_NEW) {
		ret->list = visible->pieces;
		ret->count = visible->count;
	} else if (kind == CKT_HELLO_DATA) {
		ret->own[ret->count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_LANES, conn->lanes.number};
	} else if (kind == CKT_HELLO_RESUME && conn->copy) {
		ret->own[ret->count++] = (ckt_capability){(char *)CKT_CAPABILITY_COPY, conn->copy};
		ret->own[ret->count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_ATTACHED, conn->offered_copy};
	}
	/* A restored session may have a new server and worker: a RESUME hello also names the job. */
	snprintf(ret->job, sizeof ret->job, "%s%s", CKT_JOB_CAPABILITY, ckt_settings.job);
	if (*ckt_settings.job && kind != CKT_HELLO_DATA)
		ret->list[ret->count++] = (ckt_capability){.name = ret->job};
	if (kind != CKT_HELLO_DATA)
		ret->list[ret->count++] = (ckt_capability){(char *)CKT_CAPABILITY_AGAIN, 1};
	if (kind != CKT_HELLO_DATA)
		ret->list[ret->count++] = (ckt_capability){(char *)CKT_CAPABILITY_SLEEP,
			conn->keeping ? CKT_SLEEP_KEEP : CKT_SLEEP_CAN};
	if (kind == CKT_HELLO_RESUME)
		ret->count += ckt_replay_capabilities(conn, ret->list + ret->count);
	if (kind == CKT_HELLO_RESUME && ckt_replay_asks_afresh(conn)) {
		memcpy(ret->list + ret->count, visible->pieces,
			visible->count * sizeof *visible->pieces);
		ret->count += visible->count;
	} else if (kind == CKT_HELLO_NEW && ckt_settings.durable)
		ret->list[ret->count++] = (ckt_capability){(char *)CKT_CAPABILITY_DURABLE, 1};
	bool takes_rings = ckt_settings.transport == CKT_TRANSPORT_AUTO ||
		ckt_settings.transport == CKT_TRANSPORT_SHM;
	if (takes_rings && kind != CKT_HELLO_DATA && !conn->keeping && !conn->no_rings &&
		ckt_net_is_local(fd))
		ret->list[ret->count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_RINGS, CKT_RINGS_BYTES_MAX};
}

static int send_hello(struct ckt_conn *conn, struct ckt_transport *t,
	const struct ckt_greeting *greeting, enum ckt_hello_kind kind, int64_t deadline_ms,
	char *ret_message, size_t message_size)
{
	uint8_t args[CKT_HELLO_MAX - CKT_HELLO_HEAD_MAX], record[CKT_HELLO_MAX];
	char program[CKT_NAME_MAX], host[CKT_NAME_MAX];
	struct ckt_token token;
	int result = choose_token(greeting, t->fd, &token, ret_message, message_size);
	if (!result)
		result = choose_secret(conn, greeting, kind);
	if (result)
		return result;
	ckt_program_name(program, sizeof program);
	if (gethostname(host, sizeof host))
		strcpy(host, "?");
	host[sizeof host - 1] = 0;
	struct ckt_hello_args hello = {
		.protocol = CKT_PROTOCOL_VERSION,
		.kind = kind,
		.session = kind == CKT_HELLO_NEW ? (char *)"" : (char *)conn->session,
		.generation = kind == CKT_HELLO_NEW ? 0 : conn->generation,
		.acked = kind == CKT_HELLO_RESUME ? conn->executed : 0,
		.program_name = program,
		.host = host,
		.pid = (u_int)getpid(),
		.uid = (u_int)getuid(),
		.build = (char *)CKT_VERSION,
	};
	memcpy(hello.secret, conn->secret, sizeof hello.secret);
	struct visible visible;
	visible.count = 0;
	result = kind == CKT_HELLO_NEW || ckt_replay_asks_afresh(conn)
		? put_visible(conn->visible, &visible, ret_message, message_size)
		: 0;
	if (result)
		return result;
	struct capabilities capabilities;
	put_capabilities(conn, t->fd, kind, &visible, &capabilities);
	hello.capabilities.capabilities_val = capabilities.list;
	hello.capabilities.capabilities_len = capabilities.count;
	XDR xdr;
	xdrmem_create(&xdr, (char *)args, sizeof args, XDR_ENCODE);
	if (!xdr_ckt_hello_args(&xdr, &hello))
		return -EMSGSIZE;
	struct ckt_credential credential = {0};
	const struct ckt_challenge challenge = {.nonce = (const uint8_t *)greeting->nonce,
		.args = args,
		.args_bytes = xdr_getpos(&xdr)};
	if (conn->key && ckt_session_secret_is_key(conn->secret) &&
		ckt_session_key_prove(conn->key, &challenge, &credential))
		return -ENOMEM;
	uint8_t *end = ckt_hello_put(record, HELLO_XID, greeting, token.size_bytes ? &token : NULL,
		&credential, &challenge);
	explicit_bzero(&token, sizeof token);
	return ckt_record_write(t, record, (size_t)(end - record), deadline_ms,
		kind == CKT_HELLO_DATA ? -1 : memory_for(t->fd));
}

/*
 * Turns the server's refusal into an error: -EAGAIN is worth another attempt, -EREMCHG names
 * another address, and other errors are final.
 */
static int refusal(struct ckt_conn *conn, const struct ckt_hello_res *res, char *ret_moved_to,
	size_t moved_size, char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size, "%s", res->ckt_hello_res_u.refused.message);
	switch (res->status) {
	case CKT_HELLO_MOVED:
		snprintf(ret_moved_to, moved_size, "%s", res->ckt_hello_res_u.refused.moved_to);
		return -EREMCHG;
	case CKT_HELLO_NO_SESSION:
		ckt_replay_absent(conn);
		return -ENOENT;
	case CKT_HELLO_PARKED:
		atomic_store(&conn->parked, true);
		return -EAGAIN;
	case CKT_HELLO_SHUTTING_DOWN:
		return -EAGAIN;
	case CKT_HELLO_NO_DEVICE:
		return -ENODEV;
	case CKT_HELLO_INVALID_DEVICE:
		return -ENXIO;
	default:
		return -EACCES;
	}
}

static int read_answer(struct ckt_conn *conn, struct ckt_transport *t, int64_t deadline_ms,
	struct ckt_hello_ok *ret_ok, int *ret_memory_fd, char *ret_moved_to, size_t moved_size,
	char *ret_message, size_t message_size)
{
	struct ckt_hello_res res = {0};
	int result = ckt_hello_answer_read_from(t, HELLO_XID, deadline_ms, &res, ret_memory_fd);
	if (result)
		return result;
	if (res.status == CKT_HELLO_OK) {
		*ret_ok = res.ckt_hello_res_u.ok;
		return 0;
	}
	result = refusal(conn, &res, ret_moved_to, moved_size, ret_message, message_size);
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
	return result;
}

/* ---- What the connection runs over */

/* Whether CRICKET_TRANSPORT allows this socket. */
static int check_forced(const char *address_text, int fd, char *ret_message, size_t message_size)
{
	bool local = ckt_net_is_local(fd);
	if (ckt_settings.transport == CKT_TRANSPORT_AUTO ||
		local == (ckt_settings.transport != CKT_TRANSPORT_TCP))
		return 0;
	snprintf(ret_message, message_size,
		local ? "CRICKET_TRANSPORT=tcp, but %.300s is a UNIX socket; unset it, or name the "
			"server's TCP address"
		      : "CRICKET_TRANSPORT=%2$s, but %1$.300s is not a UNIX socket of this host; "
			"unset it, or name the server's UNIX socket",
		address_text, ckt_settings.transport == CKT_TRANSPORT_SHM ? "shm" : "unix");
	return -EPROTONOSUPPORT;
}

/*
 * Begins what the server's answer says: what *t is, or rings beside it. -EOPNOTSUPP: the rings are of
 * no use; *t stays the caller's after any error.
 */
static int begin_transport(struct ckt_transport *t, int memory_fd, const struct ckt_hello_ok *ok,
	struct ckt_transport *ret_transport, char *ret_message, size_t message_size)
{
	uint64_t bytes = ckt_conn_told(ok, CKT_CAPABILITY_RINGS);
	if (!bytes) {
		bool kept = ckt_conn_told(ok, CKT_CAPABILITY_SLEEP) == CKT_SLEEP_KEEP;
		if (ckt_settings.transport == CKT_TRANSPORT_SHM && !kept) {
			snprintf(ret_message, message_size,
				"CRICKET_TRANSPORT=shm, but the server gave no shared memory (its "
				"log says why, or it is an older one); unset it");
			return -EPROTONOSUPPORT;
		}
		ckt_transport_move(ret_transport, t);
		return 0;
	}
	/* Something between the two hosts, such as ssh, forwards the bytes alone. */
	int result = memory_fd < 0 || !ckt_net_is_local(t->fd)
		? -EREMOTE
		: ckt_transport_init_shared_memory(
			  ret_transport, t->fd, memory_fd, bytes, false, NULL);
	if (!result) {
		ckt_transport_release(t);
		return 0;
	}
	snprintf(ret_message, message_size, "cannot use the server's shared memory: %s",
		result == -EREMOTE ? "it did not come along" : strerror(-result));
	return ckt_settings.transport == CKT_TRANSPORT_SHM ? -EPROTONOSUPPORT : -EOPNOTSUPP;
}

/* The worker uses the rings by now: the session is taken up again without them. */
static void without_rings(
	struct ckt_conn *conn, const struct ckt_hello_ok *ok, bool got_memory, const char *message)
{
	if (got_memory)
		ckt_log_user("%s; session %s stays on the UNIX socket", message, ok->session);
	else
		ckt_debug("%s; session %s stays on the UNIX socket", message, ok->session);
	conn->no_rings = true;
	snprintf(conn->session, sizeof conn->session, "%s", ok->session);
	conn->generation = ok->generation;
	conn->offered_copy = ckt_conn_copy_of(ok);
}

/*
 * The answer to a new session's hello comes when its worker has started, which takes long if many
 * start at once.  A session that is looked for may be elsewhere: that attempt ends soon.
 */
static int64_t answer_deadline_ms(enum ckt_hello_kind kind, int64_t deadline_ms)
{
	int64_t late_ms = ckt_net_now_ms() + ckt_settings.answer_timeout_ms;
	return kind == CKT_HELLO_NEW && late_ms > deadline_ms ? late_ms : deadline_ms;
}

static int say_hello(struct ckt_conn *conn, struct ckt_transport *t, const char *server,
	enum ckt_hello_kind kind, int64_t deadline_ms, struct ckt_hello_ok *ret_ok,
	int *ret_memory_fd, char *ret_moved_to, size_t moved_size, char *ret_message,
	size_t message_size)
{
	struct ckt_greeting greeting = {0};
	int result =
		ckt_secure_greeting(t, server, deadline_ms, &greeting, ret_message, message_size);
	if (!result) {
		result = send_hello(
			conn, t, &greeting, kind, deadline_ms, ret_message, message_size);
		xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	}
	if (!result) {
		result = read_answer(conn, t, answer_deadline_ms(kind, deadline_ms), ret_ok,
			ret_memory_fd, ret_moved_to, moved_size, ret_message, message_size);
		/* Other errors have no text yet. */
		if (kind == CKT_HELLO_RESUME)
			conn->refused = result && *ret_message;
		if (result == -ETIMEDOUT)
			snprintf(ret_message, message_size,
				"the server took the hello, but did not answer it; its log says "
				"whether the worker starts");
	}
	/* What an earlier server kept. */
	if (!result && kind != CKT_HELLO_DATA)
		ckt_module_hints_forget(&conn->module_hints);
	if (result && !*ret_message)
		snprintf(ret_message, message_size,
			"%s during the hello; check that this is a "
			"cricket-server's port",
			strerror(-result));
	return result;
}

static int open_socket(const char *address_text, enum ckt_hello_kind kind, int timeout_ms,
	int *ret_fd, char *ret_message, size_t message_size)
{
	struct ckt_address address;
	char cause[CKT_MESSAGE_MAX];
	int result = ckt_address_parse(address_text, &address, ret_message, message_size);
	if (result)
		return result;
	result = ckt_net_connect(&address, timeout_ms, ret_fd, cause, sizeof cause);
	if (!result) {
		result = check_forced(address_text, *ret_fd, ret_message, message_size);
		if (result)
			close(*ret_fd);
		return result;
	}
	if (!ckt_settings.address_given && kind == CKT_HELLO_NEW)
		snprintf(ret_message, message_size,
			"%s; set REMOTE_GPU_ADDRESS to a host that runs "
			"cricket-server",
			cause);
	else
		snprintf(ret_message, message_size,
			"%s; check that cricket-server runs there and that "
			"REMOTE_GPU_ADDRESS is right",
			cause);
	return result;
}

int ckt_connect(struct ckt_conn *conn, const char *address_text, enum ckt_hello_kind kind,
	int timeout_ms, struct ckt_transport *ret_transport, struct ckt_hello_ok *ret_ok,
	char *ret_moved_to, size_t moved_size, char *ret_message, size_t message_size)
{
	int64_t deadline_ms = ckt_net_now_ms() + timeout_ms;
	int fd, memory_fd = -1;
	char server[CKT_SECURE_NAME_MAX];
	struct ckt_transport t;
	*ret_message = 0;
	int result = open_socket(address_text, kind, timeout_ms, &fd, ret_message, message_size);
	if (result)
		return result;
	ckt_secure_server_name(address_text, server);
	ckt_transport_init_socket(&t, fd);
	atomic_store(&conn->connecting_fd, fd);
	result = say_hello(conn, &t, server, kind, deadline_ms, ret_ok, &memory_fd, ret_moved_to,
		moved_size, ret_message, message_size);
	if (!result) {
		result = begin_transport(
			&t, memory_fd, ret_ok, ret_transport, ret_message, message_size);
		if (result == -EOPNOTSUPP)
			without_rings(conn, ret_ok, memory_fd >= 0, ret_message);
		if (result)
			xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)ret_ok);
	}
	atomic_store(&conn->connecting_fd, -1);
	if (memory_fd >= 0)
		close(memory_fd);
	if (!result)
		return 0;
	ckt_transport_close(&t);
	if (result != -EOPNOTSUPP)
		return result;
	memset(ret_ok, 0, sizeof *ret_ok);
	return ckt_connect(conn, address_text, CKT_HELLO_RESUME, timeout_ms, ret_transport, ret_ok,
		ret_moved_to, moved_size, ret_message, message_size);
}
