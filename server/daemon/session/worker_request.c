/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to workers; see worker_request.h and session.h. */
#include "server/daemon/session/worker_request.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

enum { QUEUED_MAX = 1 << 20 };

static int reply_fd = -1; /* that came with the answer which is being delivered */

struct ckt_daemon_request {
	struct ckt_daemon_request *next;
	struct ckt_link *link;
	struct ckt_timer timer;
	uint32_t xid;
	xdrproc_t xdr_result;
	size_t result_size;
	ckt_request_done done;
	void *context;
	/* result_size bytes, allocated now: the reply then needs no memory that could be missing */
	max_align_t result[];
};

static void request_unlink(struct ckt_daemon_request *request)
{
	struct ckt_daemon_request **place = &request->link->requests;
	while (*place != request)
		place = &(*place)->next;
	*place = request->next;
	ckt_timer_clear(&request->timer);
}

static void request_end(struct ckt_daemon_request *request, int error, void *result)
{
	request_unlink(request);
	request->done(request->link->session, request->context, error, result);
	if (result)
		xdr_free(request->xdr_result, result);
	free(request);
}

static void request_late(struct ckt_timer *timer)
{
	/* A later reply finds no request and is dropped. */
	request_end(CKT_CONTAINER(timer, struct ckt_daemon_request, timer), -ETIMEDOUT, NULL);
}

static void link_fail(struct ckt_link *link, int error)
{
	while (link->requests)
		request_end(link->requests, error, NULL);
}

bool ckt_daemon_request_unread(struct ckt_session *session)
{
	for (int kind = 0; kind < CKT_LINKS; kind++) {
		struct ckt_link *link = &session->links[kind];
		if (link->requests && link->stream.source.fd >= 0 &&
			ckt_transport_wait(&link->stream.transport, CKT_TRANSPORT_READ, 0) > 0)
			return true;
	}
	return false;
}

void ckt_daemon_request_fail_all(struct ckt_session *session, int error)
{
	for (int kind = 0; kind < CKT_LINKS; kind++)
		link_fail(&session->links[kind], error);
}

static void link_closed(struct ckt_record_stream *stream, int error)
{
	struct ckt_link *link = CKT_CONTAINER(stream, struct ckt_link, stream);
	ckt_debug("session %s: the connection to the worker closed: %s", link->session->id,
		strerror(-error));
	ckt_record_stream_fini(stream);
	/* Either its death will be noticed soon, or the next call connects again. */
	link_fail(link, error ? error : -ECONNRESET);
}

void ckt_daemon_request_hang_up(struct ckt_session *session, enum ckt_link_kind kind, int error)
{
	struct ckt_link *link = &session->links[kind];
	ckt_record_stream_fini(&link->stream);
	link_fail(link, error);
}

static void link_record(struct ckt_record_stream *stream, uint8_t *data, size_t size, int passed_fd)
{
	struct ckt_link *link = CKT_CONTAINER(stream, struct ckt_link, stream);
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	reply_fd = passed_fd;
	bool good = ckt_reply_header_get(&c, &header);
	struct ckt_daemon_request *request = link->requests;
	while (good && request && request->xid != header.xid)
		request = request->next;
	if (good && request) {
		void *result = request->result_size ? request->result : NULL;
		int error = header.accept_stat ? -EPROTO : 0;
		if (!error && result)
			error = ckt_net_decode(&c, request->xdr_result, result);
		request_end(request, error, error ? NULL : result);
	} else if (!good) {
		ckt_warning("session %s: the worker sent a malformed reply", link->session->id);
		link_closed(stream, -EPROTO);
	}
	passed_fd = ckt_daemon_request_take_fd();
	if (passed_fd >= 0)
		close(passed_fd);
	free(data);
}

int ckt_daemon_request_take_fd(void)
{
	int fd = reply_fd;
	reply_fd = -1;
	return fd;
}

int ckt_daemon_request_connect(struct ckt_session *session, enum ckt_link_kind kind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ckt_link *link = &session->links[kind];
	if (link->stream.source.fd >= 0)
		return 0;
	size_t room = sizeof address.sun_path;
	if ((size_t)snprintf(address.sun_path, room, "%s/%s.sock", session->server->socket_dir,
		    session->id) >= room)
		return -ENAMETOOLONG;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int result = connect(fd, (struct sockaddr *)&address, sizeof address) ? -errno : 0;
	if (!result) {
		link->session = session;
		link->stream = (struct ckt_record_stream){.max_bytes = CKT_RECORD_MAX,
			.record = link_record,
			.closed = link_closed,
			.take_fds = kind == CKT_LINK_LONG};
		result = ckt_record_stream_init(&link->stream, &session->server->loop, fd);
	}
	if (result) {
		close(fd);
		link->stream.source.fd = -1;
	}
	return result;
}

/* Calls that take long, and those of leases, wait for no others. */
static enum ckt_link_kind link_of(const struct ckt_session *session, uint32_t proc)
{
	return proc == CKT_WORKER_LEASE_RECALL || proc == CKT_WORKER_LEASE_WAITED ||
			proc == CKT_WORKER_LEASE_PRESS || proc == CKT_WORKER_FENCE
		? CKT_LINK_LEASE
		: proc == CKT_WORKER_SAVE || proc == CKT_WORKER_SAVE2 ||
			proc == CKT_WORKER_RELEASE || proc == CKT_WORKER_PAUSE ||
			proc == CKT_WORKER_SWAP_OUT || proc == CKT_WORKER_SWAP_IN ||
			proc == CKT_WORKER_SWAP_YIELD || proc == CKT_WORKER_TOGETHER ||
			proc == CKT_WORKER_SWAP_FOLLOW || proc == CKT_WORKER_UNPAUSE ||
			proc == CKT_WORKER_QUIESCE || proc == CKT_WORKER_BASE ||
			proc == CKT_WORKER_SLEEP ||
			/* The files come before the save, or before the start. */
			(proc == CKT_WORKER_MEMORY && session->phase == CKT_SESSION_LIVE)
		? CKT_LINK_LONG
		: CKT_LINK_SHORT;
}

int ckt_session_call(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args, void *args,
	int pass_fd, xdrproc_t xdr_result, size_t result_size, int timeout_ms,
	ckt_request_done done, void *context)
{
	uint8_t *data = NULL;
	size_t size = 0;
	enum ckt_link_kind kind = link_of(session, proc);
	struct ckt_link *link = &session->links[kind];
	struct ckt_daemon_request *request = calloc(1, sizeof *request + result_size);
	int result = request ? ckt_daemon_request_connect(session, kind) : -ENOMEM;
	/*
	 * A worker that reads nothing must cost neither memory nor the descriptors that wait to be
	 * passed.
	 */
	if (!result && ckt_record_stream_queued(&link->stream) > QUEUED_MAX)
		result = -ETIMEDOUT;
	if (!result) {
		*request = (struct ckt_daemon_request){.link = link,
			.xid = ++session->next_xid,
			.xdr_result = xdr_result,
			.result_size = result_size,
			.done = done,
			.context = context};
		result = ckt_net_encode_call(
			request->xid, CRICKET_WORKER_PROG, proc, xdr_args, args, &data, &size);
	}
	if (result) {
		if (pass_fd >= 0)
			close(pass_fd);
	} else {
		result = ckt_record_stream_send(&link->stream, data, size, pass_fd);
	}
	if (result) {
		free(request);
		return result;
	}
	request->next = link->requests;
	link->requests = request;
	request->timer.fire = request_late;
	if (timeout_ms)
		ckt_timer_set(&session->server->loop, &request->timer, timeout_ms);
	return 0;
}
