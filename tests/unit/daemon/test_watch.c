/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/watch.c: what cricketctl top is told: counts, and sessions whose workers say
 * nothing or what is no answer.  tests/server/test_owners.py tries whose sessions are told.
 */
#include <string.h>
#include <unistd.h>

#include "inside.h"

static ckt_control_watch_res res;

static void ask(int fd, const char *after)
{
	ckt_control_list_args args = {.after = (char *)after};
	xdr_free((xdrproc_t)xdr_ckt_control_watch_res, (char *)&res);
	memset(&res, 0, sizeof res);
	YES(control(fd, CKT_CONTROL_WATCH, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_watch_res, &res));
}

/* A worker's status takes the place of what the session has: that is the heap's. */
static void own_status(struct ckt_session *session)
{
	session->status.program_name = strdup("program");
	session->status.client = strdup("");
	session->status.note = strdup("");
	session->status.session = strdup("");
}

static void drop(struct ckt_session *session)
{
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&session->status);
	session_drop(session);
}

static void test_counts(void)
{
	static const char a[] = "0000000000d1", b[] = "0000000000d2", c[] = "0000000000d3";
	struct ckt_session *one = session_new(a), *two = session_new(b), *starting = session_new(c);
	int fd = control_new();
	own_status(one);
	own_status(two);
	own_status(starting);
	starting->phase = CKT_SESSION_STARTING;
	strcpy(two->job, "mine");
	worker.transport = CKT_STAT_TRANSPORT "tcp";
	worker.lanes = 4;
	ask(fd, "");
	MUST(res.sessions.sessions_len, 3);
	ckt_control_watched *first = res.sessions.sessions_val;
	TEXT(first->session.session, a);
	TEXT(first->session.program_name, "program");
	TEXT(first->transport, "tcp");
	IS(first->lanes, 4);
	IS(first->calls, 77);
	IS(first->waits, 0);
	TEXT(first->job, "");
	/* A worker of an earlier version does not say which way the bytes went. */
	IS(first->received_bytes, -1);
	IS(first->sent_bytes, -1);
	IS(first->share_permille, -1);
	IS(first->swapped_bytes, -1);
	IS(first->waiting_ms, -1);
	IS(first->switches, -1);
	YES(strncmp(first->owner.name, "uid:", 4) == 0);
	TEXT(first[1].job, "mine");
	/* It has no worker that could be asked. */
	IS(first[2].session.state, CKT_STATE_STARTING);
	TEXT(first[2].transport, "");
	IS(first[2].calls, 0);
	NO(res.more);
	ask(fd, a);
	MUST(res.sessions.sessions_len, 2);
	TEXT(res.sessions.sessions_val[0].session.session, b);
	/* Rows that count no calls; a worker may say what it likes: it is cut off. */
	worker.transport = CKT_STAT_TRANSPORT "0123456789abcdefghij";
	ask(fd, a);
	TEXT(res.sessions.sessions_val[0].transport, "0123456789abcde");
	worker.transport = CKT_STAT_MODULE_HITS;
	worker.lanes = 1000;
	ask(fd, "");
	IS(res.sessions.sessions_val[0].calls, 77);
	TEXT(res.sessions.sessions_val[0].transport, "none");
	worker.transport = CKT_STAT_RECEIVED;
	ask(fd, "");
	IS(res.sessions.sessions_val[0].received_bytes, 0);
	IS(res.sessions.sessions_val[0].sent_bytes, -1);
	worker.garbage = true;
	ask(fd, "");
	MUST(res.sessions.sessions_len, 3);
	TEXT(res.sessions.sessions_val[0].transport, "");
	worker.garbage = false;
	worker.transport = NULL;
	worker.lanes = 0;
	*two->job = 0;
	starting->phase = CKT_SESSION_LIVE;
	ask(fd, c);
	IS(res.sessions.sessions_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_watch_res, (char *)&res);
	close(fd);
	drop(one);
	drop(two);
	drop(starting);
}

UNIT_SUITE(watch, {"counts", test_counts})
