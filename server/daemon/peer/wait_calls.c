/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for memory, and on whom: for cricketctl ps.  Of other owners' sessions a caller learns
 * how many there are and what they hold together, and nothing else.
 */
#include <stdlib.h>

#include "rpc/net.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"

static void fill_holders(struct ckt_peer *peer, const struct ckt_wait_request *request,
	ckt_control_wait_holder *list, ckt_control_wait *wait)
{
	wait->holders.holders_val = list;
	for (struct ckt_session *s = peer->server->sessions; s; s = s->next) {
		uint64_t bytes = s->lease.is_holder ? s->lease.holder.leased[request->gpu] : 0;
		if (!bytes || &s->lease.holder == request->holder)
			continue;
		if (list && wait->holders.holders_len < CKT_CONTROL_WAIT_HOLDERS &&
			ckt_peer_may_session(peer, s)) {
			list[wait->holders.holders_len++] = (ckt_control_wait_holder){s->id, bytes};
		} else {
			wait->others++;
			wait->others_bytes += bytes;
		}
	}
}

static void fill(struct ckt_peer *peer, const struct ckt_wait_request *request,
	ckt_control_wait_holder *holders, ckt_control_wait *ret_wait)
{
	int64_t waited_ms = ckt_net_now_ms() - request->since_ms;
	*ret_wait = (ckt_control_wait){.session = ckt_memory_wait_session(request)->id,
		.gpu = request->gpu,
		.bytes = request->bytes,
		.waited_ms = waited_ms > 0 ? (uint64_t)waited_ms : 0,
		.reason = (char *)ckt_memory_reason_text(request->reason)};
	fill_holders(peer, request, holders, ret_wait);
}

void ckt_control_waits(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_waits_args *args = decoded;
	const struct ckt_wait_queue *queue = &peer->server->waits;
	ckt_control_wait *list = calloc(CKT_CONTROL_WAITS_MAX, sizeof *list);
	ckt_control_waits_res res = {
		.policy = (char *)(queue->policy ? queue->policy->name : ""), .waits = {0, list}};
	unsigned seen = 0;
	(void)passed_fd;
	for (const struct ckt_wait_request *r = queue->first; r && list; r = r->next) {
		if (!ckt_peer_may_session(peer, ckt_memory_wait_session(r)) || seen++ < args->skip)
			continue;
		res.more = res.waits.waits_len == CKT_CONTROL_WAITS_MAX;
		if (res.more)
			break;
		fill(peer, r, calloc(CKT_CONTROL_WAIT_HOLDERS, sizeof(ckt_control_wait_holder)),
			&list[res.waits.waits_len++]);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_waits_res, &res);
	for (u_int i = 0; i < res.waits.waits_len; i++)
		free(list[i].holders.holders_val);
	free(list);
}
