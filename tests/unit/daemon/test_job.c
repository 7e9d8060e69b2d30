/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/job.h: which sessions are a job's, holding all of them or none, for whom
 * and until when.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/job.h"

static char text[CKT_MESSAGE_MAX];
static ckt_control_job_res last;

static ckt_control_status ask(int fd, uint32_t proc, xdrproc_t xdr, void *args)
{
	xdr_free((xdrproc_t)xdr_ckt_control_job_res, (char *)&last);
	memset(&last, 0, sizeof last);
	YES(control(fd, proc, xdr, args, -1, (xdrproc_t)xdr_ckt_control_job_res, &last));
	snprintf(text, sizeof text, "%.500s", last.result.message);
	return last.result.status;
}

static ckt_control_status hold(int fd, const char *job)
{
	ckt_control_job_args args = {.job = (char *)job};
	return ask(fd, CKT_CONTROL_JOB_HOLD, (xdrproc_t)xdr_ckt_control_job_args, &args);
}

static ckt_control_status look(int fd, const char *session, uint64_t commands)
{
	ckt_control_step step = {.session = (char *)session, .commands = commands};
	ckt_control_job_look_args args = {.steps = {session ? 1 : 0, &step}};
	return ask(fd, CKT_CONTROL_JOB_LOOK, (xdrproc_t)xdr_ckt_control_job_look_args, &args);
}

static ckt_control_status show_key(int fd, const char *key)
{
	ckt_control_job_key_args args;
	ckt_control_result res = {0};
	memcpy(args.key, key, sizeof args.key);
	YES(control(fd, CKT_CONTROL_JOB_KEY_SHOW, (xdrproc_t)xdr_ckt_control_job_key_args, &args,
		-1, (xdrproc_t)xdr_ckt_control_result, &res));
	ckt_control_status status = res.status;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return status;
}

static struct ckt_session *session_of(const char *id, const char *job, uint32_t uid)
{
	struct ckt_session *session = session_new(id);
	strcpy(session->job, job);
	session->uid = uid;
	return session;
}

static bool is_let_go(void *session)
{
	return !((struct ckt_session *)session)->job_hold;
}

static void test_names(void)
{
	char found[CKT_JOB_NAME_MAX + 1];
	ckt_capability capabilities[] = {
		{(char *)"copy", 1}, {(char *)"job:a/b", 0}, {(char *)"job:mine", 0}};
	ckt_hello_args hello = hello_args(CKT_HELLO_NEW, "");
	ckt_daemon_job_of_hello(&hello, found);
	TEXT(found, "");
	hello.capabilities.capabilities_val = capabilities;
	hello.capabilities.capabilities_len = 2;
	ckt_daemon_job_of_hello(&hello, found);
	TEXT(found, "");
	hello.capabilities.capabilities_len = 3;
	ckt_daemon_job_of_hello(&hello, found);
	TEXT(found, "mine");
}

static void test_list(void)
{
	struct ckt_session *one = session_of("0000000000a1", "mine", geteuid()),
			   *two = session_of("0000000000a2", "", geteuid());
	ckt_control_list_args args = {.after = (char *)""};
	ckt_control_jobs_res res = {0};
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_JOBS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_jobs_res, &res));
	MUST(res.sessions.sessions_len, 1);
	TEXT(res.sessions.sessions_val[0].session, "0000000000a1");
	TEXT(res.sessions.sessions_val[0].job, "mine");
	NO(res.more);
	xdr_free((xdrproc_t)xdr_ckt_control_jobs_res, (char *)&res);
	memset(&res, 0, sizeof res);
	args.after = (char *)"0000000000a1";
	YES(control(fd, CKT_CONTROL_JOBS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_jobs_res, &res));
	IS(res.sessions.sessions_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_jobs_res, (char *)&res);
	close(fd);
	session_drop(one);
	session_drop(two);
}

static void test_hold(void)
{
	struct ckt_session *one = session_of("0000000000a1", "mine", geteuid()),
			   *two = session_of("0000000000a2", "mine", geteuid()),
			   *other = session_of("0000000000a3", "mine", geteuid() + 1),
			   *none = session_of("0000000000a4", "", geteuid());
	int first = control_new(), second = control_new();
	IS(hold(first, "no such"), CKT_CONTROL_REFUSED);
	HAS(text, "not a job name");
	IS(hold(first, "nobody"), CKT_CONTROL_REFUSED);
	HAS(text, "there is no session of a job 'nobody'");
	IS(look(first, NULL, 0), CKT_CONTROL_REFUSED);
	IS(ask(first, CKT_CONTROL_JOB_END, NULL, NULL), CKT_CONTROL_REFUSED);
	worker.drained = true;
	IS(hold(first, "mine"), CKT_CONTROL_OK);
	MUST(last.ranks.ranks_len, 2); /* another user's is not of it */
	TEXT(last.ranks.ranks_val[0].session, "0000000000a1");
	TEXT(last.ranks.ranks_val[1].session, "0000000000a2");
	YES(last.ranks.ranks_val[0].held && last.ranks.ranks_val[0].drained);
	YES(one->job_hold && two->job_hold && !other->job_hold && !none->job_hold);
	IS(hold(first, "mine"), CKT_CONTROL_REFUSED);
	HAS(text, "already holds a job");
	IS(hold(second, "mine"), CKT_CONTROL_REFUSED);
	HAS(text, "session 0000000000a1 is held by another checkpoint");
	/* Whoever shows the key may save one. */
	struct ckt_peer *peer = peer_last();
	YES(ckt_daemon_job_is_foreign(one, peer));
	char key[CKT_CONTROL_JOB_KEY];
	memcpy(key, one->job_hold->peer->job_key, sizeof key);
	key[3] ^= 1;
	IS(show_key(second, key), CKT_CONTROL_OK);
	YES(ckt_daemon_job_is_foreign(one, peer));
	key[3] ^= 1;
	IS(show_key(second, key), CKT_CONTROL_OK);
	NO(ckt_daemon_job_is_foreign(one, peer));
	NO(ckt_daemon_job_is_foreign(other, peer));
	/* Steps go to the session that is meant. */
	unsigned before = worker.steps;
	IS(look(first, "0000000000a2", 7), CKT_CONTROL_OK);
	IS(worker.steps, before + 1);
	IS(worker.commands, 7);
	IS(last.ranks.ranks_len, 2);
	IS(ask(first, CKT_CONTROL_JOB_END, NULL, NULL), CKT_CONTROL_OK);
	IS(last.ranks.ranks_len, 2);
	YES(last.ranks.ranks_val[0].held);
	YES(!one->job_hold && !two->job_hold);
	/* And can be held again, by anybody. */
	IS(hold(second, "mine"), CKT_CONTROL_OK);
	close(second);
	YES(run_until(is_let_go, one));
	YES(run_until(is_let_go, two));
	close(first);
	session_drop(one);
	session_drop(two);
	session_drop(other);
	session_drop(none);
}

/* All or none. */
static void test_failure(void)
{
	struct ckt_session *one = session_of("0000000000a1", "mine", geteuid()),
			   *two = session_of("0000000000a2", "mine", geteuid());
	int fd = control_new();
	worker.status = -EINVAL;
	worker.message = "no";
	IS(hold(fd, "mine"), CKT_CONTROL_REFUSED);
	HAS(text, "cannot hold session 0000000000a1 with its job: no");
	IS(last.ranks.ranks_len, 0);
	YES(!one->job_hold && !two->job_hold);
	worker.status = 0;
	two->phase = CKT_SESSION_STARTING;
	IS(hold(fd, "mine"), CKT_CONTROL_REFUSED);
	HAS(text, "session 0000000000a2 is starting or ending");
	YES(!one->job_hold && !two->job_hold);
	two->phase = CKT_SESSION_LIVE;
	/* One that its worker let go on is told of. */
	IS(hold(fd, "mine"), CKT_CONTROL_OK);
	worker.not_held = true;
	IS(look(fd, NULL, 0), CKT_CONTROL_OK);
	MUST(last.ranks.ranks_len, 2);
	NO(last.ranks.ranks_val[0].held);
	worker.not_held = false;
	IS(look(fd, NULL, 0), CKT_CONTROL_OK);
	NO(last.ranks.ranks_val[0].held); /* and stays so */
	close(fd);
	YES(run_until(is_let_go, one));
	session_drop(one);
	session_drop(two);
}

UNIT_SUITE(job, {"names", test_names}, {"list", test_list}, {"hold", test_hold},
	{"failure", test_failure})
