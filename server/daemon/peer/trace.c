/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: the call goes to the session's worker, which has all of the state.  Who may see the
 * session may trace it; see ckt_control_select.
 */
#include <errno.h>

#include "rpc/worker.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

enum { TRACE_TIMEOUT_MS = 10000 };

static void refuse(struct ckt_peer *peer, const ckt_control_result *result)
{
	ckt_control_trace_res res = {.result = *result};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_trace_res, &res);
}

static void answered(struct ckt_session *session, void *context, int error, void *decoded)
{
	struct ckt_peer *peer = context;
	struct ckt_worker_trace_res *from = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_trace_res res = {.result = {CKT_CONTROL_OK, buffer}};
	if (!ckt_peer_release(peer))
		return;
	if (error) {
		/* Workers of an earlier version close the connection. */
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker %d: %s", session->id, (int)session->pid,
			ckt_daemon_request_problem(error));
	} else if (from->status) {
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED, "session %s: %s",
			session->id, from->message);
	} else {
		res.trace = from->trace;
		res.dropped = from->dropped;
		res.more = from->more;
		res.calls.calls_len = from->calls.calls_len;
		res.calls.calls_val = from->calls.calls_val;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_trace_res, &res);
}

static void ask(struct ckt_peer *peer, const ckt_control_trace_args *args, ckt_trace_action action)
{
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	ckt_worker_trace_args call = {
		.action = action, .gpu_time = args->gpu_time, .trace = args->trace};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	if (!session) {
		refuse(peer, &result);
		return;
	}
	if (session->phase == CKT_SESSION_LIVE &&
		!ckt_session_call(session, CKT_WORKER_TRACE, (xdrproc_t)xdr_ckt_worker_trace_args,
			&call, -1, (xdrproc_t)xdr_ckt_worker_trace_res,
			sizeof(struct ckt_worker_trace_res), TRACE_TIMEOUT_MS, answered, peer)) {
		ckt_peer_hold(peer);
		return;
	}
	ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
		"session %s is not running: try again when 'cricketctl ps' lists it as running",
		session->id);
	refuse(peer, &result);
}

void ckt_control_trace(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_trace_args *args = decoded;
	(void)passed_fd;
	/* Reading has a call of its own, which the audit log does not tell. */
	ask(peer, args,
		args->action == CKT_TRACE_ACTION_START ? CKT_TRACE_ACTION_START
						       : CKT_TRACE_ACTION_STOP);
}

void ckt_control_trace_read(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)passed_fd;
	ask(peer, decoded, CKT_TRACE_ACTION_READ);
}
