/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that share come back together; see group_return.h. */
#include "server/daemon/durable/group_return.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "rpc/net.h"
#include "rpc/stamps.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/sealed_page.h"
#include "server/daemon/session/session.h"

enum {
	CALL_MS = 5000,
	/* A client asks at least every 4 s: its longest pause, and a connection that fails. */
	CAME_MS = 10000,
	/* What is held may be in the middle of a command. */
	LOOK_MS = 5,
	LOOKS_MAX = 200,
};

struct member {
	char id[CKT_SESSION_ID_SIZE + 1];
	uint64_t executed; /* in the cut */
	unsigned restores; /* from it without progress, and up to where its client had come: */
	uint64_t before;
	int64_t came_ms; /* when its client asked last; 0: never */
	/* What it said: up to where it has come, since where it can send all again, in whose order. */
	uint64_t acked, from, clock;
	/* Of one that lives: how far it is, and whether its client can replay all in its group's order. */
	uint64_t here;
	bool held, drained;
	ckt_stamped stamped;
};

struct group {
	struct group *next;
	struct ckt_server *server;
	struct ckt_timer timer; /* nobody asked for so long: it is forgotten */
	uint8_t cut[CKT_CHAIN_CUT];
	unsigned asked;        /* answers of workers that are held */
	struct ckt_timer look; /* at those of which a command is still executed */
	unsigned looks;
	bool goes;                 /* all had come: each may start */
	bool beyond;               /* somebody has more than the cut: all replay, in one order */
	bool advanced;             /* somebody has more than at the last return from the cut */
	int page;                  /* of that replay (rpc/stamps.h); -1: there is none */
	char why[CKT_MESSAGE_MAX]; /* why none comes back; empty: nothing known */
	unsigned count;
	struct member members[CKT_CHAIN_MEMBERS_MAX];
};

static struct group *groups;

#define NO_PART                                                                           \
	"session %s takes no part in a replay of its group: start all its programs with " \
	"CRICKET_DURABLE=2; nobody of the group comes back"

static void look_again(struct ckt_timer *timer);

/* ---- Those that are coming back */

static void group_free(struct group *group)
{
	struct group **place = &groups;
	while (*place != group)
		place = &(*place)->next;
	*place = group->next;
	ckt_timer_clear(&group->timer);
	ckt_timer_clear(&group->look);
	if (group->page >= 0)
		close(group->page);
	free(group);
}

static void keep(struct group *group)
{
	ckt_timer_set(&group->server->loop, &group->timer,
		(int64_t)group->server->options.claim_timeout * 1000);
}

static void expire(struct ckt_timer *timer)
{
	struct group *group = CKT_CONTAINER(timer, struct group, timer);
	if (group->asked)
		keep(group);
	else
		group_free(group);
}

static struct group *group_of(struct ckt_server *server, const struct ckt_chain_state *state)
{
	struct group *group = groups;
	while (group && memcmp(group->cut, state->cut, sizeof group->cut) != 0)
		group = group->next;
	if (!group && (group = calloc(1, sizeof *group))) {
		group->server = server;
		group->page = -1;
		group->timer.fire = expire;
		group->look.fire = look_again;
		memcpy(group->cut, state->cut, sizeof group->cut);
		group->count = state->member_count;
		for (unsigned i = 0; i < group->count; i++)
			strcpy(group->members[i].id, state->members[i]);
		group->next = groups;
		groups = group;
	}
	if (group)
		keep(group);
	return group;
}

static struct member *find(struct group *group, const char *id)
{
	for (unsigned i = 0; i < group->count; i++)
		if (strcmp(group->members[i].id, id) == 0)
			return &group->members[i];
	return NULL;
}

void ckt_group_return_over(const char *session)
{
	for (struct group *group = groups, *next; group; group = next) {
		next = group->next;
		if (group->goes && !group->asked && find(group, session))
			group_free(group);
	}
}

void ckt_group_return_fini(void)
{
	while (groups)
		group_free(groups);
}

/* ---- What is on the disk */

/* A member's directory, the caller's, and its state; or -errno. */
static int open_member(struct ckt_server *server, const char *id, struct ckt_chain_state *ret_state)
{
	int fd = ckt_chain_open(server->automatic->dir_fd, id, false);
	int result = fd < 0 ? fd : ckt_chain_read(fd, id, ret_state);
	if (result && fd >= 0)
		close(fd);
	return result ? result : fd;
}

/* Whether that member's images are of the cut, too.  0, or -EBADMSG with the reason. */
static int read_member(struct ckt_server *server, const struct ckt_chain_state *state,
	struct member *one, char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_chain_state other;
	int fd = open_member(server, one->id, &other), result = fd < 0 ? fd : 0;
	const char *why = NULL;
	if (fd >= 0)
		close(fd);
	if (result == -ENOENT)
		why = "it has ended, or its client did not come back in time";
	else if (result)
		why = "its state is damaged, or no key vouches for it";
	else if (other.shared)
		why = "it shared with another session after that";
	else if (!ckt_chain_same_cut(&other, state) || !other.count)
		why = "its images are of another moment, or of another group";
	if (why)
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s comes back only together with session %s, which has no images that fit: %s",
			state->session, one->id, why);
	else
		one->executed = other.executed;
	one->restores = other.restores;
	one->before = other.acked;
	return why ? -EBADMSG : 0;
}

static int read_all(
	struct group *group, const struct ckt_chain_state *state, char ret_message[CKT_MESSAGE_MAX])
{
	int result = 0;
	if (state->shared) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s does not come back: " CKT_AUTOMATIC_SHARES
			", but no images of all of them are there",
			state->session);
		return -EBADMSG;
	}
	for (unsigned i = 0; i < group->count && !result; i++)
		result = read_member(group->server, state, &group->members[i], ret_message);
	return result;
}

/* ---- Those that live */

static struct ckt_session *living(const struct group *group, const struct member *one)
{
	struct ckt_session *session = group->server->sessions;
	while (session && strcmp(session->chain ? session->chain->id : session->id, one->id) != 0)
		session = session->next;
	return session;
}

static void let_go_done(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error && error != -ECONNRESET)
		ckt_warning("session %s: cannot let it continue without its group: %s", session->id,
			strerror(-error));
}

static int hold(
	struct ckt_session *session, ckt_hold_action action, ckt_request_done done, void *context)
{
	struct ckt_worker_hold_args args = {.action = action};
	return ckt_session_call(session, CKT_WORKER_HOLD, (xdrproc_t)xdr_ckt_worker_hold_args,
		&args, -1, (xdrproc_t)xdr_ckt_worker_hold_res, sizeof(struct ckt_worker_hold_res),
		CALL_MS, done, context);
}

/* It stands still; whose work will be done again need not have finished it. */
static bool is_still(const struct group *group, const struct member *one)
{
	return one->held && (one->drained || group->beyond);
}

/* If nobody knows yet whether its client can replay, all ask again, and find out. */
static bool can_end(const struct group *group, const struct member *one)
{
	return is_still(group, one) && !(group->beyond && one->stamped == CKT_STAMPED_UNKNOWN);
}

/* What of those that live cannot go back. */
static void find_obstacle(struct group *group)
{
	for (unsigned i = 0; i < group->count && group->beyond && !*group->why; i++) {
		const struct member *one = &group->members[i];
		if (!one->held || one->stamped != CKT_STAMPED_NO)
			continue;
		if (one->here > one->executed)
			snprintf(group->why, sizeof group->why,
				"session %s has executed command %llu, and goes on, but the "
				"images of its group end before that: nobody of the group "
				"comes back",
				one->id, (unsigned long long)one->here);
		else
			snprintf(group->why, sizeof group->why, NO_PART, one->id);
	}
}

/* All that are held end, or go on. */
static void judge(struct group *group)
{
	find_obstacle(group);
	bool all = !*group->why;
	for (unsigned i = 0; i < group->count && all; i++) {
		const struct ckt_session *session = living(group, &group->members[i]);
		all = !session || can_end(group, &group->members[i]);
	}
	for (unsigned i = 0; i < group->count; i++) {
		struct member *one = &group->members[i];
		struct ckt_session *session = one->held ? living(group, one) : NULL;
		one->held = false;
		if (session && all)
			ckt_session_cut_off(session,
				"a session with which it shares goes back, and so does it");
		else if (session)
			hold(session, CKT_HOLD_END, let_go_done, NULL);
	}
}

static void answered(struct group *group)
{
	bool all = true;
	if (--group->asked)
		return;
	for (unsigned i = 0; i < group->count; i++)
		all = all && (!group->members[i].held || is_still(group, &group->members[i]));
	if (all || *group->why || group->looks++ == LOOKS_MAX) {
		judge(group);
		return;
	}
	group->asked++;
	ckt_timer_set(&group->server->loop, &group->look, LOOK_MS);
}

static void stands(struct ckt_session *session, void *context, int error, void *answer)
{
	struct group *group = context;
	const struct ckt_worker_hold_res *res = answer;
	struct member *one = find(group, session->id);
	if (one && !error && !res->status) {
		one->held = res->held;
		one->drained = res->drained;
		one->here = res->executed;
		group->beyond |= res->executed > one->executed;
	}
	answered(group);
}

static void told(struct ckt_session *session, void *context, int error, void *answer)
{
	struct group *group = context;
	const struct ckt_worker_stamped_res *res = answer;
	struct member *one = find(group, session->id);
	/* An earlier worker does not know; one that died, or does not answer, says nothing of its client. */
	if (one)
		one->stamped = error == -EPROTO ? CKT_STAMPED_NO
			: error                 ? CKT_STAMPED_UNKNOWN
						: res->stamped;
	answered(group);
}

/* Whether its client can replay; an older worker does not know. */
static void ask_stamped(struct group *group, struct ckt_session *session)
{
	group->asked += !ckt_session_call(session, CKT_WORKER_STAMPED, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_stamped_res, sizeof(struct ckt_worker_stamped_res),
		CALL_MS, told, group);
}

/* Those that live, once they are held, or those that are held.  Whether any lives. */
static bool ask_living(struct group *group, ckt_hold_action action)
{
	bool any = false;
	for (unsigned i = 0; i < group->count; i++) {
		struct ckt_session *session = living(group, &group->members[i]);
		bool wanted = action == CKT_HOLD_STOP || group->members[i].held;
		any |= session != NULL;
		/* Of a return that is over: it would wait for memory or ranks of one that is dead. */
		if (session && session->phase == CKT_SESSION_STARTING)
			ckt_session_cut_off(session,
				"a session that was to come back with it has ended meanwhile");
		if (session && wanted && session->phase == CKT_SESSION_LIVE &&
			hold(session, action, stands, group) == 0) {
			group->asked++;
			if (action == CKT_HOLD_STOP)
				ask_stamped(group, session);
		}
	}
	return any;
}

static void look_again(struct ckt_timer *timer)
{
	struct group *group = CKT_CONTAINER(timer, struct group, look);
	ask_living(group, CKT_HOLD_LOOK);
	answered(group);
}

static bool stop_living(struct group *group)
{
	group->looks = 0;
	group->asked = 1;
	bool any = ask_living(group, CKT_HOLD_STOP);
	answered(group);
	return any;
}

/* ---- The replay */

/* Whether the client that came can send all again that the cut does not have. */
static bool can_replay(const struct member *one)
{
	return one->clock && one->from && one->from <= one->executed + 1;
}

/* Who of those that have come has seen what it cannot send again. */
static void find_lost(struct group *group)
{
	for (unsigned i = 0; i < group->count && !*group->why; i++) {
		const struct member *one = &group->members[i];
		if (one->came_ms && one->acked > one->executed && !can_replay(one))
			snprintf(group->why, sizeof group->why,
				"the program of session %s has seen command %llu, and the images of its group "
				"end before that: nobody of the group comes back",
				one->id, (unsigned long long)one->acked);
	}
}

/* What of those that have come cannot replay together. */
static void find_gap(struct group *group)
{
	uint64_t clock = 0;
	find_lost(group);
	for (unsigned i = 0; i < group->count && !*group->why; i++) {
		const struct member *one = &group->members[i];
		if (!one->came_ms)
			continue;
		bool more = one->acked > one->executed;
		if (group->beyond && !can_replay(one))
			snprintf(group->why, sizeof group->why, NO_PART, one->id);
		else if (more && (one->clock == CKT_STAMPS_NONE || (clock && clock != one->clock)))
			snprintf(group->why, sizeof group->why,
				"the commands of session %s were stamped at another host, too: nobody "
				"of the group comes back",
				one->id);
		else if (more)
			clock = one->clock;
	}
}

int ckt_group_return_take(struct ckt_automatic_chain *chain)
{
	for (const struct group *group = groups; group; group = group->next) {
		const struct member *one = find((struct group *)group, chain->id);
		if (!one || !group->goes)
			continue;
		if (group->advanced)
			chain->state.restores = 0;
		if (group->page < 0)
			return 0;
		chain->stamps.slot = (unsigned)(one - group->members);
		chain->stamps.count = group->count;
		chain->stamps.fd = fcntl(group->page, F_DUPFD_CLOEXEC, 3);
		return chain->stamps.fd < 0 ? -errno : 0;
	}
	return 0;
}

static void joined(struct ckt_session *session, void *context, int error, void *answer)
{
	const struct ckt_worker_result *res = answer;
	(void)context;
	if (error || res->status)
		ckt_session_give_up(session, "it cannot replay with its group");
}

void ckt_group_return_tell(struct ckt_session *session)
{
	struct ckt_automatic_chain *chain = session->chain;
	struct ckt_worker_stamps_args args = {
		.slot = chain->stamps.slot, .count = chain->stamps.count};
	int fd = chain->stamps.fd;
	chain->stamps.fd = -1;
	if (fd >= 0 &&
		ckt_session_call(session, CKT_WORKER_STAMPS, (xdrproc_t)xdr_ckt_worker_stamps_args,
			&args, fd, (xdrproc_t)xdr_ckt_worker_result,
			sizeof(struct ckt_worker_result), CALL_MS, joined, NULL))
		ckt_session_give_up(session, "it cannot replay with its group");
}

/* ---- A client asks */

/* One that died as often as it was restored, while nobody of the group got any further. */
static const char *worn(const struct group *group)
{
	const char *id = NULL;
	for (unsigned i = 0; i < group->count && !group->advanced; i++)
		if (group->members[i].restores >= CKT_AUTOMATIC_RESTORES_MAX)
			id = group->members[i].id;
	return id;
}

/*
 * None of them is a replica any more, before any starts: their former server gets a lease for none.
 * Otherwise some would run here and some there.
 */
static int take_all(struct group *group)
{
	int result = 0;
	for (unsigned i = 0; i < group->count && !result; i++) {
		struct ckt_chain_state state;
		const char *id = group->members[i].id;
		int fd = open_member(group->server, id, &state);
		result = fd < 0 ? fd : 0;
		/* What a key vouches for counts more than the mark. */
		if (!result && state.replica_ms) {
			state.replica_ms = 0;
			result = ckt_chain_write(fd, &state);
		}
		if (!result)
			result = ckt_replica_take(fd, id);
		if (fd >= 0)
			close(fd);
	}
	return result;
}

/* All have come, and their states are as they were read a moment ago. */
static int begin(struct group *group, const char *id, char ret_message[CKT_MESSAGE_MAX])
{
	const char *other;
	bool more = false;
	for (unsigned i = 0; i < group->count; i++) {
		const struct member *one = &group->members[i];
		more |= one->acked > one->executed;
		group->advanced |= one->acked > one->executed && one->acked > one->before;
	}
	if ((other = worn(group))) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s comes back only together with session %s, which has no images that fit: it died as often as it was restored from them",
			id, other);
		return -EBADMSG;
	}
	int result = take_all(group);
	/* Sealed: no worker cuts it off under another. */
	if (!result && more && group->page < 0)
		group->page = result =
			ckt_sealed_page_make("cricket-stamps", CKT_STAMPS_PAGE_SIZE, NULL);
	if (result < 0) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"the group of session %s cannot begin: %s: ask again", id,
			strerror(-result));
		return -EAGAIN;
	}
	ckt_fault(CKT_FAULT_GROUP_RETURNS);
	ckt_info("session %s: it and the %u others of its group go back to their common images%s",
		id, group->count - 1, more ? ", and replay what is behind them in one order" : "");
	group->goes = true;
	return 0;
}

static const char *missing(const struct group *group)
{
	int64_t now_ms = ckt_net_now_ms();
	for (unsigned i = 0; i < group->count; i++)
		if (!group->members[i].came_ms || now_ms - group->members[i].came_ms > CAME_MS)
			return group->members[i].id;
	return NULL;
}

/* Who may run a member: this server, or another one that shares the directory. */
static const char *locked(const struct group *group)
{
	for (unsigned i = 0; i < group->count; i++) {
		int fd = ckt_chain_open(
			group->server->automatic->dir_fd, group->members[i].id, false);
		int lock = fd < 0 ? fd : ckt_chain_lock(fd, false);
		if (fd >= 0)
			close(fd);
		if (lock < 0)
			return group->members[i].id;
		close(lock);
	}
	return NULL;
}

/*
 * Whether no member may run at the server of --replicate, or at the one whose replicas they are.
 * -ENOENT: one went on there, and so do all.
 */
static int find_elsewhere(struct group *group, char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_server *server = group->server;
	int result = 0;
	for (unsigned i = 0; i < group->count && !result; i++) {
		struct ckt_chain_state state;
		int fd = open_member(server, group->members[i].id, &state);
		if (fd < 0)
			continue;
		result = ckt_replica_may_start(server, fd, &state, ret_message);
		close(fd);
	}
	for (unsigned i = 0; i < group->count && result == -ENOENT; i++)
		ckt_replica_leave(server, group->members[i].id);
	return result;
}

static int gather(struct group *group, const char *id, char ret_message[CKT_MESSAGE_MAX])
{
	const char *other = NULL;
	int result = find_elsewhere(group, ret_message);
	if (result)
		return result;
	if (group->asked || stop_living(group))
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s comes back together with others, whose workers have not ended: "
			"ask again",
			id);
	else if ((other = missing(group)))
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s comes back together with session %s, whose client has not come: "
			"ask again",
			id, other);
	else if ((other = locked(group)))
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s comes back together with session %s, which still has a worker "
			"here or at another server: ask again",
			id, other);
	else
		return 0;
	return -EAGAIN;
}

int ckt_group_return(struct ckt_peer *peer, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX])
{
	struct group *group = group_of(peer->server, state);
	if (!group)
		return -ENOMEM;
	/* The others' clients have as long as this one asks, and this one is told why if they do not come. */
	ckt_automatic_prolong(state->session);
	struct member *one = find(group, state->session);
	int result = read_all(group, state, ret_message);
	if (result || group->goes)
		return result;
	one->came_ms = ckt_net_now_ms();
	one->acked = peer->hello.acked;
	one->from = ckt_automatic_told(&peer->hello, CKT_CAPABILITY_DURABLE);
	one->clock = ckt_automatic_told(&peer->hello, CKT_CAPABILITY_STAMPS);
	group->beyond |= one->acked > one->executed;
	find_gap(group);
	if (*group->why) {
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s", group->why);
		return -EBADMSG;
	}
	result = gather(group, one->id, ret_message);
	return result ? result : begin(group, one->id, ret_message);
}
