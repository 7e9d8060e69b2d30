/* SPDX-License-Identifier: Apache-2.0 */
/* Long calls of the driver beside the executor; see long_call.h. */
#include "server/worker/session/long_call.h"

#include <pthread.h>

#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/worker.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct ckt_long_call_job *todo, **todo_last, *done, **done_last;
	_Atomic unsigned unfinished; /* submitted and not finished */
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.wanted = PTHREAD_COND_INITIALIZER,
	.todo_last = &calls.todo,
	.done_last = &calls.done};

static void append(struct ckt_long_call_job ***last, struct ckt_long_call_job *job)
{
	job->next = NULL;
	**last = job;
	*last = &job->next;
}

static struct ckt_long_call_job *take(
	struct ckt_long_call_job **first, struct ckt_long_call_job ***last)
{
	struct ckt_long_call_job *job = *first;
	if (job)
		*first = job->next;
	if (!*first)
		*last = first;
	return job;
}

static void *aside_thread(void *opaque)
{
	struct ckt_worker *worker = opaque;
	pthread_mutex_lock(&calls.lock);
	for (;;) {
		struct ckt_long_call_job *job = take(&calls.todo, &calls.todo_last);
		if (!job) {
			pthread_cond_wait(&calls.wanted, &calls.lock);
			continue;
		}
		pthread_mutex_unlock(&calls.lock);
		/* Each time: a new context may have the handle of one that is gone. */
		ckt_driver.cuCtxSetCurrent(job->context);
		job->run(job);
		pthread_mutex_lock(&calls.lock);
		append(&calls.done_last, job);
		atomic_store(&worker->mail, true);
		ckt_executor_wake(worker);
	}
	return NULL;
}

int ckt_long_call_start(struct ckt_worker *worker)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, aside_thread, worker);
	if (!error)
		pthread_detach(thread);
	return -error;
}

void ckt_long_call_submit(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	if (!job->context)
		job->context = worker->current->real;
	pthread_mutex_lock(&calls.lock);
	calls.unfinished++;
	append(&calls.todo_last, job);
	pthread_cond_signal(&calls.wanted);
	pthread_mutex_unlock(&calls.lock);
}

void ckt_long_call_finish(struct ckt_worker *worker)
{
	while (calls.unfinished) {
		pthread_mutex_lock(&calls.lock);
		struct ckt_long_call_job *job = take(&calls.done, &calls.done_last);
		pthread_mutex_unlock(&calls.lock);
		if (!job)
			return;
		/*
		 * What the driver printed about an image that it refused comes before the answer,
		 * behind which the program may end.
		 */
		ckt_printed_send(worker);
		job->finish(worker, job);
		calls.unfinished--;
	}
}

bool ckt_long_call_settle(struct ckt_worker *worker)
{
	enum { LONGEST_MS = 1000 };
	return calls.unfinished && !ckt_long_call_drain(worker, ckt_net_now_ms() + LONGEST_MS);
}

int ckt_long_call_drain(struct ckt_worker *worker, int64_t deadline_ms)
{
	for (;;) {
		ckt_long_call_finish(worker);
		if (!calls.unfinished)
			return 0;
		/*
		 * A load may wait for the GPU, and the GPU for an answer that only the caller can
		 * take.
		 */
		int result = ckt_hostcalls_rest(worker, deadline_ms);
		if (result)
			return result;
	}
}
