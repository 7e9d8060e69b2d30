/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/connections.c: what the workers say.  tests/server/test_owners.py
 * tries whose sessions are told.
 */
#include <string.h>
#include <unistd.h>

#include "inside.h"

static ckt_control_connections_res res;

static void ask(int fd, const char *after)
{
	ckt_control_list_args args = {.after = (char *)after};
	xdr_free((xdrproc_t)xdr_ckt_control_connections_res, (char *)&res);
	memset(&res, 0, sizeof res);
	YES(control(fd, CKT_CONTROL_CONNECTIONS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_connections_res, &res));
}

static void test_told(void)
{
	static const char a[] = "0000000000c1", b[] = "0000000000c2", c[] = "0000000000c3";
	struct ckt_session *one = session_new(a), *two = session_new(b), *starting = session_new(c);
	int fd = control_new();
	starting->phase = CKT_SESSION_STARTING;
	worker.transport = CKT_STAT_TRANSPORT "tcp";
	worker.lanes = 4;
	ask(fd, "");
	MUST(res.sessions.sessions_len, 2);
	TEXT(res.sessions.sessions_val[0].session, a);
	TEXT(res.sessions.sessions_val[1].session, b);
	TEXT(res.sessions.sessions_val[0].transport, "tcp");
	IS(res.sessions.sessions_val[0].lanes, 4);
	NO(res.more);
	ask(fd, a);
	MUST(res.sessions.sessions_len, 1);
	TEXT(res.sessions.sessions_val[0].session, b);
	/* A worker may say what it likes: it is cut off. */
	worker.transport = CKT_STAT_TRANSPORT "0123456789abcdefghij";
	ask(fd, a);
	MUST(res.sessions.sessions_len, 1);
	TEXT(res.sessions.sessions_val[0].transport, "0123456789abcde");
	/* An earlier one says nothing, or what is no answer. */
	worker.transport = "send";
	ask(fd, "");
	IS(res.sessions.sessions_len, 0);
	worker.garbage = true;
	ask(fd, "");
	IS(res.sessions.sessions_len, 0);
	worker.garbage = false;
	worker.transport = NULL;
	starting->phase = CKT_SESSION_LIVE;
	close(fd);
	session_drop(one);
	session_drop(two);
	session_drop(starting);
}

UNIT_SUITE(connections, {"told", test_told})
