/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/metrics/collect.c: samples of sessions in each state, and whether the server is ready. */
#include <stdlib.h>

#include "inside.h"
#include "server/daemon/metrics/collect.h"
#include "server/daemon/metrics/owners.h"

static void has(const char *sample)
{
	size_t size;
	char *text = ckt_metrics_collect(&server, false, &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	IS(strlen(text), size);
	HAS(text, sample);
	free(text);
}

static void test_states(void)
{
	struct ckt_session *session = session_new("a1a1a1a1a1a1");
	ckt_metrics_owners_fini();
	session->uid = 77;
	session->status.state = CKT_STATE_RUNNING;
	has("cricket_sessions{owner=\"uid:77\",state=\"running\"} 1\n");
	session->status.state = (ckt_session_state)99;
	has("cricket_sessions{owner=\"uid:77\",state=\"running\"} 1\n");
	session->status.state = CKT_STATE_DETACHED;
	has("cricket_sessions{owner=\"uid:77\",state=\"detached\"} 1\n");
	session->holder = (struct ckt_peer *)session;
	has("cricket_sessions{owner=\"uid:77\",state=\"frozen\"} 1\n");
	session->holder = NULL;
	session->metrics.paused = true;
	has("cricket_sessions{owner=\"uid:77\",state=\"paused\"} 1\n");
	session->metrics.paused = false;
	session->quantum.member.out = true;
	has("cricket_sessions{owner=\"uid:77\",state=\"swapped\"} 1\n");
	session->quantum.member.out = false;
	/* Only the server knows of those. */
	session->status.state = CKT_STATE_ASLEEP;
	has("cricket_sessions{owner=\"uid:77\",state=\"asleep\"} 0\n");
	has("cricket_sessions{owner=\"uid:77\",state=\"running\"} 1\n");
	session->status.state = CKT_STATE_DETACHED;
	session->phase = CKT_SESSION_STARTING;
	has("cricket_sessions{owner=\"uid:77\",state=\"starting\"} 1\n");
	session->phase = CKT_SESSION_LIVE;
	has("cricket_sessions{owner=\"other\",state=\"running\"} 0\n");
	session_drop(session);
	has("cricket_sessions{owner=\"uid:77\",state=\"detached\"} 0\n");
}

static void test_memory(void)
{
	struct ckt_session *session = session_new("a2a2a2a2a2a2");
	ckt_metrics_owners_fini();
	struct ckt_driver_info driver = server.driver;
	server.driver.gpu_count = 2;
	server.driver.gpus[1].memory_bytes = 4096;
	session->uid = 78;
	session->status.gpu = 1;
	session->status.memory_bytes = 300;
	has("cricket_gpu_memory_held_bytes{gpu=\"1\",owner=\"uid:78\"} 300\n");
	has("cricket_gpu_memory_allowed_bytes{gpu=\"1\"} 4096\n");
	server.ledger.budgets[1] = 2048;
	has("cricket_gpu_memory_allowed_bytes{gpu=\"1\"} 2048\n");
	server.ledger.budgets[1] = 0;
	server.driver = driver;
	session_drop(session);
	ckt_metrics_owners_fini();
}

static void test_ready(void)
{
	const char *reason = "";
	unsigned gpus = server.driver.gpu_count;
	server.driver.gpu_count = 0;
	NO(ckt_metrics_ready(&server, &reason));
	TEXT(reason, "the driver has no GPU");
	server.driver.gpu_count = 1;
	YES(ckt_metrics_ready(&server, &reason));
	unsigned max = server.options.max_sessions, count = server.session_count;
	server.options.max_sessions = server.session_count = 3;
	NO(ckt_metrics_ready(&server, &reason));
	server.options.max_sessions = max;
	server.session_count = count;
	server.stopping = true;
	NO(ckt_metrics_ready(&server, &reason));
	TEXT(reason, "the server ends");
	server.stopping = false;
	server.driver.gpu_count = gpus;
}

UNIT_SUITE(collect, {"states", test_states}, {"memory", test_memory}, {"ready", test_ready})
