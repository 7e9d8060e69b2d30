/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/together_meet.c: ranks are held until none has work left, and go on where one does not
 * end it.
 */
#include "server/daemon/session/together_meet.h"

#include <string.h>

#include "inside.h"
#include "server/daemon/session/together.h"

enum { SESSIONS = 2 };

static struct ckt_session *sessions[SESSIONS];
static struct ckt_together *together;

static void begin(unsigned drain)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa3", "bbbbbbbbbbb3"};
	static struct ckt_group_name claims[SESSIONS] = {
		{CKT_GROUP_RANK "xxxxxxxxxxxxxxxxxx"}, {"session aaaaaaaaaaa3"}};
	memset(&worker, 0, sizeof worker);
	server.options.drain = drain;
	together = calloc(1, sizeof *together);
	together->server = &server;
	together->count = SESSIONS;
	server.togethers = together;
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->quantum.together = together;
		sessions[i]->group.claims = &claims[i];
		sessions[i]->group.claim_count = 1;
	}
	YES(ckt_together_must_meet(together));
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i]->quantum.together = NULL;
		sessions[i]->group.claims = NULL;
		sessions[i]->group.claim_count = 0;
		session_drop(sessions[i]);
	}
	run_for(5);
	ckt_together_close(&server);
	memset(&worker, 0, sizeof worker);
}

static bool is_over(void *unused)
{
	(void)unused;
	return together->step != CKT_TOGETHER_MEET;
}

static void meet(void)
{
	together->out = true;
	together->step = CKT_TOGETHER_MEET;
	ckt_together_meet(together);
	MUST(run_until(is_over, NULL), true);
}

/* No rank among them: nobody has to meet. */
static void test_nobody(void)
{
	begin(60);
	sessions[0]->group.claim_count = 0;
	NO(ckt_together_must_meet(together));
	end();
}

static void test_meets(void)
{
	begin(60);
	worker.drained = true;
	worker.silent_on = CKT_WORKER_TOGETHER;
	meet();
	IS(together->step, CKT_TOGETHER_STOP);
	IS(together->error, 0);
	YES(sessions[0]->quantum.meeting.held && sessions[1]->quantum.meeting.held);
	/* Stopped and looked at, and not let go yet. */
	IS(worker.calls[CKT_WORKER_HOLD], SESSIONS);
	ckt_together_meet_end(together);
	ckt_together_meet_end(together);
	run_for(5);
	IS(worker.calls[CKT_WORKER_HOLD], 2 * SESSIONS);
	end();
}

static void test_late(void)
{
	begin(0);
	worker.message = "stream 2 has unfinished work";
	meet();
	IS(together->step, 0);
	HAS(together->message, "waits for a peer or computes: stream 2 has unfinished work");
	NO(sessions[0]->quantum.meeting.held || sessions[1]->quantum.meeting.held);
	IS(worker.calls[CKT_WORKER_TOGETHER], 0);
	HAS(sessions[0]->quantum.note, "waits for a peer");
	HAS(sessions[1]->quantum.note, "waits for a peer");
	NO(together->member.out);
	end();
	/* Before that some are let on. */
	begin(1);
	meet();
	YES(worker.steps > 0);
	HAS(together->message, "its work does not finish");
	end();
}

/* A worker that says that it does not stand, or does not speak. */
static void test_lies(void)
{
	begin(60);
	worker.not_held = worker.drained = true;
	meet();
	HAS(together->message, "it goes on by itself");
	IS(worker.calls[CKT_WORKER_TOGETHER], 0);
	end();
	begin(60);
	worker.garbage = true;
	meet();
	IS(worker.calls[CKT_WORKER_TOGETHER], 0);
	end();
	begin(60);
	worker.status = -EBUSY;
	worker.message = "another checkpoint of its job holds the session: try again";
	meet();
	HAS(together->message, "another checkpoint of its job");
	IS(worker.calls[CKT_WORKER_TOGETHER], 0);
	end();
}

UNIT_SUITE(together_meet, {"nobody", test_nobody}, {"meets", test_meets}, {"late", test_late},
	{"lies", test_lies})
