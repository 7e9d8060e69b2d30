/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: the call goes to the session's worker, which has all of the state.  Who may see the
 * session may trace it; see ckt_control_select.
 *
 * A page that the worker writes says what the peer has not read; it outlives the worker.  So a peer
 * that comes late is told how many records are gone.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "rpc/trace_page.h"
#include "rpc/worker.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/sealed_page.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

enum {
	TRACE_TIMEOUT_MS = 10000,
	/* Twice as many answers as a worker's ring fills. */
	DRAIN_MAX = 32,
};

/* The largest number that a double, which a reader of the file makes of it, holds exactly. */
#define COUNT_MAX (UINT64_C(1) << 53)

static void forget(struct ckt_peer *peer)
{
	if (peer->trace.page)
		munmap((void *)peer->trace.page, CKT_TRACE_PAGE_SIZE);
	peer->trace = (struct ckt_peer_trace){0};
}

/* The peer begins another trace.  The page's descriptor, for the worker; -1: there is none. */
static int begin(struct ckt_peer *peer)
{
	const void *page;
	forget(peer);
	peer->trace.begins = true;
	int fd = ckt_sealed_page_make("cricket-trace", CKT_TRACE_PAGE_SIZE, &page);
	if (fd < 0)
		ckt_debug("%s: no page for its trace: %s", peer->who.text, strerror(-fd));
	else
		peer->trace.page = page;
	return fd < 0 ? -1 : fd;
}

/* How many records of its trace the peer will never read. */
static uint64_t lost(struct ckt_peer *peer)
{
	uint64_t count =
		peer->trace.page ? __atomic_load_n(&peer->trace.page->unread, __ATOMIC_RELAXED) : 0;
	forget(peer);
	return count < COUNT_MAX ? count : COUNT_MAX;
}

static void refuse(struct ckt_peer *peer, const ckt_control_result *result)
{
	ckt_control_trace_res res = {
		.result = *result, .dropped = peer->trace.reads ? lost(peer) : 0};
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
	bool failed = error || from->status;
	if (failed && peer->trace.begins)
		forget(peer);
	if (failed && peer->trace.reads)
		res.dropped = lost(peer);
	if (error) {
		/* Workers of an earlier version close the connection. */
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker %d: %s", session->id, (int)session->pid,
			ckt_daemon_request_problem(error));
	} else if (from->status) {
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED, "session %s: %s",
			session->id, from->message);
	} else {
		if (peer->trace.begins) {
			peer->trace.number = from->trace;
			peer->trace.session = session->serial;
		}
		if (peer->trace.reads && peer->trace.stops && !from->more)
			forget(peer);
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
	bool live = session && session->phase == CKT_SESSION_LIVE;
	int fd = live && action == CKT_TRACE_ACTION_START ? begin(peer) : -1;
	peer->trace.begins = action == CKT_TRACE_ACTION_START;
	peer->trace.reads =
		!peer->trace.begins && peer->trace.number && args->trace == peer->trace.number;
	peer->trace.stops |= peer->trace.reads && action == CKT_TRACE_ACTION_STOP;
	if (!session) {
		refuse(peer, &result);
		return;
	}
	if (live &&
		!ckt_session_call(session, CKT_WORKER_TRACE, (xdrproc_t)xdr_ckt_worker_trace_args,
			&call, fd, (xdrproc_t)xdr_ckt_worker_trace_res,
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

/* ---- A peer that is gone without a STOP: at its end the worker must not wait for it */

static void drain(struct ckt_session *session, uint64_t number, uintptr_t times);

static void drained(struct ckt_session *session, void *context, int error, void *decoded)
{
	const struct ckt_worker_trace_res *from = decoded;
	if (!error && !from->status && from->more)
		drain(session, from->trace, (uintptr_t)context + 1);
}

static void drain(struct ckt_session *session, uint64_t number, uintptr_t times)
{
	ckt_worker_trace_args call = {.action = CKT_TRACE_ACTION_STOP, .trace = number};
	if (times < DRAIN_MAX && session->phase == CKT_SESSION_LIVE)
		ckt_session_call(session, CKT_WORKER_TRACE, (xdrproc_t)xdr_ckt_worker_trace_args,
			&call, -1, (xdrproc_t)xdr_ckt_worker_trace_res,
			sizeof(struct ckt_worker_trace_res), TRACE_TIMEOUT_MS, drained,
			(void *)times);
}

void ckt_control_trace_peer_gone(struct ckt_peer *peer)
{
	struct ckt_session *session = peer->trace.number ? peer->server->sessions : NULL;
	while (session && session->serial != peer->trace.session)
		session = session->next;
	if (session)
		drain(session, peer->trace.number, 0);
	forget(peer);
}
