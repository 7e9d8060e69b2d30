/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/trace.c: a trace goes through to the session's worker. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/trace_page.h"

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
	worker.traced_more = 3;
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

/* The trace that the last START began, and the page of its worker. */
static struct ckt_trace_page *begin(int fd, const char *id)
{
	worker.trace_page = -1;
	worker.traced = 1;
	IS(ask(fd, CKT_CONTROL_TRACE, id, CKT_TRACE_ACTION_START), CKT_CONTROL_OK);
	void *page = mmap(NULL, CKT_TRACE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		worker.trace_page, 0);
	close(worker.trace_page);
	worker.trace_page = 0;
	if (page == MAP_FAILED)
		abort();
	return page;
}

/* What was not read when the session ended is told once, to who reads that trace. */
static void test_lost(void)
{
	static const char id[] = "0000000000d3";
	struct ckt_session *session = session_new(id);
	int fd = control_new(), other = control_new();
	struct ckt_trace_page *page = begin(fd, id);
	page->unread = 7;
	IS(ask(fd, CKT_CONTROL_TRACE_READ, id, 0), CKT_CONTROL_OK);
	IS(res.dropped, 5);
	/* Not that: it is refused before it reaches the worker. */
	IS(ask(other, CKT_CONTROL_TRACE_READ, "0000000000ff", 0), CKT_CONTROL_NO_SESSION);
	IS(res.dropped, 0);
	session_drop(session);
	IS(ask(other, CKT_CONTROL_TRACE_READ, id, 0), CKT_CONTROL_NO_SESSION);
	IS(res.dropped, 0);
	IS(ask(fd, CKT_CONTROL_TRACE_READ, id, 0), CKT_CONTROL_NO_SESSION);
	IS(res.dropped, 7);
	IS(ask(fd, CKT_CONTROL_TRACE_READ, id, 0), CKT_CONTROL_NO_SESSION);
	IS(res.dropped, 0);
	munmap(page, CKT_TRACE_PAGE_SIZE);
	/* The worker ended the trace, and lies. */
	session = session_new(id);
	page = begin(fd, id);
	page->unread = UINT64_MAX;
	worker.status = -ESRCH;
	IS(ask(fd, CKT_CONTROL_TRACE_READ, id, 0), CKT_CONTROL_REFUSED);
	IS(res.dropped, UINT64_C(1) << 53);
	munmap(page, CKT_TRACE_PAGE_SIZE);
	worker.status = 0;
	/* A trace that does not begin has none. */
	worker.status = -EBUSY;
	IS(ask(fd, CKT_CONTROL_TRACE, id, CKT_TRACE_ACTION_START), CKT_CONTROL_REFUSED);
	IS(res.dropped, 0);
	worker.status = 0;
	close(fd);
	close(other);
	run_for(3);
	session_drop(session);
}

/* Who goes without a STOP is not waited for at the end: all of it is taken out of the worker. */
static void test_gone(void)
{
	static const char id[] = "0000000000d4";
	struct ckt_session *session = session_new(id);
	int fd = control_new();
	munmap(begin(fd, id), CKT_TRACE_PAGE_SIZE);
	unsigned before = worker.calls[CKT_WORKER_TRACE % 64];
	worker.traced_more = 2;
	close(fd);
	run_for(20);
	IS(worker.calls[CKT_WORKER_TRACE % 64] - before, 3);
	IS(worker.trace.action, CKT_TRACE_ACTION_STOP);
	IS(worker.trace.trace, 9);
	/* A worker that says for ever that there is more. */
	fd = control_new();
	munmap(begin(fd, id), CKT_TRACE_PAGE_SIZE);
	before = worker.calls[CKT_WORKER_TRACE % 64];
	worker.traced_more = 1000;
	close(fd);
	run_for(20);
	IS(worker.calls[CKT_WORKER_TRACE % 64] - before, 32);
	/* Who has stopped it has read it. */
	worker.traced_more = 0;
	fd = control_new();
	munmap(begin(fd, id), CKT_TRACE_PAGE_SIZE);
	IS(ask(fd, CKT_CONTROL_TRACE, id, CKT_TRACE_ACTION_STOP), CKT_CONTROL_OK);
	before = worker.calls[CKT_WORKER_TRACE % 64];
	close(fd);
	run_for(20);
	IS(worker.calls[CKT_WORKER_TRACE % 64], before);
	session_drop(session);
}

UNIT_SUITE(trace, {"to the worker", test_through}, {"refused", test_refused}, {"lost", test_lost},
	{"gone", test_gone})
