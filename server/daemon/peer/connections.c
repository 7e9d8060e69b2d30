/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sessions' connections to their clients run over, for cricketctl ps.  Only the workers
 * know; each that may be seen is asked, at the same time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/worker.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

/* Shorter than for one session: a worker that does not answer must not hold up the listing. */
enum { CONNECTION_TIMEOUT_MS = 3000 };

struct asking {
	struct ckt_peer *peer;
	unsigned left; /* answers to come, and one for the asking itself */
	bool more;
	unsigned count;
	ckt_control_connection list[CKT_CONTROL_LIST_MAX];
	char ids[CKT_CONTROL_LIST_MAX][CKT_SESSION_ID_SIZE + 1];
	char transports[CKT_CONTROL_LIST_MAX][CKT_CONTROL_TRANSPORT + 1];
};

static int by_id(const void *a, const void *b)
{
	const ckt_control_connection *x = a, *y = b;
	return strcmp(x->session, y->session);
}

static void answered(struct asking *asking)
{
	if (--asking->left)
		return;
	ckt_control_connections_res res = {
		.sessions = {asking->count, asking->list}, .more = asking->more};
	qsort(asking->list, asking->count, sizeof *asking->list, by_id);
	if (ckt_peer_release(asking->peer))
		ckt_peer_reply(asking->peer, (xdrproc_t)xdr_ckt_control_connections_res, &res);
	free(asking);
}

/* A worker of an earlier version says nothing of lanes, and an older one nothing at all. */
static void worker_answered(struct ckt_session *session, void *context, int error, void *decoded)
{
	struct asking *asking = context;
	const struct ckt_worker_stats_res *res = decoded;
	const size_t prefix = strlen(CKT_STAT_TRANSPORT);
	for (u_int i = 0; !error && i < res->stats.stats_len; i++) {
		const struct ckt_worker_stat *stat = &res->stats.stats_val[i];
		if (strncmp(stat->name, CKT_STAT_TRANSPORT, prefix) != 0 ||
			asking->count == CKT_CONTROL_LIST_MAX)
			continue;
		unsigned n = asking->count++;
		strcpy(asking->ids[n], session->id);
		strncat(asking->transports[n], stat->name + prefix, CKT_CONTROL_TRANSPORT);
		asking->list[n] = (ckt_control_connection){
			asking->ids[n], asking->transports[n], (u_int)stat->calls};
		break;
	}
	answered(asking);
}

void ckt_control_connections(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	struct asking *asking = calloc(1, sizeof *asking);
	unsigned listed = 0;
	(void)passed_fd;
	if (!asking) {
		ckt_peer_close(peer);
		return;
	}
	asking->peer = peer;
	asking->left = 1;
	ckt_peer_hold(peer);
	for (struct ckt_session *session = peer->server->sessions; session;
		session = session->next) {
		if (strcmp(session->id, args->after) <= 0 || !ckt_peer_may_session(peer, session))
			continue;
		/* As many as LIST tells, also those that have no worker to ask. */
		if (listed++ == CKT_CONTROL_LIST_MAX) {
			asking->more = true;
			break;
		}
		asking->left += session->phase == CKT_SESSION_LIVE &&
			!ckt_session_call(session, CKT_WORKER_STATS, NULL, NULL, -1,
				(xdrproc_t)xdr_ckt_worker_stats_res,
				sizeof(struct ckt_worker_stats_res), CONNECTION_TIMEOUT_MS,
				worker_answered, asking);
	}
	answered(asking);
}
