/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/trace.c: a trace goes through to the session's worker. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

static char text[CKT_MESSAGE_MAX];
static ckt_control_trace_res res;

static ckt_control_status ask(int fd, uint32_t proc, const char *id, unsigned action)
{
	ckt_control_trace_args args = {
		.session = (char *)id, .action = (ckt_trace_action)action, .trace = 9};
	xdr_free((xdrproc_t)xdr_ckt_control_trace_res, (char *)&res);
	memset(&res, 0, sizeof res);
	YES(control(fd, proc, (xdrproc_t)xdr_ckt_control_trace_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_trace_res, &res));
	snprintf(text, sizeof text, "%.500s", res.result.message);
	return res.result.status;
}

static void test_through(void)
{
	static const char id[] = "0000000000d1";
	struct ckt_session *session = session_new(id);
	int fd = control_new();
	worker.traced = 3;
	IS(ask(fd, CKT_CONTROL_TRACE, id, CKT_TRACE_ACTION_START), CKT_CONTROL_OK);
	IS(worker.trace.action, CKT_TRACE_ACTION_START);
	IS(ask(fd, CKT_CONTROL_TRACE_READ, id, CKT_TRACE_ACTION_STOP), CKT_CONTROL_OK);
	/* A call that the audit log does not tell can only read. */
	IS(worker.trace.action, CKT_TRACE_ACTION_READ);
	IS(worker.trace.trace, 9);
	IS(res.calls.calls_len, 3);
	TEXT(res.calls.calls_val[2].name, "call");
	TEXT(res.calls.calls_val[2].kernel, "kernel");
	IS(res.calls.calls_val[2].bytes, 2);
	IS(res.dropped, 5);
	YES(res.more);
	/* And the other one cannot read. */
	IS(ask(fd, CKT_CONTROL_TRACE, id, CKT_TRACE_ACTION_READ), CKT_CONTROL_OK);
	IS(worker.trace.action, CKT_TRACE_ACTION_STOP);
	IS(ask(fd, CKT_CONTROL_TRACE, id, 77), CKT_CONTROL_OK);
	IS(worker.trace.action, CKT_TRACE_ACTION_STOP);
	worker.status = -EBUSY;
	worker.message = "traced already";
	IS(ask(fd, CKT_CONTROL_TRACE, id, CKT_TRACE_ACTION_START), CKT_CONTROL_REFUSED);
	HAS(text, "traced already");
	IS(res.calls.calls_len, 0);
	worker.status = 0;
	worker.message = NULL;
	close(fd);
	session_drop(session);
}

static void test_refused(void)
{
	static const char id[] = "0000000000d2";
	struct ckt_session *session = session_new(id);
	int fd = control_new();
	IS(ask(fd, CKT_CONTROL_TRACE, "0000000000ff", 0), CKT_CONTROL_NO_SESSION);
	IS(ask(fd, CKT_CONTROL_TRACE, "", 0), CKT_CONTROL_NO_SESSION);
	session->phase = CKT_SESSION_STARTING;
	IS(ask(fd, CKT_CONTROL_TRACE, id, 0), CKT_CONTROL_REFUSED);
	HAS(text, "is not running");
	session->phase = CKT_SESSION_LIVE;
	/* A worker that sends what is no answer. */
	worker.garbage = true;
	IS(ask(fd, CKT_CONTROL_TRACE, id, 0), CKT_CONTROL_REFUSED);
	worker.garbage = false;
	close(fd);
	session_drop(session);
}

UNIT_SUITE(trace, {"to the worker", test_through}, {"refused", test_refused})
