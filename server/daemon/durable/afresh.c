/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that begin again from nothing; see afresh.h. */
#include "server/daemon/durable/afresh.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/session_key.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/peer/drain.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_marks.h"

enum {
	CALL_TIMEOUT_MS = 10000,
	/* A client asks within milliseconds, and after a refusal never again. */
	ENDED_MAX = 1024,
};

/* The latest that ended on purpose. */
static char ended[ENDED_MAX][CKT_SESSION_ID_SIZE + 1];
static unsigned ended_next;

bool ckt_afresh_is_asked(const struct ckt_hello_args *hello)
{
	return hello->kind == CKT_HELLO_RESUME &&
		ckt_automatic_told(hello, CKT_CAPABILITY_AFRESH) &&
		ckt_automatic_told(hello, CKT_CAPABILITY_DURABLE) == 1 &&
		ckt_automatic_told(hello, CKT_CAPABILITY_COPY);
}

static bool has_ended(const char *id)
{
	for (unsigned i = 0; i < ENDED_MAX; i++)
		if (strcmp(ended[i], id) == 0)
			return true;
	return false;
}

void ckt_afresh_note_end(const struct ckt_session *session, bool crashed)
{
	if (!ckt_session_may_return(session, crashed) && !session->warm && !has_ended(session->id))
		snprintf(ended[ended_next++ % ENDED_MAX], sizeof *ended, "%s", session->id);
}

/* Whether a worker may live that this server could not reach when it started. */
static bool has_socket(const struct ckt_server *server, const char *id)
{
	char path[CKT_PATH_MAX + CKT_SESSION_ID_SIZE + 8];
	snprintf(path, sizeof path, "%s/%s.sock", server->socket_dir, id);
	return access(path, F_OK) == 0;
}

/*
 * Images that are being written, or none that count: whoever holds the lock may run the session, at
 * this server or at one that shares the directory.
 */
static int check_lock(const struct ckt_server *server, const char *id)
{
	int fd = server->automatic ? ckt_chain_open(server->automatic->dir_fd, id, false) : -1;
	if (fd < 0)
		return 0;
	int lock = ckt_chain_lock(fd, false);
	close(fd);
	if (lock < 0)
		return lock;
	close(lock);
	return 0;
}

/* Whether there is room for it, as for a new session; none of it waits. */
static int check_room(struct ckt_peer *peer, char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_decision decision;
	if (ckt_drain_refuses(peer->server, ret_message))
		return -EAGAIN;
	ckt_ask_session(peer, false, -1, &decision);
	if (decision.answer)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s", decision.reason);
	return decision.answer ? -EAGAIN : 0;
}

static int check(struct ckt_peer *peer, char ret_message[CKT_MESSAGE_MAX])
{
	const struct ckt_hello_args *hello = &peer->hello;
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	if (!ckt_afresh_is_asked(hello) || !ckt_chain_id_good(hello->session) ||
		hello->generation >= UINT32_MAX ||
		!ckt_session_secret_is_key((const uint8_t *)hello->secret))
		return -ENOENT;
	/* It is somewhere else, waits on purpose, or was ended. */
	if (ckt_session_mark_exists(peer->server, hello->session) || has_ended(hello->session))
		return -ENOENT;
	ckt_auth_hash(hello->secret, sizeof hello->secret, hash);
	if (!ckt_server_key_fits(hello->session, hash)) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"the client's key does not match the session's id");
		return -EACCES;
	}
	if (has_socket(peer->server, hello->session) || check_lock(peer->server, hello->session)) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s may still have a worker: it cannot start again before that "
			"has ended",
			hello->session);
		return -EBUSY;
	}
	return check_room(peer, ret_message);
}

int ckt_afresh_resume(
	struct ckt_peer *peer, struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX])
{
	int result = check(peer, ret_message);
	if (result)
		return result;
	struct ckt_session_spec spec = {.uid = ckt_peer_owner(peer),
		.identity = ckt_identity_of_peer(peer),
		.hello = &peer->hello,
		.afresh = true,
		.container = peer->container,
		.image_fd = -1,
		.gpu = -1};
	ckt_info("session %s: it has no image here, and begins again from nothing",
		peer->hello.session);
	result = ckt_session_create(peer->server, &spec, ret_session, ret_message, CKT_MESSAGE_MAX);
	ckt_counters.returns_from_nothing += !result;
	return result;
}

static void answered(struct ckt_session *session, void *context, int error, void *answer)
{
	const struct ckt_worker_result *res = answer;
	(void)context;
	/* A worker that is dead is not ended on purpose: its session may begin once more. */
	if (error == -ECONNRESET)
		return;
	if (error || res->status)
		ckt_session_kill(session, "it cannot become a session that ran before");
}

int ckt_afresh_tell(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	if (!spec->afresh)
		return 0;
	struct ckt_worker_afresh_args args = {.generation = session->generation,
		.last_copy = ckt_automatic_told(spec->hello, CKT_CAPABILITY_COPY)};
	memcpy(args.secret_hash, session->secret_hash, sizeof args.secret_hash);
	return ckt_session_call(session, CKT_WORKER_AFRESH, (xdrproc_t)xdr_ckt_worker_afresh_args,
		&args, -1, (xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
		CALL_TIMEOUT_MS, answered, NULL);
}
