/*
 * Unique ids of communicators whose sessions are restored together: asked of one copy that was
 * taken ahead, and handed to others, here or at another server.  We believe neither side: they are
 * bytes between the caller and its own workers.
 *
 * Threading: the loop's thread.
 */
#include <stdio.h>
#include <string.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/worker_request.h"
#include "server/daemon/session/session.h"

enum { MAKE_MS = 60000, TELL_MS = 15000 };

static void make_reply(struct ckt_peer *peer, const ckt_control_result *result,
	const ckt_worker_nccl_make_res *made)
{
	static ckt_control_nccl_id ids[CKT_CONTROL_NCCL_IDS_MAX];
	ckt_control_nccl_make_res res = {.result = *result, .ids = {.ids_val = ids}};
	_Static_assert(sizeof *ids == sizeof *made->ids.ids_val &&
			(int)CKT_CONTROL_NCCL_IDS_MAX == (int)CKT_WORKER_NCCL_IDS_MAX,
		"the same ids");
	if (result->status == CKT_CONTROL_OK) {
		res.ids.ids_len = made->ids.ids_len;
		memcpy(ids, made->ids.ids_val, made->ids.ids_len * sizeof *ids);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_nccl_make_res, &res);
}

static void make_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	const ckt_worker_nccl_make_res *made = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker makes no IDs for communicators: %s", session->id,
			ckt_request_problem(error));
	else if (made->status)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, made->message);
	if (ckt_peer_release(peer))
		make_reply(peer, &result, made);
}

void ckt_control_nccl_make(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_nccl_make_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	struct ckt_session *session = ckt_image_find_ahead(peer, args->copy, buffer);
	ckt_worker_nccl_make_args call = {.count = args->count};
	(void)passed_fd;
	if (!session && !*buffer)
		snprintf(buffer, sizeof buffer,
			"a copy makes the IDs of communicators: name the copy");
	int error = session
		? ckt_session_call(session, CKT_WORKER_NCCL_MAKE,
			  (xdrproc_t)xdr_ckt_worker_nccl_make_args, &call, -1,
			  (xdrproc_t)xdr_ckt_worker_nccl_make_res,
			  sizeof(struct ckt_worker_nccl_make_res), MAKE_MS, make_done, peer)
		: 0;
	if (session && !error) {
		ckt_peer_hold(peer);
		return;
	}
	if (error)
		snprintf(buffer, sizeof buffer, "cannot reach the worker of the copy: %s",
			strerror(-error));
	make_reply(peer, &(ckt_control_result){CKT_CONTROL_REFUSED, buffer}, NULL);
}

static void told(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	const ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker accepts no IDs of communicators: %s", session->id,
			ckt_request_problem(error));
	else if (res->status)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, res->message);
	if (ckt_peer_release(peer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

void ckt_control_nccl_ids(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_nccl_ids_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	struct ckt_session *session = ckt_image_find_ahead(peer, args->copy, buffer);
	_Static_assert(
		sizeof(ckt_control_nccl_pair) == sizeof(ckt_worker_nccl_pair), "the same pairs");
	ckt_worker_nccl_ids_args call = {
		.pairs = {args->pairs.pairs_len, (ckt_worker_nccl_pair *)args->pairs.pairs_val}};
	(void)passed_fd;
	if (!session && !*buffer)
		snprintf(buffer, sizeof buffer,
			"a copy receives the IDs of communicators: name the copy");
	int error = session ? ckt_session_call(session, CKT_WORKER_NCCL_IDS,
				      (xdrproc_t)xdr_ckt_worker_nccl_ids_args, &call, -1,
				      (xdrproc_t)xdr_ckt_worker_result,
				      sizeof(struct ckt_worker_result), TELL_MS, told, peer)
			    : 0;
	if (session && !error) {
		ckt_peer_hold(peer);
		return;
	}
	if (error)
		snprintf(buffer, sizeof buffer, "cannot reach the worker of the copy: %s",
			strerror(-error));
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result,
		&(ckt_control_result){CKT_CONTROL_REFUSED, buffer});
}
