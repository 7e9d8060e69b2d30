/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/replace.c: whom a server gives its sockets, when, and what happens if nobody takes
 * them.  tests/server/test_replace.py has the successor.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/net.h"
#include "server/daemon/peer/replace.h"

static char text[CKT_MESSAGE_MAX];

/* Asks with that end of a pair; 0 or the status, with the reason in text. */
static int ask(int fd, int channel)
{
	ckt_control_result res = {0};
	YES(control(fd, CKT_CONTROL_REPLACE, NULL, NULL, channel, (xdrproc_t)xdr_ckt_control_result,
		&res));
	snprintf(text, sizeof text, "%.500s", res.message);
	int status = (int)res.status;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return status;
}

static void pair(int type, int ends[2])
{
	MUST(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
}

static void test_refused(void)
{
	int ends[2], fd = control_new();
	IS(ask(fd, -1), CKT_CONTROL_REFUSED);
	HAS(text, "no channel");
	pair(SOCK_STREAM, ends);
	IS(ask(fd, ends[1]), CKT_CONTROL_REFUSED);
	HAS(text, "no channel");
	close(ends[0]);
	close(ends[1]);
	pair(SOCK_SEQPACKET, ends);
	server.stopping = true;
	IS(ask(fd, ends[1]), CKT_CONTROL_REFUSED);
	HAS(text, "it ends");
	server.stopping = false;
	server.kept = (struct ckt_memory_image *)&server;
	IS(ask(fd, ends[1]), CKT_CONTROL_REFUSED);
	HAS(text, "images in memory");
	server.kept = NULL;
	NO(server.replace.open);
	close(ends[0]);
	close(ends[1]);
	close(fd);
	run_for(2);
}

/* A session that begins holds it up; the successor goes away meanwhile. */
static void test_busy(void)
{
	struct ckt_session *session = session_new("0000000000f1");
	int ends[2], fd = control_new();
	char byte;
	session->phase = CKT_SESSION_STARTING;
	pair(SOCK_SEQPACKET, ends);
	IS(ask(fd, ends[1]), CKT_CONTROL_OK);
	close(ends[1]);
	YES(server.replace.open);
	run_for(60);
	IS(recv(ends[0], &byte, 1, MSG_DONTWAIT), -1);
	/* Not a second one. */
	int others[2];
	pair(SOCK_SEQPACKET, others);
	IS(ask(fd, others[1]), CKT_CONTROL_REFUSED);
	close(others[0]);
	close(others[1]);
	close(ends[0]);
	run_for(5);
	NO(server.replace.open);
	NO(server.loop.stop);
	session->phase = CKT_SESSION_LIVE;
	session_drop(session);
	close(fd);
	run_for(2);
}

static void test_patience(void)
{
	struct ckt_session *session = session_new("0000000000f2");
	int ends[2], fd = control_new();
	char byte;
	session->phase = CKT_SESSION_STARTING;
	pair(SOCK_SEQPACKET, ends);
	IS(ask(fd, ends[1]), CKT_CONTROL_OK);
	close(ends[1]);
	server.replace.deadline_ms = 0;
	run_for(60);
	NO(server.replace.open);
	/* The successor sees the end, and nothing before it. */
	IS(recv(ends[0], &byte, 1, 0), 0);
	close(ends[0]);
	session->phase = CKT_SESSION_LIVE;
	session_drop(session);
	close(fd);
	run_for(2);
}

static void test_inherited(void)
{
	struct ckt_server *s = calloc(1, sizeof *s);
	MUST(s != NULL, true);
	int ends[2];
	pair(SOCK_STREAM, ends);
	s->inherited_count = 2;
	s->inherited[0].source.fd = ends[0];
	strcpy(s->inherited[0].asked, "node:7350");
	strcpy(s->inherited[0].text, "10.0.0.1:7350");
	s->inherited[1].source.fd = ends[1];
	strcpy(s->inherited[1].asked, "127.0.0.1:0");
	strcpy(s->inherited[1].text, "127.0.0.1:4711");
	IS(ckt_replace_inherited(s, "10.0.0.2:7350"), -1);
	IS(ckt_replace_inherited(s, "10.0.0.1:7350"), ends[0]);
	IS(ckt_replace_inherited(s, "node:7350"), -1); /* once */
	IS(ckt_replace_inherited(s, "127.0.0.1:4711"), ends[1]);
	s->inherited[1].source.fd = ends[1];
	ckt_replace_fini(s);
	IS(send(ends[0], "", 1, MSG_NOSIGNAL), -1); /* nobody has the other end */
	close(ends[0]);
	free(s);
}

UNIT_SUITE(replace, {"refused", test_refused}, {"busy", test_busy}, {"patience", test_patience},
	{"inherited", test_inherited})
