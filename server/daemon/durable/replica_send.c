/* SPDX-License-Identifier: Apache-2.0 */
/* The replicas of this server's sessions at another one; see replica.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/worker.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/durable/replicator.h"
#include "server/daemon/events.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

#define MARK "replicated"

enum { FENCE_TIMEOUT_MS = 10000 };

/* One session's replica. */
struct replica {
	struct replica *next;
	char id[CKT_SESSION_ID_SIZE + 1];
	int64_t until_ms;  /* CLOCK_BOOTTIME: until then it cannot start there; 0: not known */
	bool fresh;        /* nothing of it counts there yet */
	bool lost;         /* it went on there */
	uint64_t executed; /* the last command that it has; 0: not known */
	char cut[2 * CKT_CHAIN_CUT + 1]; /* of that; empty: its session shares with nobody */
	int64_t when;                    /* of its last renewal, seconds since the epoch; 0: none */
	char problem[128];
};

struct ckt_replicator {
	struct ckt_replicator_process *process;
	struct replica *replicas;
};

static int64_t boot_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A lease less its margin. */
static int64_t lease_ms(const struct ckt_server *server)
{
	return (int64_t)server->options.replicate_lease * 800;
}

static struct replica *find(const struct ckt_server *server, const char *id)
{
	struct replica *replica = server->replicator ? server->replicator->replicas : NULL;
	while (replica && strcmp(replica->id, id) != 0)
		replica = replica->next;
	return replica;
}

static struct replica *find_or_make(struct ckt_server *server, const char *id)
{
	struct replica *replica = find(server, id);
	if (replica)
		return replica;
	replica = calloc(1, sizeof *replica);
	if (!replica)
		return NULL;
	snprintf(replica->id, sizeof replica->id, "%.12s", id);
	replica->next = server->replicator->replicas;
	server->replicator->replicas = replica;
	return replica;
}

static void forget(struct ckt_server *server, struct replica *replica)
{
	struct replica **place = &server->replicator->replicas;
	while (*place != replica)
		place = &(*place)->next;
	*place = replica->next;
	free(replica);
}

static struct ckt_session *find_session(struct ckt_server *server, const char *id)
{
	struct ckt_session *session = server->sessions;
	while (session && (!session->chain || strcmp(session->chain->id, id) != 0))
		session = session->next;
	return session;
}

/* Whether a replica may count, by the file, or by what a key vouches for. */
static bool is_marked(int dir_fd, const struct ckt_chain_state *state)
{
	return dir_fd >= 0 &&
		(state->replicated || faccessat(dir_fd, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* On the disk when this returns. */
static int mark(struct ckt_automatic_chain *chain)
{
	int fd = openat(chain->dir_fd, MARK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	if (!ckt_chain_keys() || chain->state.replicated)
		return fsync(chain->dir_fd) ? -errno : 0;
	/* Another state is being written; with that one it is sent again. */
	if (chain->committing || chain->cut)
		return -EAGAIN;
	chain->state.replicated = true;
	int result = ckt_chain_write(chain->dir_fd, &chain->state);
	chain->state.replicated = !result;
	return result;
}

/* Nothing counts there.  The state says so with the next image at the latest. */
static void unmark(struct ckt_automatic_chain *chain)
{
	unlinkat(chain->dir_fd, MARK, 0);
	if (!chain->state.replicated)
		return;
	chain->state.replicated = false;
	if (!chain->committing)
		ckt_chain_write(chain->dir_fd, &chain->state);
}

/* ---- The worker's deadline */

enum fence_kind {
	FENCE_LATER, /* one that it has moves */
	FENCE_FIRST, /* of its first replica, which may count only then */
	FENCE_NEW,   /* a worker without any, whose replica counts */
};

/* What waits for a deadline to be set; its session may end meanwhile. */
struct fence {
	struct ckt_server *server;
	char id[CKT_SESSION_ID_SIZE + 1];
	enum fence_kind kind;
};

static void fenced(struct ckt_session *session, void *context, int error, void *answer)
{
	struct fence *fence = context;
	const struct ckt_worker_result *res = answer;
	int result = error ? error : res->status;
	struct ckt_replicator *replicator = fence->server->replicator;
	if (result)
		ckt_debug("session %s: its worker has no deadline: %s", session->id,
			ckt_daemon_request_problem(result));
	if (result && fence->kind == FENCE_NEW)
		ckt_session_give_up(session, "it takes no deadline, and its replica may start");
	if (fence->kind == FENCE_FIRST && replicator)
		ckt_replicator_tell(replicator->process, result ? "stop" : "go", fence->id);
	free(fence);
}

/* until_ms 0: none. */
static int set_fence(struct ckt_session *session, int64_t until_ms, enum fence_kind kind)
{
	struct ckt_worker_fence_args args = {.until_ms = (u_quad_t)until_ms};
	struct fence *fence = calloc(1, sizeof *fence);
	if (!fence)
		return -ENOMEM;
	fence->server = session->server;
	fence->kind = kind;
	snprintf(fence->id, sizeof fence->id, "%s", session->chain->id);
	int result = ckt_session_call(session, CKT_WORKER_FENCE,
		(xdrproc_t)xdr_ckt_worker_fence_args, &args, -1, (xdrproc_t)xdr_ckt_worker_result,
		sizeof(struct ckt_worker_result), FENCE_TIMEOUT_MS, fenced, fence);
	if (result)
		free(fence);
	return result;
}

/* ---- What the process says */

static void told(struct ckt_session *session, void *context, int error, void *answer)
{
	(void)context, (void)answer;
	if (error)
		ckt_debug("session %s: its worker does not know of its replica: %s", session->id,
			strerror(-error));
}

/* The client may forget older commands. */
static void tell_durable(struct ckt_session *session, uint64_t executed)
{
	struct ckt_worker_durable_args args = {.executed = executed};
	if (session && session->phase == CKT_SESSION_LIVE)
		ckt_session_call(session, CKT_WORKER_DURABLE,
			(xdrproc_t)xdr_ckt_worker_durable_args, &args, -1,
			(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			FENCE_TIMEOUT_MS, told, NULL);
}

/* What counts here counts: its client may forget what its images have, and so may those of its group. */
static void tell_here(struct ckt_session *session)
{
	const struct ckt_chain_state *state = &session->chain->state;
	if (!state->member_count)
		tell_durable(session, state->executed);
	for (unsigned i = 0; i < state->member_count; i++) {
		struct ckt_session *other = find_session(session->server, state->members[i]);
		if (other && ckt_chain_same_cut(&other->chain->state, state))
			tell_durable(other, other->chain->state.executed);
	}
}

/* What its session's images here say; NULL: there is neither the session nor one that may return. */
static const struct ckt_chain_state *state_of(struct ckt_server *server, const char *id)
{
	struct ckt_session *session = find_session(server, id);
	const struct ckt_automatic_chain *chain = session ? session->chain : ckt_automatic_left(id);
	return chain ? &chain->state : NULL;
}

/* Whether what it has counts there: of a group, what all have of one cut. */
static bool counts_there(
	struct ckt_server *server, const struct ckt_chain_state *state, const char *cut)
{
	char own[2 * CKT_CHAIN_CUT + 1] = "";
	for (unsigned i = 0; i < CKT_CHAIN_CUT; i++)
		snprintf(own + 2 * i, 3, "%02x", state->cut[i]);
	/* There is a newer one here, which will be sent. */
	if (!state->member_count || strcmp(own, cut) != 0)
		return false;
	for (unsigned i = 0; i < state->member_count; i++) {
		const struct replica *other = find(server, state->members[i]);
		if (!other || strcmp(other->cut, cut) != 0)
			return false;
	}
	return true;
}

/* The clients whose commands it has, and those of its group, may forget them if they count there. */
static void tell_kept(struct ckt_server *server, struct replica *replica)
{
	const struct ckt_chain_state *state = state_of(server, replica->id);
	if (!*replica->cut)
		tell_durable(find_session(server, replica->id), replica->executed);
	else if (state && counts_there(server, state, replica->cut))
		for (unsigned i = 0; i < state->member_count; i++)
			tell_durable(find_session(server, state->members[i]),
				find(server, state->members[i])->executed);
}

/* Its images are there; before they count its worker must have a deadline. */
static void images_are_there(struct ckt_server *server, struct replica *replica)
{
	struct ckt_session *session = find_session(server, replica->id);
	struct ckt_automatic_chain *chain = session ? session->chain : NULL;
	int64_t until_ms = boot_ms() + lease_ms(server);
	int result = !chain || chain->dir_fd < 0 ? -ESRCH : 0;
	bool marked = !result && is_marked(chain->dir_fd, &chain->state);
	if (!result)
		result = mark(chain);
	replica->fresh = !marked;
	/* With an older one counting there, it has a deadline already. */
	if (!result && !marked)
		result = session->phase == CKT_SESSION_LIVE
			? set_fence(session, until_ms, FENCE_FIRST)
			: -EAGAIN;
	else if (!result)
		ckt_replicator_tell(server->replicator->process, "go", replica->id);
	if (!result && !marked) {
		replica->until_ms = until_ms;
		replica->when = time(NULL);
	}
	if (!result)
		return;
	ckt_replicator_tell(server->replicator->process, "stop", replica->id);
	if (chain && !marked)
		tell_here(session);
}

static void moved_on(struct ckt_server *server, struct replica *replica, int64_t until_ms)
{
	struct ckt_session *session = find_session(server, replica->id);
	if (until_ms <= replica->until_ms)
		return;
	/* Of one that was given up meanwhile. */
	if (session && !is_marked(session->chain->dir_fd, &session->chain->state))
		return;
	replica->until_ms = until_ms;
	replica->when = time(NULL);
	if (session && session->phase == CKT_SESSION_LIVE)
		set_fence(session, until_ms, FENCE_LATER);
}

/* The other server has started it: here it must not go on, nor start again. */
static void lose(struct ckt_server *server, struct replica *replica)
{
	struct ckt_session *session = find_session(server, replica->id);
	replica->lost = true;
	replica->until_ms = 0;
	ckt_warning("session %s: went on from its replica at %s", replica->id,
		server->options.replicate);
	if (session)
		ckt_session_kill(session, "it went on from its replica at another server");
}

void ckt_replica_leave(struct ckt_server *server, const char *session)
{
	struct replica *replica = server->replicator ? find_or_make(server, session) : NULL;
	if (!replica || replica->lost)
		return;
	ckt_replicator_tell(server->replicator->process, "leave", session);
	lose(server, replica);
}

/* Those with which it shares go on with it there, or not at all. */
static void lose_group(struct ckt_server *server, struct replica *replica)
{
	const struct ckt_chain_state *state = state_of(server, replica->id);
	const struct ckt_chain_state copy = state ? *state : (struct ckt_chain_state){0};
	lose(server, replica);
	for (unsigned i = 0; i < copy.member_count; i++)
		ckt_replica_leave(server, copy.members[i]);
}

static void fail(
	struct ckt_server *server, struct replica *replica, const char *reason, bool unreachable)
{
	struct ckt_session *session = find_session(server, replica->id);
	if (!*replica->problem) {
		ckt_warning("session %s: no replica of its image: %s", replica->id, reason);
		if (session)
			ckt_daemon_event(session, CKT_EVENT_UNSAVED, "replica at %s: %s",
				server->options.replicate, reason);
	}
	snprintf(replica->problem, sizeof replica->problem, "replica: %.110s", reason);
	if (!session || session->chain->dir_fd < 0)
		return;
	bool counts = is_marked(session->chain->dir_fd, &session->chain->state);
	/* An answer: nothing counts there, so nothing can start. */
	if (replica->fresh && !unreachable) {
		counts = false;
		unmark(session->chain);
		replica->fresh = false;
		replica->until_ms = 0;
		set_fence(session, 0, FENCE_LATER);
	}
	/*
	 * What the replica does not have may be needed there, if this server is cut off; but not
	 * for as long as the other one has no room for it.
	 */
	if (!unreachable || !counts)
		tell_here(session);
}

static void line(struct ckt_server *server, char *words[4])
{
	struct replica *replica = find(server, words[1]);
	if (!replica)
		return;
	if (strcmp(words[0], "ready") == 0) {
		images_are_there(server, replica);
	} else if (strcmp(words[0], "kept") == 0) {
		replica->fresh = false;
		replica->problem[0] = 0;
		char *cut;
		replica->executed = strtoull(words[3], &cut, 10);
		snprintf(replica->cut, sizeof replica->cut, "%s", cut + strspn(cut, " "));
		moved_on(server, replica, strtoll(words[2], NULL, 10));
		tell_kept(server, replica);
	} else if (strcmp(words[0], "lease") == 0) {
		moved_on(server, replica, strtoll(words[2], NULL, 10));
	} else if (strcmp(words[0], "lost") == 0) {
		lose_group(server, replica);
	} else {
		char reason[CKT_REPLICATOR_LINE_MAX];
		snprintf(reason, sizeof reason, "%s %s", words[2], words[3]);
		fail(server, replica, reason, strcmp(words[0], "unreachable") == 0);
	}
}

/* Another process, which knows nothing. */
static void again(struct ckt_server *server)
{
	for (struct replica *r = server->replicator->replicas; r; r = r->next)
		if (!r->lost)
			ckt_replicator_tell(server->replicator->process, "send", r->id);
}

/* ---- Of the rest of the server */

int ckt_replica_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	ckt_replica_keep_init();
	if (!server->options.replicate)
		return 0;
	if (!server->automatic) {
		snprintf(ret_message, message_size,
			"--replicate: there are no automatic images to send; give --auto-checkpoint, too");
		return -EINVAL;
	}
	server->replicator = calloc(1, sizeof *server->replicator);
	if (!server->replicator)
		return -ENOMEM;
	return ckt_replicator_start(
		server, line, again, &server->replicator->process, ret_message, message_size);
}

void ckt_replica_fini(struct ckt_server *server)
{
	ckt_replica_keep_fini();
	if (!server->replicator)
		return;
	ckt_replicator_stop(server->replicator->process);
	while (server->replicator->replicas)
		forget(server, server->replicator->replicas);
	free(server->replicator);
	server->replicator = NULL;
}

bool ckt_replica_send(struct ckt_automatic_chain *chain)
{
	struct ckt_server *server = chain->server;
	struct replica *replica = server->replicator ? find_or_make(server, chain->id) : NULL;
	if (replica)
		ckt_replicator_tell(server->replicator->process, "send", chain->id);
	return replica != NULL;
}

void ckt_replica_drop(struct ckt_server *server, const char *session)
{
	struct replica *replica = find(server, session);
	if (!replica)
		return;
	if (!replica->lost)
		ckt_replicator_tell(server->replicator->process, "drop", session);
	forget(server, replica);
}

int ckt_replica_may_start(struct ckt_server *server, int dir_fd,
	const struct ckt_chain_state *state, char ret_message[CKT_MESSAGE_MAX])
{
	const char *session = state->session;
	unsigned left_s;
	if (ckt_replica_is_leased(dir_fd, session, state->replica_ms, &left_s)) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s is a replica, and its server may still run it: it can start "
			"here in %u s, if that server asks no more",
			session, left_s);
		return -EBUSY;
	}
	if (!is_marked(dir_fd, state))
		return 0;
	struct replica *replica = server->replicator ? find_or_make(server, session) : NULL;
	if (replica && replica->lost)
		return -ENOENT;
	if (replica && replica->until_ms > boot_ms())
		return 0;
	if (replica)
		ckt_replicator_tell(server->replicator->process, "send", session);
	snprintf(ret_message, CKT_MESSAGE_MAX,
		"session %s may have gone on from its replica: it starts here once %.100s says "
		"that it has not%s",
		session, replica ? server->options.replicate : "the server that has it",
		replica ? "" : "; start this server with --replicate");
	return -EBUSY;
}

void ckt_replica_begin(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	if (!server->replicator || !session->chain ||
		!is_marked(session->chain->dir_fd, &session->chain->state))
		return;
	struct replica *replica = find_or_make(server, session->chain->id);
	if (!replica)
		return;
	/* A worker that was found has one; whoever has none gets one that is soon over. */
	if (replica->until_ms && set_fence(session, replica->until_ms, FENCE_NEW))
		ckt_session_give_up(session, "it takes no deadline, and its replica may start");
	ckt_replicator_tell(server->replicator->process, "send", session->chain->id);
}

bool ckt_replica_facts(
	const struct ckt_server *server, const char *session, struct ckt_replica_facts *ret_facts)
{
	const struct replica *replica = find(server, session);
	if (!replica)
		return false;
	int64_t left_ms = replica->until_ms - boot_ms();
	*ret_facts = (struct ckt_replica_facts){.executed = replica->executed,
		.when = replica->when,
		.lease_ms = left_ms > 0 ? (unsigned)left_ms : 0,
		.problem = replica->problem};
	return true;
}

const char *ckt_replica_problem(const struct ckt_server *server, const char *session)
{
	const struct replica *replica = find(server, session);
	return replica ? replica->problem : "";
}
