/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of automatic images: for cricketctl ps. */
#include <stdlib.h>
#include <string.h>

#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

static void fill(const struct ckt_session *session, ckt_control_durable *ret)
{
	const struct ckt_automatic_chain *chain = session->chain;
	const struct ckt_chain_state *state = &chain->state;
	*ret = (ckt_control_durable){.session = (char *)session->id,
		.when = state->count ? state->when : 0,
		.executed = state->executed,
		.images = state->count,
		.taken = chain->taken,
		.behind = session->status.executed > state->executed
			? session->status.executed - state->executed
			: 0,
		.restores = state->restores,
		.problem = (char *)(*chain->problem
				? chain->problem
				: ckt_replica_problem(session->server, session->id))};
	for (unsigned i = 0; i < state->count; i++)
		ret->bytes += state->images[i].bytes;
}

/* All of a session that sleeps is in its images. */
static void fill_asleep(const struct ckt_sleeper *sleeper, ckt_control_durable *ret)
{
	const struct ckt_chain_state *state = &sleeper->chain->state;
	*ret = (ckt_control_durable){.session = sleeper->chain->id,
		.when = sleeper->since,
		.executed = state->executed,
		.bytes = sleeper->bytes,
		.images = state->count,
		.taken = sleeper->chain->taken,
		.restores = state->restores,
		.problem = (char *)""};
}

void ckt_control_durable_list(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	ckt_control_durable *list = calloc(CKT_CONTROL_DURABLE_MAX, sizeof *list);
	ckt_control_durable_res res = {.sessions = {0, list}};
	(void)passed_fd;
	_Static_assert(sizeof((struct ckt_automatic_chain *)0)->problem <= CKT_CONTROL_REASON + 1,
		"a problem is passed on as it is");
	const struct ckt_sleeper *asleep = ckt_sleep_first();
	const struct ckt_session *s = peer->server->sessions;
	while (list && (s || asleep) && !res.more) {
		/* Both by id. */
		bool sleeps = asleep && (!s || strcmp(asleep->chain->id, s->id) < 0);
		bool told = strcmp(sleeps ? asleep->chain->id : s->id, args->after) > 0 &&
			(sleeps ? ckt_peer_may(peer, asleep->owner)
				: s->chain && ckt_peer_may_session(peer, s));
		res.more = told && res.sessions.sessions_len == CKT_CONTROL_DURABLE_MAX;
		if (told && !res.more && sleeps)
			fill_asleep(asleep, &list[res.sessions.sessions_len++]);
		else if (told && !res.more)
			fill(s, &list[res.sessions.sessions_len++]);
		if (sleeps)
			asleep = asleep->next;
		else
			s = s->next;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_durable_res, &res);
	free(list);
}

/* ---- Replicas */

static void put(ckt_control_replica *ret, const char *session, const char *server,
	const struct ckt_replica_facts *facts)
{
	*ret = (ckt_control_replica){.session = (char *)session,
		.server = (char *)server,
		.owner = facts->owner,
		.executed = facts->executed,
		.when = facts->when,
		.lease_s = facts->lease_ms / 1000,
		.bytes = facts->bytes,
		.problem = (char *)facts->problem};
}

/* Of sessions here. */
static void list_sent(struct ckt_peer *peer, const char *after, ckt_control_replicas_res *res)
{
	struct ckt_replica_facts facts;
	for (const struct ckt_session *s = peer->server->sessions; s; s = s->next) {
		if (strcmp(s->id, after) <= 0 || !ckt_peer_may_session(peer, s) ||
			!ckt_replica_facts(peer->server, s->id, &facts))
			continue;
		res->more = res->replicas.replicas_len == CKT_CONTROL_REPLICAS_MAX;
		if (res->more)
			return;
		ckt_control_replica *one =
			&res->replicas.replicas_val[res->replicas.replicas_len++];
		facts.owner = s->uid;
		put(one, s->id, peer->server->options.replicate, &facts);
		one->behind = s->status.executed > facts.executed
			? s->status.executed - facts.executed
			: 0;
	}
}

/* Of other servers' sessions; names: room for their ids. */
static void list_held(
	const char *after, struct ckt_replica_facts *names, ckt_control_replicas_res *res)
{
	for (u_int i = 0; ckt_replica_held_next(i ? names[i - 1].session : after, &names[i]); i++) {
		res->more = i == CKT_CONTROL_REPLICAS_MAX;
		if (res->more)
			return;
		put(&res->replicas.replicas_val[i], names[i].session, "", &names[i]);
		res->replicas.replicas_len = i + 1;
	}
}

void ckt_control_replicas_list(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_replicas_args *args = decoded;
	ckt_control_replica *list = calloc(CKT_CONTROL_REPLICAS_MAX, sizeof *list);
	struct ckt_replica_facts *names = calloc(CKT_CONTROL_REPLICAS_MAX + 1, sizeof *names);
	ckt_control_replicas_res res = {.replicas = {0, list}};
	(void)passed_fd;
	if (list && names && !args->held)
		list_sent(peer, args->after, &res);
	else if (list && names && ckt_control_is_administrator(peer))
		list_held(args->after, names, &res);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_replicas_res, &res);
	free(names);
	free(list);
}
