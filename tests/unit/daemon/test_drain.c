/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/drain.c: who may drain, what is refused then, and what outlives the server.
 * tests/server/test_drain.py has whole servers.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/metrics/collect.h"
#include "server/daemon/peer/drain.h"
#include "server/daemon/session/session_marks.h"

static char text[CKT_MESSAGE_MAX], to[CKT_CONTROL_DRAIN_TO + 1];

/* The status; -1: no proper answer.  What it says is in text and to. */
static int ask(int fd, int way, const char *servers, ckt_control_drain_res *ret_res)
{
	ckt_control_drain_args args = {.way = (ckt_control_drain_way)way, .to = (char *)servers};
	ckt_control_drain_res res = {0};
	if (!control(fd, CKT_CONTROL_DRAIN, (xdrproc_t)xdr_ckt_control_drain_args, &args, -1,
		    (xdrproc_t)xdr_ckt_control_drain_res, &res))
		return -1;
	snprintf(text, sizeof text, "%s", res.result.message);
	snprintf(to, sizeof to, "%s", res.to);
	int status = (int)res.result.status;
	if (ret_res)
		*ret_res = res;
	xdr_free((xdrproc_t)xdr_ckt_control_drain_res, (char *)&res);
	return status;
}

static char *state(void)
{
	static char path[CKT_PATH_MAX];
	snprintf(path, sizeof path, "%.4000s/draining", server.socket_dir);
	return path;
}

static void begin(void)
{
	server.drain = (struct ckt_drain){0};
	snprintf(server.socket_dir, sizeof server.socket_dir, "%s/s.d", directory);
	unlink(state());
}

static void test_ways(void)
{
	begin();
	int fd = control_new();
	const char *why;
	ckt_control_drain_res res;
	IS(ask(fd, CKT_CONTROL_DRAIN_LOOK, "", &res), CKT_CONTROL_OK);
	NO(res.draining);
	IS(res.since, 0);
	IS(ask(fd, CKT_CONTROL_DRAIN_STOP, "", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "drain it first");
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "b,unix:/c", &res), CKT_CONTROL_OK);
	YES(res.draining);
	YES(res.since > 0);
	TEXT(to, "b,unix:/c");
	IS(access(state(), F_OK), 0);
	NO(ckt_metrics_ready(&server, &why));
	/* The time of the first one counts. */
	server.drain.since = 5;
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "", &res), CKT_CONTROL_OK);
	IS(res.since, 5);
	TEXT(to, "");
	YES(ckt_drain_refuses(&server, text));
	HAS(text, "use another server");
	IS(ask(fd, 77, "", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "does not know this way");
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "a b", NULL), CKT_CONTROL_REFUSED);
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "a\x1b[2J", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "not valid");
	IS(ask(fd, CKT_CONTROL_DRAIN_OFF, "", &res), CKT_CONTROL_OK);
	NO(res.draining);
	IS(access(state(), F_OK), -1);
	NO(ckt_drain_refuses(&server, text));
	/* Twice is no error. */
	IS(ask(fd, CKT_CONTROL_DRAIN_OFF, "", NULL), CKT_CONTROL_OK);
	close(fd);
	run_for(2);
}

static void test_refused(void)
{
	begin();
	int fd = control_new();
	server.stopping = true;
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "the server ends");
	server.stopping = false;
	/* Not kept: not drained. */
	snprintf(server.socket_dir, sizeof server.socket_dir, "%s/nowhere", directory);
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "cannot keep the state in ");
	NO(server.drain.on);
	begin();
	IS(ask(fd, CKT_CONTROL_DRAIN_ON, "", NULL), CKT_CONTROL_OK);
	server.session_count = 1;
	IS(ask(fd, CKT_CONTROL_DRAIN_STOP, "", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "has sessions");
	server.session_count = 0;
	/* A peer that is no administrator sees it, and changes nothing. */
	peer_last()->who.uid = 4711;
	IS(ask(fd, CKT_CONTROL_DRAIN_OFF, "", NULL), CKT_CONTROL_REFUSED);
	HAS(text, "only an administrator");
	IS(ask(fd, CKT_CONTROL_DRAIN_STOP, "", NULL), CKT_CONTROL_REFUSED);
	ckt_control_drain_res res;
	IS(ask(fd, CKT_CONTROL_DRAIN_LOOK, "", &res), CKT_CONTROL_OK);
	YES(res.draining);
	close(fd);
	run_for(2);
	begin();
}

static void test_hello(void)
{
	begin();
	ckt_greeting greeting;
	ckt_hello_args args = hello_args(CKT_HELLO_NEW, "");
	server.drain.on = true;
	strcpy(server.drain.to, "b");
	int fd = peer_new(&greeting);
	IS(hello(fd, &args, (const uint8_t *)greeting.nonce, NULL, text), CKT_HELLO_FULL);
	HAS(text, "is drained for maintenance and takes no new sessions: use one of the servers b");
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	run_for(2);
	begin();
}

static void test_kept(void)
{
	static const struct {
		const char *line;
		time_t since; /* 0: when the server began */
		const char *to;
	} cases[] = {{"v1 17 a,b:1\n", 17, "a,b:1"}, {"v1 17 \n", 17, ""}, {"", 0, ""},
		{"v1 17 a", 0, ""}, {"v2 17 a\n", 0, ""}, {"v1 -1 a\n", 0, ""}, {"v1 x a\n", 0, ""},
		{"v1 17 a;b\n", 0, ""}};
	begin();
	server.started = 99;
	ckt_drain_open(&server);
	NO(server.drain.on);
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin();
		write_file(state(), cases[i].line, 0600);
		ckt_drain_open(&server);
		YES(server.drain.on);
		IS(server.drain.since, cases[i].since ? cases[i].since : 99);
		TEXT(server.drain.to, cases[i].to);
	}
	/* A successor finds it, an orderly end leaves nothing. */
	server.replace.done = true;
	ckt_drain_close(&server);
	IS(access(state(), F_OK), 0);
	server.replace.done = false;
	ckt_drain_close(&server);
	IS(access(state(), F_OK), -1);
	begin();
}

UNIT_SUITE(drain, {"ways", test_ways}, {"refused", test_refused}, {"hello", test_hello},
	{"kept", test_kept})
