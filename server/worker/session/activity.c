/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this worker is idle; see activity.h. */
#include "server/worker/session/activity.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/worker.h"
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

bool ckt_activity_sleeps(struct ckt_worker *worker)
{
	struct ckt_activity *page = atomic_load_explicit(&ckt_activity_page, memory_order_acquire);
	if (__builtin_expect(!page, 1) || __atomic_load_n(&page->idle_since_ns, __ATOMIC_RELAXED))
		return false;
	if (is_busy(worker))
		return true;
	__atomic_store_n(&page->idle_since_ns, ckt_now_ns(), __ATOMIC_RELAXED);
	return false;
}
