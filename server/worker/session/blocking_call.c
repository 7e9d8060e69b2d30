/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that may last for ever; see blocking_call.h. */
#include "server/worker/session/blocking_call.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

enum { LOOK_NS = 200000 };

static struct {
	pthread_mutex_t lock;
	struct ckt_long_call_job *done, **done_last;
	unsigned unfinished; /* the executor's */
} apart = {.lock = PTHREAD_MUTEX_INITIALIZER, .done_last = &apart.done};

static void *run(void *opaque)
{
	struct ckt_long_call_job *job = opaque;
	ckt_driver.cuCtxSetCurrent(job->context);
	job->run(job);
	pthread_mutex_lock(&apart.lock);
	job->next = NULL;
	*apart.done_last = job;
	apart.done_last = &job->next;
	pthread_mutex_unlock(&apart.lock);
	atomic_store(&ckt_worker.mail, true);
	ckt_executor_wake(&ckt_worker);
	return NULL;
}

int ckt_blocking_call_submit(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	pthread_attr_t attributes;
	pthread_t thread;
	if (apart.unfinished >= CKT_APART_MAX)
		return -EAGAIN;
	if (!job->context)
		job->context = worker->current->real;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &attributes, run, job);
	pthread_attr_destroy(&attributes);
	/* It may have run by now, but only we finish it. */
	apart.unfinished += !error;
	return error ? -EAGAIN : 0;
}

void ckt_blocking_call_finish(struct ckt_worker *worker)
{
	while (apart.unfinished) {
		pthread_mutex_lock(&apart.lock);
		struct ckt_long_call_job *job = apart.done;
		if (job)
			apart.done = job->next;
		if (!apart.done)
			apart.done_last = &apart.done;
		pthread_mutex_unlock(&apart.lock);
		if (!job)
			return;
		/* Before it is finished: that may submit the next one. */
		apart.unfinished--;
		job->finish(worker, job);
	}
}

int ckt_blocking_call_wait(
	struct ckt_worker *worker, bool (*done)(void *data), void *data, int64_t deadline_ms)
{
	for (;;) {
		ckt_blocking_call_finish(worker);
		if (done(data))
			return 0;
		if (deadline_ms >= 0 && ckt_net_now_ms() >= deadline_ms)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}

bool ckt_blocking_call_is_busy(struct ckt_worker *worker)
{
	ckt_blocking_call_finish(worker);
	return apart.unfinished > 0;
}
