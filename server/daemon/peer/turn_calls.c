/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions share GPUs in time, for cricketctl ps: of those that the peer may see. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

static ckt_control_turn_state state_of(const struct ckt_session *session, unsigned gpu)
{
	const struct ckt_turn_member *member = &session->turn.members[gpu];
	return session->turn.overdue >> gpu & 1                     ? CKT_CONTROL_TURN_OVERDUE
		: session->server->turns[gpu].ring.holder == member ? CKT_CONTROL_TURN_HAS
		: member->wants                                     ? CKT_CONTROL_TURN_WAITS
								    : CKT_CONTROL_TURN_IDLE;
}

static void fill(const struct ckt_session *session, unsigned gpu, ckt_control_turn *ret_turn)
{
	const struct ckt_turn_member *member = &session->turn.members[gpu];
	*ret_turn = (ckt_control_turn){.session = (char *)session->id,
		.gpu = gpu,
		.state = state_of(session, gpu),
		.used_us =
			ckt_turn_used_ns(&session->server->turns[gpu].ring, member, ckt_now_ns()) /
			1000,
		.turns = member->turns,
		.weight = member->weight,
		.cap = member->cap,
		.latency_class = member->class,
		.priority = member->priority};
}

void ckt_control_turns(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	ckt_control_turn *list = calloc(CKT_CONTROL_TURNS_MAX, sizeof *list);
	ckt_control_turns_res res = {.turns = {0, list}};
	(void)passed_fd;
	for (const struct ckt_session *s = peer->server->sessions; s && list; s = s->next) {
		if (strcmp(s->id, args->after) <= 0 || !s->turn.member_of ||
			!ckt_peer_may_session(peer, s))
			continue;
		/* A session's are told together. */
		unsigned count = (unsigned)__builtin_popcountll(s->turn.member_of);
		res.more = res.turns.turns_len + count > CKT_CONTROL_TURNS_MAX;
		if (res.more)
			break;
		for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
			if (s->turn.member_of >> gpu & 1)
				fill(s, gpu, &list[res.turns.turns_len++]);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_turns_res, &res);
	free(list);
}
