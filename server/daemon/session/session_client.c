/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that go on to the worker; see session.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/session_audit.h"

struct hand_over {
	bool is_new, is_lane, asks_for_images;
	uint32_t uid; /* the owner that the client would be */
	char job[CKT_JOB_NAME_MAX + 1];
	struct ckt_session_client client;
};

static void client_taken(struct ckt_session *session, void *context, int error, void *result)
{
	struct hand_over *hand_over = context;
	ckt_hello_status status = result ? *(ckt_hello_status *)result : CKT_HELLO_FAILED;
	/* The first connection of the same program is in the audit log. */
	if (!hand_over->is_lane || error || status != CKT_HELLO_OK)
		ckt_session_audit_client(session, &hand_over->client, status, error);
	if (error || status != CKT_HELLO_OK) {
		ckt_info("session %s: the worker did not accept its client: %s", session->id,
			error ? strerror(-error) : "refused");
		if (hand_over->is_new && session->phase == CKT_SESSION_LIVE)
			ckt_session_kill(session, "it has no client");
	} else if (session->unclaimed && hand_over->uid != CKT_UID_UNKNOWN) {
		/* The worker has checked the secret. */
		session->uid = hand_over->uid;
		session->unclaimed = false;
		ckt_session_tell_owner(session);
	}
	if (!error && status == CKT_HELLO_OK && hand_over->is_new)
		session->status.state = CKT_STATE_RUNNING;
	if (!error && status == CKT_HELLO_OK && hand_over->asks_for_images)
		ckt_automatic_ask(session);
	if (!error && status == CKT_HELLO_OK && *hand_over->job)
		strcpy(session->job, hand_over->job);
	free(hand_over);
}

static void memory_taken(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_debug("session %s: its worker did not accept its client's memory: %s",
			session->id, strerror(-error));
}

int ckt_session_host_memory(struct ckt_session *session, int fd)
{
	/* Calls over one connection are served in their order. */
	return fd < 0 ? 0
		      : ckt_session_call(session, CKT_WORKER_HOST_MEMORY, NULL, NULL, fd, NULL, 0,
				CKT_SESSION_CALL_TIMEOUT_MS, memory_taken, NULL);
}

int ckt_session_hand_over(struct ckt_session *session, uint32_t xid,
	const struct ckt_hello_args *hello, const struct ckt_auth_peer *peer, int fd, bool is_new)
{
	struct hand_over *hand_over = calloc(1, sizeof *hand_over);
	if (!hand_over) {
		close(fd);
		return -ENOMEM;
	}
	hand_over->is_new = is_new;
	hand_over->is_lane = hello->kind == CKT_HELLO_DATA;
	hand_over->asks_for_images = ckt_automatic_is_asked(hello);
	ckt_daemon_job_of_hello(hello, hand_over->job);
	hand_over->client.who = *peer;
	snprintf(hand_over->client.program, sizeof hand_over->client.program, "%s",
		hello->program_name);
	hand_over->uid = peer->uid;
	struct ckt_worker_client_args args = {
		.xid = xid, .hello = *hello, .peer_uid = peer->uid, .peer = (char *)peer->text};
	int result = ckt_session_call(session, CKT_WORKER_CLIENT,
		(xdrproc_t)xdr_ckt_worker_client_args, &args, fd, (xdrproc_t)xdr_ckt_hello_status,
		sizeof(ckt_hello_status), CKT_SESSION_CALL_TIMEOUT_MS, client_taken, hand_over);
	if (result)
		free(hand_over);
	return result;
}
