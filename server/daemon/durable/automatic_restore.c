/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that come back from their automatic images; see automatic.h.
 *
 * Who asks must have the session's secret, and be allowed to be its client, before anything is
 * started.  Nothing is started while anybody holds the chain's lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/broker.h"
#include "rpc/session_key.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/group_cut.h"
#include "server/daemon/durable/group_return.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/durable/sealed_chain.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/restore_claim.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_marks.h"

enum {
	CALL_TIMEOUT_MS = 10000,
};

/* The one that another connection of this client has begun to restore. */
static struct ckt_session *find_restoring(struct ckt_server *server, const char *id)
{
	for (struct ckt_session *session = server->sessions; session; session = session->next)
		if (session->chain && session->phase == CKT_SESSION_STARTING &&
			strcmp(session->chain->id, id) == 0)
			return session;
	return NULL;
}

int ckt_automatic_check_peer(const struct ckt_peer *peer, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX])
{
	const struct ckt_policy_server server = ckt_policy_server_of(peer->server);
	const struct ckt_client_facts facts = {
		.control = ckt_peer_control_facts(peer, state->owner),
		.session = peer->hello.session,
		.local = peer->who.kind == CKT_PEER_UNIX};
	struct ckt_decision decision;
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	ckt_auth_hash(peer->hello.secret, sizeof peer->hello.secret, hash);
	if (!ckt_auth_equal(hash, state->secret_hash, sizeof hash)) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"the client's secret does not match the session's");
		return -EACCES;
	}
	peer->server->policy->client(&server, &facts, &decision);
	if (decision.answer)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s", decision.reason);
	return decision.answer ? -EPERM : 0;
}

/*
 * What woke and ran on has an image that is too old for its client, unless images are taken of it, or
 * the client can send again what the image does not have.
 */
static bool is_outrun(const struct ckt_peer *peer, const struct ckt_chain_state *state)
{
	return !state->asked && !peer->server->automatic->seconds &&
		peer->hello.acked > state->executed && !ckt_automatic_is_asked(&peer->hello);
}

/* Whether the session may start again at all. */
static int check_state(const struct ckt_peer *peer, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_decision decision;
	if (!state->count || is_outrun(peer, state))
		return -ENOENT;
	if (state->shared) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s does not come back alone: " CKT_AUTOMATIC_SHARES
			"; save such sessions by cricketctl checkpoint --job",
			state->session);
		return -EBADMSG;
	}
	if (state->restores >= CKT_AUTOMATIC_RESTORES_MAX) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s died %u times after command %llu, and is not started again: "
			"the program makes its worker crash, or its image does",
			state->session, state->restores + 1, (unsigned long long)state->executed);
		return -ELOOP;
	}
	ckt_ask_session(peer, true, -1, &decision);
	if (decision.answer)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s", decision.reason);
	return decision.answer ? -EAGAIN : 0;
}

/*
 * Nobody put older images in the place of the newest: not older than this server's last, nor than the
 * program.  0, or -EBADMSG with the reason.
 */
static int check_images(const struct ckt_peer *peer, int dir_fd,
	const struct ckt_chain_state *state, const struct ckt_chain_state *left,
	char ret_message[CKT_MESSAGE_MAX])
{
	if (left && ckt_chain_keys() &&
		(state->generation < left->generation || state->executed < left->executed)) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"the automatic images of session %s are older than those that this server "
			"has seen: they end with command %llu, and those with command %llu: put "
			"back the newest copy",
			state->session, (unsigned long long)state->executed,
			(unsigned long long)left->executed);
		return -EBADMSG;
	}
	int result = ckt_chain_check_age(&peer->hello, state, ret_message);
	return result ? result : ckt_chain_check_newest(dir_fd, state, ret_message);
}

/*
 * A durable program goes on after a restore although there is no newer image yet.  Since its client
 * has seen more commands executed than at the restore before, it does not die at one place.
 */
static void note_progress(struct ckt_chain_state *state, uint64_t acked)
{
	if (acked <= state->acked)
		return;
	state->restores = 0;
	state->acked = acked;
}

/* Opens the chain for good.  From here on the state counts one restore more. */
static int open_chain(struct ckt_automatic_chain *chain, const struct ckt_peer *peer,
	const struct ckt_chain_state *left, char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_chain_state *state = &chain->state;
	chain->lock_fd = ckt_chain_lock(chain->dir_fd, false);
	if (chain->lock_fd < 0) {
		int error = chain->lock_fd;
		snprintf(ret_message, CKT_MESSAGE_MAX,
			error == -EBUSY ? "session %s still has a worker, here or at a server "
					  "that shares %.200s: it cannot start again before "
					  "that has ended"
					: "cannot lock the images of session %s in %.200s",
			chain->id, chain->server->automatic->dir);
		return error;
	}
	/* Another server may have had it since. */
	int result = ckt_chain_read(chain->dir_fd, chain->id, state);
	if (result)
		ckt_chain_refusal(result, chain->id, ret_message);
	if (!result)
		result = ckt_automatic_check_peer(peer, state, ret_message);
	if (!result)
		result = check_images(peer, chain->dir_fd, state, left, ret_message);
	if (!result)
		note_progress(state, peer->hello.acked);
	if (!result && state->member_count)
		result = ckt_group_return_take(chain);
	if (!result)
		result = check_state(peer, state, ret_message);
	if (!result)
		result = ckt_replica_take(chain->dir_fd, chain->id);
	if (result)
		return result;
	chain->last_copy = state->copy;
	state->replica_ms = 0;
	state->restores++;
	state->generation++;
	if (getrandom(&state->copy, sizeof state->copy, 0) != sizeof state->copy || !state->copy)
		state->copy = 1;
	result = ckt_chain_write(chain->dir_fd, state);
	if (result)
		snprintf(ret_message, CKT_MESSAGE_MAX, "cannot write in %.200s: %s",
			chain->server->automatic->dir, strerror(-result));
	return result;
}

/* One broker for all directories, newest first, as a chain goes to a worker. */
static int open_images(struct ckt_automatic_chain *chain, int *ret_fd)
{
	int directories[CKT_CHAIN_IMAGES_MAX], result = 0;
	unsigned count = 0;
	for (; count < chain->state.count && !result; count++) {
		directories[count] = ckt_chain_image_open(chain->dir_fd,
			chain->state.images[chain->state.count - 1 - count].number, false);
		if (directories[count] < 0) {
			result = directories[count];
			break;
		}
	}
	if (!result)
		result = ckt_chain_keys() ? ckt_sealed_chain_serve(directories, count,
						    ckt_chain_keys(), &chain->broker, ret_fd)
					  : ckt_broker_start(directories, count, CKT_BROKER_READ,
						    &chain->broker, ret_fd);
	while (count)
		close(directories[--count]);
	return result;
}

static int start(struct ckt_peer *peer, struct ckt_automatic_chain *chain,
	struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX])
{
	const struct ckt_chain_state *state = &chain->state;
	int fds[CKT_CHAIN_IMAGES_MAX], fd = -1;
	int result = open_images(chain, &fd);
	if (result) {
		snprintf(ret_message, CKT_MESSAGE_MAX, "cannot open the images of session %s: %s",
			chain->id, strerror(-result));
		return result;
	}
	for (unsigned i = 0; i < state->count; i++)
		fds[i] = fd;
	bool has_gpu = state->gpu >= 0 && (unsigned)state->gpu < peer->server->driver.gpu_count;
	struct ckt_session_spec spec = {.uid = state->owner,
		.claimant = ckt_claimant_of(peer),
		.identity = ckt_identity_of_peer(peer),
		.container = peer->container,
		.image_fd = fd,
		.image_fds = fds,
		.image_count = state->count,
		.gpu = has_gpu && !peer->server->gpu_count ? state->gpu : -1,
		.chain = chain};
	if (ckt_chain_keys() && state->has_manifest) {
		spec.bond.set = spec.bond.keyed = true;
		memcpy(spec.bond.hash, state->manifest, sizeof spec.bond.hash);
		snprintf(spec.bond.session, sizeof spec.bond.session, "%s", state->session);
	}
	/* The session's owner is known, whoever of those that may be its client comes for it. */
	spec.claimant.owner = state->owner;
	spec.claimant.for_others = false;
	ckt_info("session %s: restoring it from its automatic images, up to command %llu",
		chain->id, (unsigned long long)state->executed);
	result = ckt_session_create(peer->server, &spec, ret_session, ret_message, CKT_MESSAGE_MAX);
	ckt_counters.returns_from_image += !result;
	close(fd);
	/* On failure the session had the chain, and let it go. */
	return result;
}

/* Whether the peer may have what is in that directory, now.  0, or -errno with the reason. */
static int read_chain(const struct ckt_peer *peer, int fd, const char *id,
	struct ckt_chain_state *ret_state, char ret_message[CKT_MESSAGE_MAX])
{
	int result = ckt_chain_read(fd, id, ret_state);
	if (!result) {
		result = ckt_automatic_check_peer(peer, ret_state, ret_message);
	} else if (result != -ENOENT && ckt_chain_keys()) {
		ckt_chain_refusal(result, id, ret_message);
		ckt_warning("%s", ret_message);
		result = -EBADMSG;
	} else {
		result = -ENOENT;
	}
	if (!result)
		result = ckt_replica_may_start(peer->server, fd, ret_state, ret_message);
	if (!result && ckt_sleep_must_wait(id)) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"there was no room for session %s a moment ago: ask again", id);
		result = -EAGAIN;
	}
	return result;
}

int ckt_automatic_resume(
	struct ckt_peer *peer, struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_automatic *automatic = peer->server->automatic;
	const char *id = peer->hello.session;
	struct ckt_chain_state state;
	if (!automatic || !ckt_chain_id_good(id) || ckt_session_mark_exists(peer->server, id))
		return -ENOENT;
	*ret_session = find_restoring(peer->server, id);
	if (*ret_session)
		return ckt_automatic_check_peer(peer, &(*ret_session)->chain->state, ret_message);
	int fd = ckt_chain_open(automatic->dir_fd, id, false);
	if (fd < 0)
		return -ENOENT;
	if (ckt_group_cut_has(id)) {
		close(fd);
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"images of the group of session %s are being written: ask again", id);
		return -EAGAIN;
	}
	ckt_group_settle(peer->server, fd, id);
	int result = read_chain(peer, fd, id, &state, ret_message);
	if (!result && state.member_count)
		result = ckt_group_return(peer, &state, ret_message);
	struct ckt_automatic_chain *chain =
		result ? NULL : ckt_automatic_chain_new(peer->server, id);
	if (!chain) {
		close(fd);
		return result ? result : -ENOMEM;
	}
	chain->dir_fd = fd;
	chain->state = state;
	chain->sleeper = ckt_sleep_take(id);
	if (chain->sleeper)
		chain->sleeper->chain = chain;
	const struct ckt_automatic_chain *left = ckt_automatic_left(id);
	if (left)
		state = left->state;
	bool was_here = ckt_automatic_forget(id);
	result = open_chain(chain, peer, was_here ? &state : NULL, ret_message);
	if (result == -EBADMSG)
		ckt_warning("%s", ret_message);
	if (result) {
		/* What this server wrote is no older than what lies there now. */
		if (was_here && ckt_chain_keys())
			chain->state = state;
		/* Still to be removed if it ended here and nobody comes for it. */
		if (was_here)
			ckt_automatic_leave(chain);
		else
			ckt_automatic_chain_free(chain);
		return result;
	}
	ckt_automatic_count(chain, chain->state.owner);
	return start(peer, chain, ret_session, ret_message);
}

static void told(struct ckt_session *session, void *context, int error, void *answer)
{
	const struct ckt_worker_automatic_res *res = answer;
	(void)context;
	if (error || res->status)
		ckt_session_give_up(session, "it cannot become a session that ran before");
}

int ckt_automatic_tell(struct ckt_session *session)
{
	struct ckt_automatic_chain *chain = session->chain;
	if (!chain)
		return 0;
	/* Before its worker, or another's, asks for what they shared. */
	chain->shares |= chain->state.member_count != 0;
	ckt_automatic_join_group(session, chain);
	struct ckt_worker_automatic_args args = {.generation = chain->state.generation,
		.copy = chain->state.copy,
		.last_copy = chain->last_copy};
	int lock = fcntl(chain->lock_fd, F_DUPFD_CLOEXEC, 3);
	return lock < 0
		? -errno
		: ckt_session_call(session, CKT_WORKER_AUTOMATIC,
			  (xdrproc_t)xdr_ckt_worker_automatic_args, &args, lock,
			  (xdrproc_t)xdr_ckt_worker_automatic_res,
			  sizeof(struct ckt_worker_automatic_res), CALL_TIMEOUT_MS, told, NULL);
}

bool ckt_automatic_fits(const struct ckt_session *session,
	const struct ckt_worker_origin_res *origin, char ret_message[CKT_MESSAGE_MAX])
{
	const struct ckt_automatic_chain *chain = session->chain;
	if (!chain ||
		(strcmp(origin->session, chain->id) == 0 &&
			memcmp(origin->secret_hash, chain->state.secret_hash,
				sizeof chain->state.secret_hash) == 0))
		return true;
	snprintf(ret_message, CKT_MESSAGE_MAX,
		"the automatic images of session %s are another session's", chain->id);
	return false;
}
