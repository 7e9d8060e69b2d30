/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to workers that may take as long as they make progress; see worker_request.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/session/worker_request.h"
#include "base/log.h"

enum {
	GRACE_MS = 1000, /* for the reply, beyond the worker's own deadline */
	LOOK_MS = 1000,
	/* The worker answers PROGRESS without waiting, but its machine may stand still for a while. */
	ANSWER_MS = 1000,
	SILENT_MAX = 3,    /* questions in a row */
	STALL_MS = 600000, /* fsync, which waits for the disk, moves no bytes that anybody counts */
};

struct long_call {
	struct ckt_session *session;
	struct ckt_timer timer;
	bool ended, asking;
	char phase[CKT_NAME_MAX + 1];
	uint64_t done_bytes;
	int64_t moved_ms; /* when its last progress was seen */
	unsigned silent;  /* since it last answered */
	ckt_request_done done;
	void *context;
};

static void call_free(struct long_call *call)
{
	if (call->ended && !call->asking)
		free(call);
}

static void call_done(struct ckt_session *session, void *context, int error, void *result)
{
	struct long_call *call = context;
	ckt_timer_clear(&call->timer);
	call->ended = true;
	call->done(session, call->context, error, result);
	call_free(call);
}

static void give_up(struct long_call *call, int error, const char *why)
{
	ckt_warning("session %s: worker %d %s: giving up", call->session->id,
		(int)call->session->pid, why);
	/* The connection's end tells the worker, whenever it looks, that nobody waits any more. */
	ckt_daemon_request_hang_up(call->session, CKT_LINK_LONG, error);
}

static void looked(struct ckt_session *session, void *context, int error, void *result)
{
	struct long_call *call = context;
	const struct ckt_worker_progress_res *progress = result;
	int64_t now = ckt_net_now_ms();
	(void)session;
	call->asking = false;
	if (call->ended) {
		call_free(call);
		return;
	}
	if (error == -ETIMEDOUT && ++call->silent < SILENT_MAX) {
		ckt_timer_set(&call->session->server->loop, &call->timer, LOOK_MS);
		return;
	}
	if (error) {
		/* A worker that has died does not hang. */
		give_up(call, error, error == -ETIMEDOUT ? "does not answer" : "cannot be reached");
		return;
	}
	call->silent = 0;
	if (strcmp(call->phase, progress->phase) != 0 || call->done_bytes != progress->done_bytes) {
		snprintf(call->phase, sizeof call->phase, "%s", progress->phase);
		call->done_bytes = progress->done_bytes;
		call->moved_ms = now;
	}
	if (now - call->moved_ms > STALL_MS)
		give_up(call, -ETIMEDOUT, "makes no progress");
	else
		ckt_timer_set(&call->session->server->loop, &call->timer, LOOK_MS);
}

static void look(struct ckt_timer *timer)
{
	struct long_call *call = CKT_CONTAINER(timer, struct long_call, timer);
	call->asking = true;
	int error = ckt_session_call(call->session, CKT_WORKER_PROGRESS, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_progress_res, sizeof(struct ckt_worker_progress_res),
		ANSWER_MS, looked, call);
	if (error)
		looked(call->session, call, error, NULL);
}

int ckt_session_call_long(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, unsigned deadline_ms,
	ckt_request_done done, void *context)
{
	struct long_call *call = calloc(1, sizeof *call);
	if (!call) {
		if (pass_fd >= 0)
			close(pass_fd);
		return -ENOMEM;
	}
	*call = (struct long_call){.session = session,
		.done = done,
		.context = context,
		.timer = {.fire = look},
		.moved_ms = ckt_net_now_ms() + deadline_ms};
	int result = ckt_session_call(session, proc, xdr_args, args, pass_fd, xdr_result,
		result_size, 0, call_done, call);
	if (result)
		free(call);
	else
		ckt_timer_set(
			&session->server->loop, &call->timer, (int64_t)deadline_ms + GRACE_MS);
	return result;
}

const char *ckt_daemon_request_problem(int error)
{
	return error == -ETIMEDOUT
		? "the worker does not answer: its process is stopped or hangs; let it "
		  "continue, or end the session with cricketctl kill"
		: strerror(-error);
}
