/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/pause.c: pauses by call: the mark that a later server goes by, the time at
 * which a session goes on, and memory that is missing then.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/pause.h"

static ckt_control_status call(
	int fd, uint32_t proc, const char *id, int64_t until, uint64_t *ret_bytes, char *ret_text)
{
	ckt_control_pause_args pause = {.session = (char *)id, .deadline_ms = 1000, .until = until};
	ckt_control_session_args unpause = {.session = (char *)id};
	ckt_control_bytes_res res = {0};
	bool is_pause = proc == CKT_CONTROL_PAUSE;
	YES(control(fd, proc,
		is_pause ? (xdrproc_t)xdr_ckt_control_pause_args
			 : (xdrproc_t)xdr_ckt_control_session_args,
		is_pause ? (void *)&pause : (void *)&unpause, -1,
		(xdrproc_t)xdr_ckt_control_bytes_res, &res));
	ckt_control_status status = res.result.status;
	*ret_bytes = res.bytes;
	snprintf(ret_text, 256, "%.255s", res.result.message);
	xdr_free((xdrproc_t)xdr_ckt_control_bytes_res, (char *)&res);
	return status;
}

static bool marked(const char *id, char *ret_text)
{
	uint32_t owner;
	return ckt_session_mark_read(&server, id, CKT_MARK_PAUSED, &owner, ret_text, 64);
}

static void test_calls(void)
{
	static const char id[] = "0000000000a9";
	struct ckt_session *session = session_new(id);
	char text[256], mark[64];
	uint64_t bytes;
	int fd = control_new();
	worker.bytes = 4096;
	/* any prefix that is unique */
	IS(call(fd, CKT_CONTROL_PAUSE, "0000000000a", 0, &bytes, text), CKT_CONTROL_OK);
	IS(bytes, 4096);
	YES(marked(id, mark));
	TEXT(mark, "0");
	CU_ASSERT_PTR_NULL(session->pause_timer.link);
	IS(call(fd, CKT_CONTROL_UNPAUSE, id, 0, &bytes, text), CKT_CONTROL_OK);
	NO(marked(id, mark));
	/* The worker refuses: nothing is left that says paused. */
	worker.status = -EBUSY;
	worker.message = "a kernel does not finish";
	IS(call(fd, CKT_CONTROL_PAUSE, id, 0, &bytes, text), CKT_CONTROL_REFUSED);
	HAS(text, "a kernel does not finish");
	NO(marked(id, mark));
	worker.status = 0;
	IS(call(fd, CKT_CONTROL_PAUSE, id, time(NULL) + 1000, &bytes, text), CKT_CONTROL_OK);
	YES(session->pause_timer.link != NULL);
	worker.status = -ENOMEM;
	IS(call(fd, CKT_CONTROL_UNPAUSE, id, 0, &bytes, text), CKT_CONTROL_REFUSED);
	HAS(text, "stays paused: the GPU lacks 4096 bytes of free memory");
	IS(bytes, 4096);
	YES(marked(id, mark));
	worker.status = 0;
	IS(call(fd, CKT_CONTROL_UNPAUSE, id, 0, &bytes, text), CKT_CONTROL_OK);
	CU_ASSERT_PTR_NULL(session->pause_timer.link);
	/* Sessions that are not there, or not free to. */
	IS(call(fd, CKT_CONTROL_PAUSE, "ffff", 0, &bytes, text), CKT_CONTROL_NO_SESSION);
	IS(call(fd, CKT_CONTROL_PAUSE, "", 0, &bytes, text), CKT_CONTROL_NO_SESSION);
	struct ckt_session *other = session_new("0000000000aa");
	IS(call(fd, CKT_CONTROL_PAUSE, "0000000000a", 0, &bytes, text), CKT_CONTROL_AMBIGUOUS);
	session_drop(other);
	session->phase = CKT_SESSION_ENDING;
	IS(call(fd, CKT_CONTROL_PAUSE, id, 0, &bytes, text), CKT_CONTROL_REFUSED);
	HAS(text, "try again");
	session->phase = CKT_SESSION_LIVE;
	close(fd);
	run_for(3);
	session_drop(session);
}

static bool went_on(void *data)
{
	char mark[64];
	return !marked(data, mark);
}

static void test_time(void)
{
	char id[] = "0000000000ab", text[256], mark[64];
	struct ckt_session *session = session_new(id);
	uint64_t bytes;
	int fd = control_new();
	/*
	 * Its time is over already: it goes on at once, and where there is no memory it is tried
	 * again.
	 */
	IS(call(fd, CKT_CONTROL_PAUSE, id, time(NULL) - 5, &bytes, text), CKT_CONTROL_OK);
	YES(run_until(went_on, id));
	IS(worker.calls[CKT_WORKER_UNPAUSE], 1);
	worker.status = 0;
	IS(call(fd, CKT_CONTROL_PAUSE, id, time(NULL) + 1000, &bytes, text), CKT_CONTROL_OK);
	worker.status = -ENOMEM;
	ckt_timer_set(&server.loop, &session->pause_timer, 0);
	unsigned before = worker.calls[CKT_WORKER_UNPAUSE];
	for (int i = 0; i < 30000 && worker.calls[CKT_WORKER_UNPAUSE] == before; i++)
		run_for(2);
	run_for(20);
	YES(marked(id, mark));
	YES(session->pause_timer.link != NULL); /* again */
	worker.status = 0;
	ckt_timer_set(&server.loop, &session->pause_timer, 0);
	YES(run_until(went_on, id));
	/* A server started again goes by the mark. */
	IS(ckt_session_mark_write(&server, id, CKT_MARK_PAUSED, geteuid(), true, "0"), 0);
	ckt_daemon_pause_adopt(session);
	CU_ASSERT_PTR_NULL(session->pause_timer.link);
	IS(ckt_session_mark_write(&server, id, CKT_MARK_PAUSED, geteuid(), true, "1"), 0);
	ckt_daemon_pause_adopt(session);
	YES(run_until(went_on, id));
	ckt_daemon_pause_adopt(session); /* without one nothing happens */
	CU_ASSERT_PTR_NULL(session->pause_timer.link);
	close(fd);
	run_for(3);
	session_drop(session);
}

static void test_progress(void)
{
	struct ckt_session *session = session_new("0000000000ac");
	ckt_control_session_args args = {.session = session->id};
	ckt_control_progress_res res = {0};
	int fd = control_new();
	worker.bytes = 77;
	YES(control(fd, CKT_CONTROL_PROGRESS, (xdrproc_t)xdr_ckt_control_session_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_progress_res, &res));
	IS(res.result.status, CKT_CONTROL_OK);
	TEXT(res.phase, "save");
	IS(res.total_bytes, 77);
	xdr_free((xdrproc_t)xdr_ckt_control_progress_res, (char *)&res);
	/* Nobody is being restored. */
	memset(&res, 0, sizeof res);
	args.session = (char *)"";
	YES(control(fd, CKT_CONTROL_PROGRESS, (xdrproc_t)xdr_ckt_control_session_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_progress_res, &res));
	IS(res.result.status, CKT_CONTROL_OK);
	TEXT(res.phase, "");
	xdr_free((xdrproc_t)xdr_ckt_control_progress_res, (char *)&res);
	close(fd);
	run_for(3);
	session_drop(session);
}

UNIT_SUITE(pause, {"calls", test_calls}, {"time", test_time}, {"progress", test_progress})
