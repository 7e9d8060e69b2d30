/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions share their GPUs, for cricketctl ps: of those that the peer may see. */
#include <stdlib.h>
#include <string.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

void ckt_control_sharings(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	ckt_control_sharing *list = calloc(CKT_CONTROL_SHARINGS_MAX, sizeof *list);
	ckt_control_sharings_res res = {.sessions = {0, list}};
	(void)passed_fd;
	for (const struct ckt_session *s = peer->server->sessions; s && list; s = s->next) {
		if (strcmp(s->id, args->after) <= 0 || !ckt_peer_may_session(peer, s))
			continue;
		res.more = res.sessions.sessions_len == CKT_CONTROL_SHARINGS_MAX;
		if (res.more)
			break;
		const struct ckt_mps_member *mps = &s->mps;
		list[res.sessions.sessions_len++] = (ckt_control_sharing){.session = (char *)s->id,
			.space = mps->daemon != NULL,
			.members = ckt_mps_members(s),
			.percent = mps->daemon ? mps->asked.percent : 0,
			.below = mps->daemon && mps->asked.below,
			.reason = (char *)(mps->reason ? mps->reason : "")};
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_sharings_res, &res);
	free(list);
}

void ckt_control_share_groups(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	ckt_control_share_group *list = calloc(CKT_CONTROL_SHARINGS_MAX, sizeof *list);
	ckt_control_share_groups_res res = {.sessions = {0, list}};
	bool agreed;
	(void)passed_fd;
	for (const struct ckt_session *s = peer->server->sessions; s && list; s = s->next) {
		if (strcmp(s->id, args->after) <= 0 || !ckt_mps_in_group(s, &agreed) ||
			!ckt_peer_may_session(peer, s))
			continue;
		res.more = res.sessions.sessions_len == CKT_CONTROL_SHARINGS_MAX;
		if (res.more)
			break;
		list[res.sessions.sessions_len++] =
			(ckt_control_share_group){.session = (char *)s->id,
				.group = (char *)s->mps.asked.group,
				.agreed = agreed};
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_share_groups_res, &res);
	free(list);
}

void ckt_control_share_modes(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const struct ckt_server *server = peer->server;
	const char *obstacle = ckt_mps_obstacle(server);
	ckt_control_share_modes_res res = {.space = !obstacle,
		.reason = (char *)(obstacle ? obstacle : ""),
		.wants_space = server->options.share && !strcmp(server->options.share, "space")};
	(void)decoded, (void)passed_fd;
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_share_modes_res, &res);
}
