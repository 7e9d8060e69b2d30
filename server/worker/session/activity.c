/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this worker is idle; see activity.h. */
#include "server/worker/session/activity.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "checkpoint/session.h"
#include "rpc/worker.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/session/call.h"
#include "server/worker/session/drain.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/waiting_call.h"
#include "server/worker/worker.h"

struct ckt_activity *_Atomic ckt_activity_page;

int ckt_activity_use(struct ckt_worker *worker, int fd)
{
	struct stat status;
	void *place = MAP_FAILED;
	int result = fstat(fd, &status) ? -errno : 0;
	if (!result && (!S_ISREG(status.st_mode) || status.st_size != CKT_ACTIVITY_PAGE_SIZE))
		result = -EINVAL;
	if (!result)
		place = mmap(
			NULL, CKT_ACTIVITY_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!result && place == MAP_FAILED)
		result = -errno;
	close(fd);
	if (result)
		return result;
	/* An earlier server's page stays mapped: the executor may be writing to it. */
	atomic_store_explicit(&ckt_activity_page, place, memory_order_release);
	ckt_executor_wake(worker);
	return 0;
}

void ckt_activity_end_idleness(struct ckt_activity *page)
{
	if (__atomic_load_n(&page->idle_since_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&page->idle_since_ns, 0, __ATOMIC_RELAXED);
}

/* A call that waits for memory of the GPU does nothing. */
static bool is_busy(struct ckt_worker *worker)
{
	char message[CKT_MESSAGE_MAX];
	return ckt_wcalls_open() > ckt_waiting_calls_count() ||
		ckt_streams_busy(worker, message, sizeof message);
}

/* SLEEP looks again, with the session frozen. */
static void note_sleep(struct ckt_activity *page, const struct ckt_worker *worker)
{
	char message[CKT_MESSAGE_MAX];
	bool peers = ckt_session_operations.has_peers(message, sizeof message);
	uint32_t sleep = worker->client_fd < 0                        ? CKT_ACTIVITY_SLEEP_NO_CLIENT
		: peers || ckt_ipc_is_shared(message, sizeof message) ? CKT_ACTIVITY_SLEEP_TIED
		: !worker->client_sleeps ? CKT_ACTIVITY_SLEEP_OLD_CLIENT
					 : CKT_ACTIVITY_SLEEP_MAY;
	__atomic_store_n(&page->sleep, sleep, __ATOMIC_RELAXED);
	__atomic_store_n(&page->shares, peers || ckt_ipc_shares(), __ATOMIC_RELAXED);
}

void ckt_activity_shares(void)
{
	struct ckt_activity *page = atomic_load_explicit(&ckt_activity_page, memory_order_acquire);
	if (page)
		__atomic_store_n(&page->shares, 1, __ATOMIC_RELAXED);
}

bool ckt_activity_sleeps(struct ckt_worker *worker)
{
	struct ckt_activity *page = atomic_load_explicit(&ckt_activity_page, memory_order_acquire);
	if (__builtin_expect(!page, 1))
		return false;
	note_sleep(page, worker);
	if (__atomic_load_n(&page->idle_since_ns, __ATOMIC_RELAXED))
		return false;
	if (is_busy(worker))
		return true;
	__atomic_store_n(&page->idle_since_ns, ckt_now_ns(), __ATOMIC_RELAXED);
	return false;
}
