/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of the image that the next save of a session builds on, on its way to the session's
 * worker.
 */
#include <string.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/worker_request.h"

enum { BASE_TIMEOUT_MS = 60000 };

static void base_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	struct ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: cannot reach its worker: %s", session->id, strerror(-error));
	else if (res->status)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, res->message);
	if (ckt_peer_release(peer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

void ckt_control_base(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_base_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	struct ckt_worker_base_args call = {
		.offset = args->offset, .data = {args->data.data_len, args->data.data_val}};
	(void)passed_fd;
	_Static_assert((int)CKT_CONTROL_BASE_MAX == (int)CKT_WORKER_BASE_MAX,
		"a piece is passed on as it came");
	memcpy(call.base, args->base, sizeof call.base);
	if (session && session->phase != CKT_SESSION_LIVE) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s is starting or ending: try again", session->id);
	} else if (session) {
		int error = ckt_session_call(session, CKT_WORKER_BASE,
			(xdrproc_t)xdr_ckt_worker_base_args, &call, -1,
			(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			BASE_TIMEOUT_MS, base_done, peer);
		if (!error) {
			ckt_peer_hold(peer);
			return;
		}
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: cannot reach its worker: %s", session->id, strerror(-error));
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}
