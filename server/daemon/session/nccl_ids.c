/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unique ids of communicators whose sessions are restored together: made by one preloaded copy, and
 * sent to others, here or at another server.  The server trusts neither side: it only passes bytes
 * between the caller and the caller's own workers.
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

/* What is asked of the worker of a copy. */
struct question {
	uint32_t proc;
	xdrproc_t xdr_args, xdr_result;
	size_t result_size;
	int timeout_ms;
	ckt_request_done done;
	const char *what; /* that a copy does with IDs */
};

/* Asks, and holds the peer until that is done; false with the reason. */
static bool ask(struct ckt_peer *peer, const char *copy, const struct question *question,
	void *args, char ret_reason[CKT_MESSAGE_MAX])
{
	struct ckt_session *session = ckt_daemon_image_find_ahead(peer, copy, ret_reason);
	if (!session) {
		if (!*ret_reason)
			snprintf(ret_reason, CKT_MESSAGE_MAX,
				"a copy %s the IDs of communicators: name the copy",
				question->what);
		return false;
	}
	int error = ckt_session_call(session, question->proc, question->xdr_args, args, -1,
		question->xdr_result, question->result_size, question->timeout_ms, question->done,
		peer);
	if (error) {
		snprintf(ret_reason, CKT_MESSAGE_MAX, "cannot reach the worker of the copy: %s",
			strerror(-error));
		return false;
	}
	ckt_peer_hold(peer);
	return true;
}

/* What the answer comes to; what: that its worker does not do. */
static void judge(const struct ckt_session *session, int error, uint32_t status,
	const char *message, const char *what, ckt_control_result *result,
	char buffer[CKT_MESSAGE_MAX])
{
	if (error)
		ckt_control_result_set(result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker %s: %s", session->id, what,
			ckt_daemon_request_problem(error));
	else if (status)
		ckt_control_result_set(result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, message);
}

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
	judge(session, error, error ? 0 : (uint32_t)made->status, error ? NULL : made->message,
		"makes no IDs for communicators", &result, buffer);
	if (ckt_peer_release(peer))
		make_reply(peer, &result, made);
}

static const struct question make = {
	.proc = CKT_WORKER_NCCL_MAKE,
	.xdr_args = (xdrproc_t)xdr_ckt_worker_nccl_make_args,
	.xdr_result = (xdrproc_t)xdr_ckt_worker_nccl_make_res,
	.result_size = sizeof(struct ckt_worker_nccl_make_res),
	.timeout_ms = MAKE_MS,
	.done = make_done,
	.what = "makes",
};

void ckt_control_nccl_make(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_nccl_make_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_worker_nccl_make_args call = {.count = args->count};
	(void)passed_fd;
	if (!ask(peer, args->copy, &make, &call, buffer))
		make_reply(peer, &(ckt_control_result){CKT_CONTROL_REFUSED, buffer}, NULL);
}

static void told(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	const ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	judge(session, error, error ? 0 : (uint32_t)res->status, error ? NULL : res->message,
		"accepts no IDs of communicators", &result, buffer);
	if (ckt_peer_release(peer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

static const struct question tell = {
	.proc = CKT_WORKER_NCCL_IDS,
	.xdr_args = (xdrproc_t)xdr_ckt_worker_nccl_ids_args,
	.xdr_result = (xdrproc_t)xdr_ckt_worker_result,
	.result_size = sizeof(struct ckt_worker_result),
	.timeout_ms = TELL_MS,
	.done = told,
	.what = "receives",
};

void ckt_control_nccl_ids(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_nccl_ids_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	_Static_assert(
		sizeof(ckt_control_nccl_pair) == sizeof(ckt_worker_nccl_pair), "the same pairs");
	ckt_worker_nccl_ids_args call = {
		.pairs = {args->pairs.pairs_len, (ckt_worker_nccl_pair *)args->pairs.pairs_val}};
	(void)passed_fd;
	if (!ask(peer, args->copy, &tell, &call, buffer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result,
			&(ckt_control_result){CKT_CONTROL_REFUSED, buffer});
}
