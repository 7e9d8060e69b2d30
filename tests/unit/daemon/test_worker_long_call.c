/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/worker_long_call.c: calls without a fixed end, of workers that answer, that
 * come on, and that do neither.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/worker_request.h"

static struct {
	unsigned times;
	int error;
} answered;

static void note(struct ckt_session *session, void *context, int error, void *result)
{
	(void)session, (void)context, (void)result;
	answered.times++;
	answered.error = error;
}

static bool is_answered(void *data)
{
	(void)data;
	return answered.times > 0;
}

static int begin(struct ckt_session *session, int pass_fd)
{
	struct ckt_worker_pause_args args = {.deadline_ms = 1};
	memset(&answered, 0, sizeof answered);
	return ckt_session_call_long(session, CKT_WORKER_PAUSE,
		(xdrproc_t)xdr_ckt_worker_pause_args, &args, pass_fd,
		(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
		args.deadline_ms, note, NULL);
}

static void test_answers(void)
{
	struct ckt_session *session = session_new("0000000000c1");
	MUST(begin(session, -1), 0);
	YES(run_until(is_answered, NULL));
	IS(answered.error, 0);
	/* Nothing is asked once it is answered. */
	run_for(1100);
	IS(answered.times, 1);
	IS(worker.calls[CKT_WORKER_PROGRESS], 0);
	session_drop(session);
}

static void test_silent(void)
{
	struct ckt_session *session = session_new("0000000000c1");
	worker.silent = true;
	MUST(begin(session, -1), 0);
	YES(run_until(is_answered, NULL));
	IS(answered.error, -ETIMEDOUT);
	IS(worker.calls[CKT_WORKER_PROGRESS], 3);
	/* The worker is to see that nobody waits, and the next call connects again. */
	IS(session->links[CKT_LINK_LONG].stream.source.fd, -1);
	worker.silent = false;
	MUST(begin(session, -1), 0);
	YES(run_until(is_answered, NULL));
	IS(answered.error, 0);
	session_drop(session);
}

/* Its machine stood still for a while: that is no end. */
static void test_answers_late(void)
{
	struct ckt_session *session = session_new("0000000000c1");
	MUST(begin(session, -1), 0);
	worker.silent = true;
	for (int round = 1; round <= 2; round++) {
		unsigned asked = worker.calls[CKT_WORKER_PROGRESS];
		for (int i = 0; i < 30000 && worker.calls[CKT_WORKER_PROGRESS] < asked + 2; i++)
			run_for(2);
		worker.silent = false;
		worker.silent_on = CKT_WORKER_PAUSE;
		for (int i = 0; i < 30000 && worker.calls[CKT_WORKER_PROGRESS] < asked + 4; i++)
			run_for(2);
		IS(worker.calls[CKT_WORKER_PROGRESS], asked + 4);
		IS(answered.times, 0);
		worker.silent = true;
	}
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	IS(answered.times, 1);
	worker.silent = false;
	worker.silent_on = 0;
	session_drop(session);
}

static void test_comes_on(void)
{
	struct ckt_session *session = session_new("0000000000c1");
	worker.silent_on = CKT_WORKER_PAUSE;
	MUST(begin(session, -1), 0);
	for (int i = 0; i < 30000 && worker.calls[CKT_WORKER_PROGRESS] < 2; i++)
		run_for(2);
	YES(worker.calls[CKT_WORKER_PROGRESS] >= 2);
	IS(answered.times, 0);
	/* Its worker dies. */
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	IS(answered.times, 1);
	IS(answered.error, -ECONNRESET);
	/* And in the middle of a question: that it died is said, not that it hangs. */
	MUST(begin(session, -1), 0);
	worker.calls[CKT_WORKER_PROGRESS] = 0;
	run_for(0);
	worker.silent_on = CKT_WORKER_PROGRESS;
	for (int i = 0; i < 30000 && !worker.calls[CKT_WORKER_PROGRESS]; i++)
		run_for(2);
	IS(worker.calls[CKT_WORKER_PROGRESS], 1);
	IS(answered.times, 0);
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	IS(answered.times, 1);
	IS(answered.error, -ECONNRESET);
	worker.silent_on = 0;
	session_drop(session);
}

static void test_problem(void)
{
	HAS(ckt_daemon_request_problem(-ETIMEDOUT), "does not answer");
	HAS(ckt_daemon_request_problem(-ETIMEDOUT), "cricketctl kill");
	TEXT(ckt_daemon_request_problem(-ECONNRESET), strerror(ECONNRESET));
}

UNIT_SUITE(long_call, {"answers", test_answers}, {"silent", test_silent},
	{"answers late", test_answers_late}, {"comes on", test_comes_on}, {"problem", test_problem})
