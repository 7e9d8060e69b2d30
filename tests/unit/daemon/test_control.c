/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/control.h: the control calls: which session is meant, what stands in a
 * restore's way, and calls that are none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

static void test_select(void)
{
	struct ckt_session *a = session_new("0000000000f1"), *b = session_new("0000000000f2"),
			   *other = session_new("0000000000f3");
	char buffer[CKT_MESSAGE_MAX];
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	ckt_control_result result = {0};
	const struct {
		const char *prefix;
		struct ckt_session *session;
		ckt_control_status status;
	} cases[] = {{"0000000000f1", a, 0}, {"0000000000f2", b, 0},
		{"0000000000f", NULL, CKT_CONTROL_AMBIGUOUS}, {"0", NULL, CKT_CONTROL_AMBIGUOUS},
		{"", NULL, CKT_CONTROL_NO_SESSION}, {"f1", NULL, CKT_CONTROL_NO_SESSION},
		{"0000000000f11", NULL, CKT_CONTROL_NO_SESSION}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		YES(ckt_control_select(peer, cases[i].prefix, &result, buffer) == cases[i].session);
		if (!cases[i].session)
			IS(result.status, cases[i].status);
	}
	HAS(result.message, "there is no session '0000000000f11' on here");
	/* Another user's is not there for who is not root. */
	other->uid = 4001;
	uint32_t uid = peer->who.uid;
	peer->who.uid = 4002;
	CU_ASSERT_PTR_NULL(ckt_control_select(peer, "0000000000f3", &result, buffer));
	IS(result.status, CKT_CONTROL_NO_SESSION);
	peer->who.uid = 4001;
	YES(ckt_control_select(peer, "0", &result, buffer) == other);
	peer->who.uid = uid;
	/* Listed from behind the name given; workers that start are not asked. */
	a->phase = b->phase = other->phase = CKT_SESSION_STARTING;
	ckt_control_list_args after = {.after = (char *)"0000000000f1"};
	ckt_control_list_res list = {0};
	YES(control(fd, CKT_CONTROL_LIST, (xdrproc_t)xdr_ckt_control_list_args, &after, -1,
		(xdrproc_t)xdr_ckt_control_list_res, &list));
	MUST(list.sessions.sessions_len, 2);
	TEXT(list.sessions.sessions_val[0].session, "0000000000f2");
	NO(list.more);
	xdr_free((xdrproc_t)xdr_ckt_control_list_res, (char *)&list);
	close(fd);
	run_for(3);
	session_drop(a);
	session_drop(b);
	session_drop(other);
}

/* What the session tells is copied over the wire, and a worker's status takes its place: that is the heap's. */
static struct ckt_session *listed_new(const char *id)
{
	struct ckt_session *session = session_new(id);
	session->status.program_name = strdup("program");
	session->status.client = strdup("");
	session->status.note = strdup("");
	session->status.session = strdup("");
	return session;
}

static void listed_drop(struct ckt_session *session)
{
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&session->status);
	session_drop(session);
}

/* LIST2, which tells that of three sessions these answered. */
static void answered_are(int fd, const char *after, const bool *answered, u_int count)
{
	ckt_control_list_args args = {.after = (char *)after};
	ckt_control_list2_res res = {0};
	YES(control(fd, CKT_CONTROL_LIST2, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_list2_res, &res));
	MUST(res.list.sessions.sessions_len, count);
	MUST(res.answered.answered_len, count);
	for (u_int i = 0; i < count; i++)
		IS(res.answered.answered_val[i], answered[i]);
	NO(res.list.more);
	xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)&res);
}

/* Whether workers answered; who starts is not asked, and the server knows that by itself. */
static void test_answered(void)
{
	struct ckt_session *a = listed_new("0000000000f6"), *b = listed_new("0000000000f7"),
			   *starting = listed_new("0000000000f8");
	int fd = control_new();
	starting->phase = CKT_SESSION_STARTING;
	answered_are(fd, "", (const bool[]){true, true, true}, 3);
	worker.silent_on = CKT_WORKER_STATUS;
	answered_are(fd, "", (const bool[]){false, false, true}, 3);
	answered_are(fd, "0000000000f6", (const bool[]){false, true}, 2);
	worker.silent_on = 0;
	worker.garbage = true;
	answered_are(fd, "0000000000f6", (const bool[]){false, true}, 2);
	worker.garbage = false;
	answered_are(fd, "0000000000f6", (const bool[]){true, true}, 2);
	/* Who ends by the time of the answer is known to end. */
	b->phase = CKT_SESSION_ENDING;
	answered_are(fd, "0000000000f6", (const bool[]){true, true}, 2);
	b->phase = starting->phase = CKT_SESSION_LIVE;
	close(fd);
	run_for(3);
	listed_drop(a);
	listed_drop(b);
	listed_drop(starting);
}

static void test_obstacles(void)
{
	char buffer[CKT_MESSAGE_MAX];
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	struct ckt_session *session = session_new("0000000000f4");
	unsigned driver_count = server.driver.gpu_count, max = server.options.max_sessions;
	server.driver.gpu_count = 3;
	static const struct {
		int gpu;
		unsigned chosen, max; /* --gpus 2 */
		bool stopping;
		const char *says;
	} cases[] = {
		{-1, 0, 0, false, ""},
		{0, 0, 0, false, ""},
		{2, 0, 0, false, ""},
		{3, 0, 0, false, "this server has no GPU 3"},
		{-1, 1, 0, false, ""},
		{2, 1, 0, false, ""},
		{0, 1, 0, false, "this server has no GPU 0"},
		{-1, 0, 1, false, "has reached its limit of 1 sessions (--max-sessions)"},
		{-1, 0, 2, false, ""},
		{-1, 0, 0, true, "is shutting down"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		server.gpu_count = cases[i].chosen;
		server.gpus[0] = 2;
		server.options.max_sessions = cases[i].max;
		server.stopping = cases[i].stopping;
		ckt_control_restore_obstacle(peer, cases[i].gpu, buffer);
		HAS(buffer, cases[i].says);
		IS(*buffer == 0, *cases[i].says == 0);
	}
	server.stopping = false;
	server.gpu_count = 1;
	/* And what info tells of them. */
	ckt_control_info_res info = {0};
	YES(control(
		fd, CKT_CONTROL_INFO, NULL, NULL, -1, (xdrproc_t)xdr_ckt_control_info_res, &info));
	IS(info.gpus.gpus_len, 1);
	IS(info.sessions, server.session_count);
	TEXT(info.host, "here");
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	server.gpu_count = 0;
	server.driver.gpu_count = driver_count;
	server.options.max_sessions = max;
	close(fd);
	run_for(3);
	session_drop(session);
}

static ckt_control_checkpoint_res checkpoint(int fd, int directory_fd)
{
	ckt_control_checkpoint_args args = {.session = (char *)"0000000000f5", .deadline_ms = 100};
	ckt_control_checkpoint_res res = {0};
	YES(control(fd, CKT_CONTROL_CHECKPOINT, (xdrproc_t)xdr_ckt_control_checkpoint_args, &args,
		directory_fd, (xdrproc_t)xdr_ckt_control_checkpoint_res, &res));
	return res;
}

static void test_checkpoint(void)
{
	struct ckt_session *session = session_new("0000000000f5");
	int fd = control_new(), dir = open(directory, O_RDONLY | O_DIRECTORY),
	    broker = broker_new();
	worker.bytes = 77;
	const struct {
		int fd, status, phase;
		ckt_control_status result;
		const char *says;
	} cases[] = {{-1, 0, CKT_SESSION_LIVE, CKT_CONTROL_REFUSED, "without a file broker"},
		{dir, 0, CKT_SESSION_LIVE, CKT_CONTROL_REFUSED, "without a file broker"},
		{broker, 0, CKT_SESSION_LIVE, CKT_CONTROL_OK, ""},
		{broker, -28, CKT_SESSION_LIVE, CKT_CONTROL_REFUSED, "the disk is full"},
		{broker, 0, CKT_SESSION_STARTING, CKT_CONTROL_REFUSED,
			"is starting or ending: try again"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		worker.status = cases[i].status;
		worker.message = cases[i].status ? "the disk is full" : "";
		session->phase = cases[i].phase;
		ckt_control_checkpoint_res res = checkpoint(fd, cases[i].fd);
		IS(res.result.status, cases[i].result);
		HAS(res.result.message, cases[i].says);
		IS(res.bytes, cases[i].result ? 0 : 77);
		xdr_free((xdrproc_t)xdr_ckt_control_checkpoint_res, (char *)&res);
	}
	session->phase = CKT_SESSION_LIVE;
	IS(worker.calls[CKT_WORKER_SAVE], 2);
	worker.hang_up = true;
	ckt_control_checkpoint_res res = checkpoint(fd, broker);
	IS(res.result.status, CKT_CONTROL_REFUSED);
	HAS(res.result.message, "its worker");
	xdr_free((xdrproc_t)xdr_ckt_control_checkpoint_res, (char *)&res);
	close(dir);
	close(broker);
	close(fd);
	run_for(3);
	session_drop(session);
}

/* Calls that are none end the connection. */
static void test_garbage(void)
{
	static const uint32_t procs[] = {30, 63, 1000, UINT32_MAX};
	ckt_control_list_args list = {.after = (char *)""};
	for (size_t i = 0; i < COUNT(procs); i++) {
		int fd = control_new();
		NO(control(fd, procs[i], NULL, NULL, -1, NULL, NULL));
		close(fd);
	}
	int fd = control_new();
	NO(control(fd, CKT_CONTROL_LIST, NULL, NULL, -1, NULL, NULL)); /* no arguments */
	close(fd);
	fd = control_new();
	/* some where there are none */
	NO(control(
		fd, CKT_CONTROL_INFO, (xdrproc_t)xdr_ckt_control_list_args, &list, -1, NULL, NULL));
	close(fd);
	fd = control_new();
	YES(control(fd, CKT_CONTROL_NULL, NULL, NULL, -1, NULL, NULL));
	close(fd);
	run_for(3);
}

UNIT_SUITE(control, {"select", test_select}, {"answered", test_answered},
	{"obstacles", test_obstacles}, {"checkpoint", test_checkpoint}, {"garbage", test_garbage})
