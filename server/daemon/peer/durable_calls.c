/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of automatic images: for cricketctl ps. */
#include <stdlib.h>
#include <string.h>

#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/replica.h"
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

void ckt_control_durable_list(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	ckt_control_durable *list = calloc(CKT_CONTROL_DURABLE_MAX, sizeof *list);
	ckt_control_durable_res res = {.sessions = {0, list}};
	(void)passed_fd;
	_Static_assert(sizeof((struct ckt_automatic_chain *)0)->problem <= CKT_CONTROL_REASON + 1,
		"a problem is passed on as it is");
	for (const struct ckt_session *s = peer->server->sessions; s && list; s = s->next) {
		if (!s->chain || strcmp(s->id, args->after) <= 0 || !ckt_peer_may_session(peer, s))
			continue;
		res.more = res.sessions.sessions_len == CKT_CONTROL_DURABLE_MAX;
		if (res.more)
			break;
		fill(s, &list[res.sessions.sessions_len++]);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_durable_res, &res);
	free(list);
}
