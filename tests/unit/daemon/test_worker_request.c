/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/worker_request.c: calls to workers: each is answered once, whatever the
 * worker does, and its descriptor is never left open.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/session_parts.h"
#include "server/daemon/session/worker_request.h"

static struct {
	unsigned count;
	int error, status;
	uint64_t bytes;
} answer;

static void done(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_worker_result *res = result;
	(void)session;
	YES(context == &answer);
	answer.count++;
	answer.error = error;
	answer.status = res ? res->status : 0;
	answer.bytes = res ? res->bytes : 0;
}

static bool answered(void *data)
{
	return answer.count >= *(unsigned *)data;
}

static int call(struct ckt_session *session, uint32_t proc, int pass_fd, int timeout_ms)
{
	return ckt_session_call(session, proc, NULL, NULL, pass_fd,
		(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result), timeout_ms,
		done, &answer);
}

static void test_answers(void)
{
	static const struct {
		struct fake_worker worker;
		int timeout_ms, error, status;
	} cases[] = {
		{{.status = 0, .bytes = 5}, 0, 0, 0},
		{{.status = -ENOMEM, .bytes = 7, .message = "no"}, 0, 0, -ENOMEM},
		{{.accept_stat = 3}, 0, -EPROTO, 0},
		{{.garbage = true}, 0, -EPROTO, 0},
		{{.hang_up = true}, 0, -ECONNRESET, 0},
		{{.silent = true}, 20, -ETIMEDOUT, 0},
	};
	struct ckt_session *session = session_new("0000000000a1");
	unsigned one = 1;
	for (size_t i = 0; i < COUNT(cases); i++) {
		answer.count = 0;
		worker = cases[i].worker;
		IS(call(session, CKT_WORKER_UNPAUSE, -1, cases[i].timeout_ms), 0);
		IS(answer.count, 0); /* never from within */
		YES(run_until(answered, &one));
		IS(answer.error, cases[i].error);
		IS(answer.status, cases[i].status);
		IS(answer.bytes, cases[i].worker.bytes);
		run_for(5);
		IS(answer.count, 1);
	}
	/* A worker that closed is connected to again by the next call. */
	worker = (struct fake_worker){.bytes = 11};
	answer.count = 0;
	IS(call(session, CKT_WORKER_UNPAUSE, -1, 0), 0);
	YES(run_until(answered, &one));
	IS(answer.bytes, 11);
	session_drop(session);
}

static void test_links(void)
{
	struct ckt_session *session = session_new("0000000000a2");
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned two = 2, three = 3;
	answer.count = 0;
	/* What takes long goes by a connection of its own. */
	IS(call(session, CKT_WORKER_SAVE, fd, 0), 0);
	YES(session->links[CKT_LINK_LONG].stream.source.fd >= 0);
	IS(session->links[CKT_LINK_SHORT].stream.source.fd, -1);
	IS(call(session, CKT_WORKER_KILL, -1, 0), 0);
	YES(session->links[CKT_LINK_SHORT].stream.source.fd >= 0);
	YES(run_until(answered, &two));
	IS(worker.descriptors, 1);
	IS(worker.calls[CKT_WORKER_SAVE], 1);
	struct stat st;
	/* closed here; its number may be another's by now */
	YES(fstat(fd, &st) || !S_ISCHR(st.st_mode));
	/* All who wait are told of the end. */
	worker.silent = true;
	answer.count = 0;
	for (int i = 0; i < 3; i++)
		IS(call(session, i ? CKT_WORKER_PAUSE : CKT_WORKER_KILL, -1, 0), 0);
	ckt_daemon_request_fail_all(session, -EIO);
	IS(answer.count, 3);
	IS(answer.error, -EIO);
	run_for(5);
	YES(answered(&three) && answer.count == 3);
	session_drop(session);
}

static void test_unreachable(void)
{
	struct ckt_session *session = session_new("0000000000a3");
	char kept[CKT_PATH_MAX];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	snprintf(kept, sizeof kept, "%s", server.socket_dir);
	answer.count = 0;
	snprintf(server.socket_dir, sizeof server.socket_dir, "/nowhere");
	IS(call(session, CKT_WORKER_SAVE, fd, 0), -ENOENT);
	IS(fcntl(fd, F_GETFD), -1); /* gone all the same */
	snprintf(server.socket_dir, sizeof server.socket_dir, "/%0200d", 0);
	IS(call(session, CKT_WORKER_SAVE, -1, 0), -ENAMETOOLONG);
	IS(answer.count, 0);
	snprintf(server.socket_dir, sizeof server.socket_dir, "%s", kept);
	session_drop(session);
}

/* A worker that answers two calls and ends. */
static void answer_and_end(int listening)
{
	struct ckt_worker_result result = {.message = (char *)"", .bytes = 3};
	int fd = accept(listening, NULL, NULL);
	uint8_t *data;
	size_t size;
	for (int i = 0; i < 2; i++) {
		struct ckt_call_header header = {0};
		if (ckt_net_read_record(fd, CKT_RECORD_MAX, -1, &data, &size, NULL))
			_exit(1);
		struct ckt_cursor c = {.p = data, .end = data + size};
		ckt_call_header_get(&c, &header);
		if (ckt_net_encode_reply(header.xid, 0, (xdrproc_t)xdr_ckt_worker_result, &result,
			    &data, &size) ||
			ckt_net_write_record(fd, data, size, -1, -1))
			_exit(1);
	}
	_exit(0);
}

static bool is_gone(void *data)
{
	return !ckt_session_find(&server, data);
}

/* Both replies and the worker's death are there before the loop looks: the replies come first. */
static void test_last_replies(void)
{
	char id[] = "0000000000a4";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ckt_session *session = ckt_session_new(&server, id);
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%.80s/%s.sock", server.socket_dir, id);
	MUST(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
	MUST(listen(listening, 1), 0);
	session->phase = CKT_SESSION_LIVE;
	session->child = true;
	ckt_session_insert(session);
	server.session_count++;
	pid_t child = fork();
	if (child == 0)
		answer_and_end(listening);
	close(listening);
	answer.count = 0;
	IS(call(session, CKT_WORKER_UNPAUSE, -1, 0), 0);
	IS(call(session, CKT_WORKER_UNPAUSE, -1, 0), 0);
	MUST(ckt_session_watch_worker(session, child), 0);
	struct pollfd dead = {.fd = session->pidfd.fd, .events = POLLIN};
	IS(poll(&dead, 1, 60000), 1);
	YES(run_until(is_gone, id));
	IS(answer.count, 2);
	IS(answer.error, 0);
	IS(answer.bytes, 3);
}

UNIT_SUITE(request, {"answers", test_answers}, {"links", test_links},
	{"unreachable", test_unreachable}, {"last replies", test_last_replies})
