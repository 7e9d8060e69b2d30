/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl decide: decisions of a scheduler outside of the server, or of an administrator.  Each is
 * checked as one of the server's own: nothing passes a limit or leaves a state that is not safe.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/policy/tokens.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"

static void reply(
	struct ckt_peer *peer, const char *session, ckt_control_status status, const char *message)
{
	ckt_control_decide_res res = {
		.result = {status, (char *)message}, .session = (char *)session};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_decide_res, &res);
}

static uint64_t oldest_request(const struct ckt_server *server, const struct ckt_session *session)
{
	for (const struct ckt_wait_request *r = server->waits.first; r; r = r->next)
		if (ckt_memory_wait_session(r) == session)
			return r->number;
	return 0;
}

/* ---- Memory: grant, wait, refuse */

static void decide_memory(struct ckt_peer *peer, const ckt_control_decide_args *args,
	const struct ckt_session *session)
{
	struct ckt_server *server = peer->server;
	char by[CKT_OWNER_NAME_SIZE], message[CKT_MESSAGE_MAX] = "";
	uint64_t request = args->request;
	bool good;
	ckt_owner_text(server, ckt_peer_owner(peer), by);
	if (session && !request)
		request = oldest_request(server, session);
	if (args->event) {
		good = ckt_scheduler_choose(
			server, args->event, request, args->action, by, message, sizeof message);
	} else if (args->action == CKT_CONTROL_WAIT) {
		good = false;
		snprintf(message, sizeof message,
			"'wait' answers an event: name the number of an event 'choose'");
	} else if (!request) {
		good = false;
		snprintf(message, sizeof message, "session %s waits for no memory", session->id);
	} else {
		good = ckt_scheduler_decide(
			server, request, args->action, by, message, sizeof message);
	}
	reply(peer, good && session ? session->id : "", good ? CKT_CONTROL_OK : CKT_CONTROL_REFUSED,
		message);
	ckt_memory_wait_look(server);
}

/* ---- Swapping */

static void moved(struct ckt_session *session, void *data, int error,
	const ckt_worker_swap_res *res, const char *message)
{
	struct ckt_peer *peer = data;
	char text[CKT_MESSAGE_MAX] = "";
	(void)res;
	if (error)
		snprintf(text, sizeof text, "session %s: %.400s", session->id, message);
	if (ckt_peer_release(peer))
		reply(peer, session->id, error ? CKT_CONTROL_REFUSED : CKT_CONTROL_OK, text);
}

static void decide_swap(struct ckt_peer *peer, struct ckt_session *session, bool out)
{
	char message[CKT_MESSAGE_MAX];
	struct ckt_decision decision;
	if (out)
		ckt_ask_pause(session, &decision);
	else
		ckt_ask_resume(session, &decision);
	if (decision.answer) {
		reply(peer, "", CKT_CONTROL_REFUSED, decision.reason);
		return;
	}
	int error = out ? ckt_session_swap_out(session, false, 0, moved, peer)
			: ckt_session_swap_in(session, moved, peer);
	if (!error) {
		ckt_peer_hold(peer);
		return;
	}
	snprintf(message, sizeof message, "session %s: %s", session->id,
		error == -ENOTSUP
			? "this server has no swap memory: start it with --swap-memory or --swap"
			: error == -EBUSY
			? "it is swapped, held or ended by another call: try again when that is over"
			: strerror(-error));
	reply(peer, "", CKT_CONTROL_REFUSED, message);
}

/* ---- Turns */

static void decide_turn(struct ckt_peer *peer, struct ckt_session *session, bool give)
{
	char by[CKT_OWNER_NAME_SIZE], message[CKT_MESSAGE_MAX] = "";
	ckt_owner_text(peer->server, ckt_peer_owner(peer), by);
	bool good = ckt_turn_decided(session, give, by, message, sizeof message);
	reply(peer, good ? session->id : "", good ? CKT_CONTROL_OK : CKT_CONTROL_REFUSED, message);
}

void ckt_control_decide(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_decide_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	struct ckt_session *session = NULL;
	bool of_memory = args->action <= CKT_CONTROL_REFUSE;
	(void)passed_fd;
	if (!ckt_control_is_administrator(peer)) {
		reply(peer, "", CKT_CONTROL_REFUSED,
			"decisions are made by administrators: use the server's UNIX socket as its user or root, or an administrator's token");
		return;
	}
	if (args->action > CKT_CONTROL_END_TURN) {
		reply(peer, "", CKT_CONTROL_REFUSED,
			"this server does not know that decision: it is older than cricketctl");
		return;
	}
	if (*args->session || !args->event) {
		session = ckt_control_select(peer, args->session, &result, buffer);
		if (!session) {
			reply(peer, "", result.status, result.message);
			return;
		}
	}
	if (of_memory)
		decide_memory(peer, args, session);
	else if (args->event)
		reply(peer, "", CKT_CONTROL_REFUSED,
			"an event asks who gets memory: decide grant, wait or refuse, or name a session");
	else if (args->action <= CKT_CONTROL_MOVE_IN)
		decide_swap(peer, session, args->action == CKT_CONTROL_MOVE_OUT);
	else
		decide_turn(peer, session, args->action == CKT_CONTROL_GIVE_TURN);
}
