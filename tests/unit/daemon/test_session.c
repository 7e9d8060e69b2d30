/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/session.c and session_end.c: who waits for sessions, and their end. */
#include <errno.h>

#include "inside.h"

static unsigned told;
static int told_error;

static void tell(struct ckt_session *session, void *context, int error, const char *message)
{
	(void)session, (void)context, (void)message;
	told++;
	told_error = error;
}

static void test_waiting(void)
{
	struct ckt_session *session = session_new("0000000000d1");
	YES(ckt_session_find(&server, "0000000000d1") == session);
	CU_ASSERT_PTR_NULL(ckt_session_find(&server, "0000000000d"));
	CU_ASSERT_PTR_NULL(ckt_session_find(&server, ""));
	told = 0;
	IS(ckt_session_wait_started(session, tell, NULL), 0);
	IS(told, 1); /* at once: it lives */
	IS(told_error, 0);
	ckt_session_kill(session, "a test");
	IS(session->phase, CKT_SESSION_ENDING);
	YES(session->timer.link != NULL);
	ckt_session_kill(session, "a test");
	ckt_session_expect_end(session);
	run_for(20);
	IS(worker.calls[CKT_WORKER_KILL], 1); /* asked once */
	IS(ckt_session_wait_started(session, tell, NULL), -ESRCH);
	IS(told, 1);
	session_drop(session);
	/* One that ends by itself is not asked. */
	session = session_new("0000000000d2");
	ckt_session_expect_end(session);
	run_for(20);
	IS(session->phase, CKT_SESSION_ENDING);
	IS(worker.calls[CKT_WORKER_KILL], 0);
	session_drop(session);
}

UNIT_SUITE(session, {"waiting", test_waiting})
