/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/session_metrics.c: a worker that counts, one that lies as much as it can,
 * and one that cuts its page off.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/metrics/owners.h"
#include "server/daemon/session/session_metrics.h"

enum { OWNER = 4321, GPU_BYTES = 1000 };

static struct ckt_driver_info driver;
static struct ckt_session_metrics *page; /* the worker's */

static bool has_page(void *data)
{
	(void)data;
	return worker.metrics >= 0;
}

/* A session with a page, as its worker sees it. */
static struct ckt_session *begin(void)
{
	struct ckt_session *session = session_new("abababababab");
	session->uid = OWNER;
	ckt_metrics_owners_fini();
	server.options.metrics = (char *)"127.0.0.1:0";
	driver = server.driver;
	server.driver.gpu_count = 1;
	server.driver.gpus[0].memory_bytes = GPU_BYTES;
	worker.metrics = -1;
	ckt_session_metrics_open(session);
	CU_ASSERT_TRUE_FATAL(run_until(has_page, NULL));
	page = mmap(
		NULL, CKT_METRICS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, worker.metrics, 0);
	CU_ASSERT_TRUE_FATAL(page != MAP_FAILED);
	return session;
}

static void end(struct ckt_session *session)
{
	ckt_session_metrics_close(session);
	session_drop(session);
	munmap(page, CKT_METRICS_PAGE_SIZE);
	close(worker.metrics);
	worker.metrics = 0;
	server.options.metrics = NULL;
	server.driver = driver;
	ckt_metrics_owners_fini();
}

static void test_counts(void)
{
	struct ckt_session *session = begin();
	struct ckt_session_metrics *sums = ckt_metrics_owner_sums(&server, OWNER);
	page->calls[CKT_CLASS_COPY] = 7;
	page->memory_bytes[0] = 500;
	page->state = CKT_STATE_DETACHED;
	for (int i = 0; i < 2; i++)
		ckt_session_metrics_add(session, sums);
	IS(sums->calls[CKT_CLASS_COPY], 7);
	IS(session->metrics.seen.memory_bytes[0], 500);
	IS(session->metrics.seen.state, CKT_STATE_DETACHED);
	page->calls[CKT_CLASS_COPY] = 9;
	/* A count that falls adds nothing, and nothing when it rises to where it was. */
	ckt_session_metrics_add(session, sums);
	page->calls[CKT_CLASS_COPY] = 3;
	ckt_session_metrics_add(session, sums);
	page->calls[CKT_CLASS_COPY] = 8;
	ckt_session_metrics_add(session, sums);
	IS(sums->calls[CKT_CLASS_COPY], 9);
	page->calls[CKT_CLASS_COPY] = 10;
	/* Another one does not get it twice. */
	ckt_session_metrics_open(session);
	CU_ASSERT_PTR_NOT_NULL(session->metrics.page);
	/* The end takes what came last. */
	ckt_session_metrics_close(session);
	CU_ASSERT_PTR_NULL(session->metrics.page);
	IS(sums->calls[CKT_CLASS_COPY], 10);
	end(session);
}

static void test_lies(void)
{
	struct ckt_session *session = begin();
	struct ckt_session_metrics *sums = ckt_metrics_owner_sums(&server, OWNER);
	struct ckt_session_metrics *other = ckt_metrics_owner_sums(&server, OWNER + 1);
	sums->calls[0] = 100;
	memset(page, 0xff, CKT_METRICS_PAGE_SIZE);
	ckt_session_metrics_add(session, sums);
	IS(sums->calls[0], UINT64_C(1) << 53);
	IS(sums->latency[0][0], UINT64_C(1) << 53);
	IS(session->metrics.seen.memory_bytes[0], GPU_BYTES);
	IS(session->metrics.seen.memory_bytes[1], 0);
	/* Neither smaller again, nor over the bound. */
	for (int i = 0; i < 4; i++) {
		memset(page, i % 2 ? 0xee : 0, CKT_METRICS_PAGE_SIZE);
		ckt_session_metrics_add(session, sums);
		IS(sums->calls[0], UINT64_C(1) << 53);
	}
	/* The next session of that owner. */
	memset(&session->metrics.seen, 0, sizeof session->metrics.seen);
	page->calls[0] = 5;
	ckt_session_metrics_add(session, sums);
	IS(sums->calls[0], UINT64_C(1) << 53);
	IS(other->calls[0], 0);
	/* Under the server's feet. */
	IS(ftruncate(worker.metrics, 0), -1);
	IS(ftruncate(worker.metrics, 1 << 20), -1);
	IS(fallocate(worker.metrics, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	ckt_session_metrics_add(session, sums);
	end(session);
}

static void test_none(void)
{
	struct ckt_session *session = session_new("cdcdcdcdcdcd");
	struct ckt_session_metrics sums = {0};
	worker.metrics = -1;
	memset(worker.calls, 0, sizeof worker.calls);
	/* Without --metrics. */
	ckt_session_metrics_open(session);
	CU_ASSERT_PTR_NULL(session->metrics.page);
	IS(worker.calls[CKT_WORKER_METRICS], 0);
	ckt_session_metrics_add(session, &sums);
	ckt_session_metrics_close(session);
	worker.metrics = 0;
	session_drop(session);
}

/* Time in turns, once. */
static void test_turns(void)
{
	struct ckt_session *session = session_new("efefefefefef");
	uint64_t turn_ns[CKT_DEVICES_MAX] = {0};
	struct ckt_turn_member members[CKT_DEVICES_MAX] = {{.used_ns = 7}, {.used_ns = 100}};
	ckt_session_metrics_add_turns(session, turn_ns);
	struct ckt_turn_gpu *turns = server.turns;
	server.turns = calloc(CKT_DEVICES_MAX, sizeof *server.turns);
	session->turn.members = members;
	session->turn.member_of = 2;
	ckt_session_metrics_add_turns(session, turn_ns);
	members[1].used_ns = 150;
	ckt_session_metrics_add_turns(session, turn_ns);
	/* It left the ring, and came back. */
	members[1].used_ns = 30;
	ckt_session_metrics_add_turns(session, turn_ns);
	IS(turn_ns[0], 0);
	IS(turn_ns[1], 180);
	session->turn.members = NULL;
	session->turn.member_of = 0;
	free(server.turns);
	server.turns = turns;
	session_drop(session);
}

UNIT_SUITE(session_metrics, {"counts", test_counts}, {"lies", test_lies}, {"none", test_none},
	{"turns", test_turns})
