/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of workers; see session_metrics.h. */
#include "server/daemon/session/session_metrics.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/daemon/metrics/owners.h"
#include "server/daemon/sealed_page.h"
#include "server/daemon/session/session.h"

enum { CALL_TIMEOUT_MS = 10000 };

/* The largest number that a double, which a reader makes of it, holds exactly. */
#define COUNT_MAX (UINT64_C(1) << 53)

static void answered(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_debug(
			"session %s: its worker counts nothing: %s", session->id, strerror(-error));
}

static void unmap(struct ckt_daemon_metrics *metrics)
{
	if (metrics->page)
		munmap((void *)metrics->page, CKT_METRICS_PAGE_SIZE);
	metrics->page = NULL;
}

void ckt_session_metrics_open(struct ckt_session *session)
{
	struct ckt_daemon_metrics *metrics = &session->metrics;
	if (!session->server->options.metrics || metrics->page)
		return;
	const void *page;
	int fd = ckt_sealed_page_make("cricket-metrics", CKT_METRICS_PAGE_SIZE, &page);
	if (fd < 0) {
		ckt_debug("session %s: no page for its metrics: %s", session->id, strerror(-fd));
		return;
	}
	metrics->page = page;
	memset(&metrics->seen, 0, sizeof metrics->seen);
	if (ckt_session_call(session, CKT_WORKER_METRICS, NULL, NULL, fd, NULL, 0, CALL_TIMEOUT_MS,
		    answered, NULL))
		unmap(metrics);
}

void ckt_session_metrics_close(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	if (server->options.metrics && (session->metrics.page || session->turn.members)) {
		unsigned owner = ckt_metrics_owner_index(server, session->uid);
		ckt_session_metrics_add(session, ckt_metrics_owner_at(owner));
		ckt_session_metrics_add_turns(session, ckt_metrics_owner_turns(owner));
	}
	unmap(&session->metrics);
}

/* Of counts alone: a field of memory_bytes is of now. */
static void add_counts(const struct ckt_session_metrics *page, struct ckt_session_metrics *seen,
	struct ckt_session_metrics *sums)
{
	size_t first = offsetof(struct ckt_session_metrics, calls) / sizeof(uint64_t),
	       end = offsetof(struct ckt_session_metrics, memory_bytes) / sizeof(uint64_t);
	const uint64_t *from = (const uint64_t *)page;
	uint64_t *old = (uint64_t *)seen, *to = (uint64_t *)sums;
	for (size_t i = first; i < end; i++) {
		uint64_t now = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		if (now <= old[i])
			continue;
		to[i] = now - old[i] > COUNT_MAX - to[i] ? COUNT_MAX : to[i] + (now - old[i]);
		old[i] = now;
	}
}

void ckt_session_metrics_add(struct ckt_session *session, struct ckt_session_metrics *sums)
{
	const struct ckt_session_metrics *page = session->metrics.page;
	const struct ckt_driver_info *driver = &session->server->driver;
	struct ckt_session_metrics *seen = &session->metrics.seen;
	if (!page)
		return;
	add_counts(page, seen, sums);
	seen->state = __atomic_load_n(&page->state, __ATOMIC_RELAXED);
	for (unsigned gpu = 0; gpu < driver->gpu_count && gpu < CKT_DEVICES_MAX; gpu++) {
		uint64_t bytes = __atomic_load_n(&page->memory_bytes[gpu], __ATOMIC_RELAXED);
		uint64_t most = driver->gpus[gpu].memory_bytes;
		seen->memory_bytes[gpu] = bytes < most ? bytes : most;
	}
}

void ckt_session_metrics_add_turns(struct ckt_session *session, uint64_t turn_ns[CKT_DEVICES_MAX])
{
	const struct ckt_daemon_turn *turn = &session->turn;
	uint64_t *seen = session->metrics.turn_ns;
	for (unsigned gpu = 0; turn->members && gpu < CKT_DEVICES_MAX; gpu++) {
		if (!(turn->member_of >> gpu & 1))
			continue;
		uint64_t now = ckt_turn_used_ns(
			&session->server->turns[gpu].ring, &turn->members[gpu], ckt_now_ns());
		/* A session that left and joined again begins at 0. */
		if (now < seen[gpu])
			seen[gpu] = 0;
		turn_ns[gpu] += now - seen[gpu];
		seen[gpu] = now;
	}
}
