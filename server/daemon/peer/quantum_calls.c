/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions may be swapped, and where their memory is, for cricketctl ps: of those that the peer may see. */
#include <stdlib.h>
#include <string.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

_Static_assert((int)CKT_QUANTUM_STAYS == (int)CKT_CONTROL_QUANTUM_STAYS, "one list of states");

static void fill(const struct ckt_session *session, const struct ckt_quantum_view *view,
	ckt_control_quantum *ret_quantum)
{
	*ret_quantum = (ckt_control_quantum){.session = (char *)session->id,
		.gpu = view->gpu,
		.state = (ckt_control_quantum_state)view->state,
		.here_bytes = view->here_bytes,
		.swapped_bytes = view->swapped_bytes,
		.wanted_bytes = view->wanted_bytes,
		.waited_ms = (uint64_t)view->waited_ms,
		.outs = view->outs,
		.ins = view->ins,
		.switches = view->switches,
		.reason = (char *)view->reason};
}

void ckt_control_quanta(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	ckt_control_quantum *list = calloc(CKT_CONTROL_QUANTA_MAX, sizeof *list);
	ckt_control_quanta_res res = {.sessions = {0, list}};
	struct ckt_quantum_view view;
	(void)passed_fd;
	for (const struct ckt_session *s = peer->server->sessions; s && list; s = s->next) {
		if (strcmp(s->id, args->after) <= 0 || !ckt_peer_may_session(peer, s) ||
			!ckt_quantum_describe(s, &view))
			continue;
		res.more = res.sessions.sessions_len == CKT_CONTROL_QUANTA_MAX;
		if (res.more)
			break;
		fill(s, &view, &list[res.sessions.sessions_len++]);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_quanta_res, &res);
	free(list);
}
