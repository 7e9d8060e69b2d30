/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/durable/automatic*.c and server/daemon/peer/durable_calls.c: an image of a session,
 * what becomes of it, and who may have the session back.
 */
#include "server/daemon/durable/automatic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/durable/automatic_option.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/metrics/collect.h"
#include "server/daemon/metrics/owners.h"

#define SESSION "0000000000ca"

static void test_option(void)
{
	unsigned seconds = 0;
	bool asked = true;
	IS(ckt_automatic_parse("30s", &seconds, &asked), 0);
	YES(seconds == 30 && !asked);
	IS(ckt_automatic_parse("5m,asked", &seconds, &asked), 0);
	YES(seconds == 300 && asked);
	IS(ckt_automatic_parse("7", &seconds, &asked), 0);
	IS(seconds, 7);
	static const char *const wrong[] = {
		"", "0", "0s", "s", "-1", "30x", "30s,", "30s,all", "25h", "99999999999999999999"};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ckt_automatic_parse(wrong[i], &seconds, &asked), -EINVAL);
}

static void begin(void)
{
	static char dir[128];
	char message[256] = "";
	snprintf(dir, sizeof dir, "%s", path_in("automatic"));
	server.options.auto_checkpoint = (char *)"1h";
	server.options.auto_dir = dir;
	server.options.claim_timeout = 60;
	MUST(ckt_automatic_init(&server, message, sizeof message), 0);
}

static void end(void)
{
	ckt_automatic_fini(&server);
	server.options.auto_checkpoint = server.options.auto_dir = NULL;
	NO(server.automatic);
}

static bool is_idle(void *data)
{
	const struct ckt_automatic_chain *chain = data;
	return !chain->busy;
}

static void take(struct ckt_session *session)
{
	ckt_automatic_tick(&session->chain->timer);
	YES(session->chain->busy);
	YES(run_until(is_idle, session->chain));
}

/* A session with one image. */
static struct ckt_session *saved_session(void)
{
	struct ckt_session *session = session_new(SESSION);
	session->child = true;
	ckt_auth_hash(
		hello_args(CKT_HELLO_RESUME, "").secret, CKT_SECRET_SIZE, session->secret_hash);
	ckt_automatic_begin(session);
	CU_ASSERT_PTR_NOT_NULL_FATAL(session->chain);
	take(session);
	IS(session->chain->state.count, 1);
	return session;
}

static ckt_control_durable_res list(int fd)
{
	ckt_control_list_args args = {.after = (char *)""};
	ckt_control_durable_res res = {0};
	YES(control(fd, CKT_CONTROL_DURABLE, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_durable_res, &res));
	return res;
}

/* A sample of /metrics; -1: there is none. */
static double metric(const char *name)
{
	size_t size;
	double value = -1;
	char *text = ckt_metrics_collect(&server, false, &size), *at = text;
	while (at && (at = strstr(at, name)) && at > text && at[-1] != '\n')
		at++;
	if (at)
		value = strtod(at + strlen(name), NULL);
	free(text);
	return value;
}

static void test_image(void)
{
	begin();
	double written = metric("cricket_automatic_images_total{result=\"written\"}"),
	       failed = metric("cricket_automatic_images_total{result=\"failed\"}");
	struct ckt_session *session = saved_session();
	IS(metric("cricket_automatic_images_total{result=\"written\"}"), written + 1);
	IS(metric("cricket_automatic_image_period_seconds"), 3600);
	IS(metric("cricket_automatic_image_age_seconds{session=\"" SESSION "\"}"), 0);
	session->status.executed = session->chain->state.executed + 1;
	session->chain->state.when -= 50;
	YES(metric("cricket_automatic_image_age_seconds{session=\"" SESSION "\"}") >= 50);
	session->chain->state.when += 50;
	session->status.executed--;
	IS(worker.calls[CKT_WORKER_SAVE2], 1);
	IS(worker.calls[CKT_WORKER_DURABLE], 1);
	/* Nothing was executed since: nothing is written. */
	take(session);
	IS(worker.calls[CKT_WORKER_SAVE2], 1);
	int fd = control_new();
	ckt_control_durable_res res = list(fd);
	MUST(res.sessions.sessions_len, 1);
	TEXT(res.sessions.sessions_val[0].session, SESSION);
	IS(res.sessions.sessions_val[0].images, 1);
	IS(res.sessions.sessions_val[0].taken, 1);
	YES(res.sessions.sessions_val[0].when > 0);
	xdr_free((xdrproc_t)xdr_ckt_control_durable_res, (char *)&res);
	/* One that fails leaves what there is. */
	worker.status = -EIO;
	worker.message = "the disk is broken";
	session->chain->state.executed = 5;
	take(session);
	IS(session->chain->state.count, 1);
	TEXT(session->chain->problem, "the disk is broken");
	IS(metric("cricket_automatic_images_total{result=\"failed\"}"), failed + 1);
	worker.status = 0;
	/* What ends on purpose leaves nothing. */
	session->phase = CKT_SESSION_ENDING;
	ckt_automatic_end(session, false);
	NO(session->chain);
	ckt_chain_jobs_finish();
	IS(faccessat(server.automatic->dir_fd, SESSION, F_OK, 0), -1);
	close(fd);
	run_for(2);
	session_drop(session);
	end();
}

static int resume(char *text)
{
	ckt_hello_args args = hello_args(CKT_HELLO_RESUME, SESSION);
	int fd = peer_new(NULL), status = hello(fd, &args, NULL, NULL, text);
	close(fd);
	run_for(2);
	return status;
}

/* A crash leaves the chain, and its client alone gets it, while nobody else has it. */
static void test_resume(void)
{
	char text[512];
	struct ckt_chain_state state;
	begin();
	struct ckt_session *session = saved_session();
	ckt_automatic_end(session, true);
	session_drop(session);
	int dir = ckt_chain_open(server.automatic->dir_fd, SESSION, false);
	CU_ASSERT_FATAL(dir >= 0);
	MUST(ckt_chain_read(dir, SESSION, &state), 0);
	/* Somebody's worker lives. */
	int lock = ckt_chain_lock(dir, false);
	IS(resume(text), CKT_HELLO_FAILED);
	HAS(text, "still has a worker");
	close(lock);
	/* It died too often. */
	state.restores = 3;
	MUST(ckt_chain_write(dir, &state), 0);
	IS(resume(text), CKT_HELLO_FAILED);
	HAS(text, "is not started again");
	/* Another user's secret. */
	state.restores = 0;
	state.secret_hash[0] ^= 1;
	MUST(ckt_chain_write(dir, &state), 0);
	IS(resume(text), CKT_HELLO_DENIED);
	HAS(text, "secret");
	MUST(ckt_chain_read(dir, SESSION, &state), 0);
	IS(state.restores, 0);
	/* Another user's session. */
	state.secret_hash[0] ^= 1;
	state.count = 0;
	MUST(ckt_chain_write(dir, &state), 0);
	IS(resume(text), CKT_HELLO_NO_SESSION);
	lock = ckt_chain_lock(dir, false);
	ckt_chain_remove(server.automatic->dir_fd, dir, SESSION);
	close(lock);
	close(dir);
	IS(resume(text), CKT_HELLO_NO_SESSION);
	end();
}

/* A worker that dies before it is told who it becomes has not been ended on purpose. */
static void test_dies_early(void)
{
	begin();
	struct ckt_session *session = saved_session();
	worker.accept_stat = 3;
	MUST(ckt_automatic_tell(session), 0);
	run_for(5);
	worker.accept_stat = 0;
	IS(session->phase, CKT_SESSION_ENDING);
	ckt_automatic_end(session, false);
	ckt_chain_jobs_finish();
	IS(faccessat(server.automatic->dir_fd, SESSION "/state", F_OK, 0), 0);
	run_for(2);
	session_drop(session);
	end();
}

UNIT_SUITE(automatic, {"option", test_option}, {"image", test_image}, {"resume", test_resume},
	{"dies early", test_dies_early})
