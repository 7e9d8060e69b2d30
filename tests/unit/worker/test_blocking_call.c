/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/blocking_call.c: calls that may last for ever run at one time, and are
 * finished by who asks.
 */
#include "server/worker/session/blocking_call.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "rpc/net.h"
#include "tests/unit/worker/inside.h"

struct job {
	struct ckt_long_call_job base;
	sem_t *wait, *post;
	CUcontext seen;
};

static unsigned finished;

static void run(struct ckt_long_call_job *base)
{
	struct job *job = (struct job *)base;
	ckt_driver.cuCtxGetCurrent(&job->seen);
	sem_post(job->post);
	sem_wait(job->wait);
}

static void finish(struct ckt_worker *worker, struct ckt_long_call_job *base)
{
	struct job *job = (struct job *)base;
	YES(job->seen == worker->current->real);
	finished++;
	free(job);
}

static int submit(sem_t *wait, sem_t *post)
{
	struct job *job = calloc(1, sizeof *job);
	*job = (struct job){.base = {.run = run, .finish = finish}, .wait = wait, .post = post};
	int error = ckt_blocking_call_submit(&ckt_worker, &job->base);
	if (error)
		free(job);
	return error;
}

static bool both(void *data)
{
	return finished == *(unsigned *)data;
}

static void test_apart(void)
{
	sem_t first, second, begun;
	unsigned wanted = 1;
	sem_init(&first, 0, 0);
	sem_init(&second, 0, 0);
	sem_init(&begun, 0, 0);
	finished = 0;
	NO(ckt_blocking_call_is_busy(&ckt_worker));
	submit(&first, &begun);
	submit(&second, &begun);
	/* Neither waits for the other's end. */
	sem_wait(&begun);
	sem_wait(&begun);
	YES(ckt_blocking_call_is_busy(&ckt_worker));
	IS(ckt_blocking_call_wait(&ckt_worker, both, &wanted, ckt_net_now_ms() + 20), -ETIMEDOUT);
	IS(finished, 0);
	sem_post(&second);
	IS(ckt_blocking_call_wait(&ckt_worker, both, &wanted, -1), 0);
	YES(ckt_blocking_call_is_busy(&ckt_worker));
	sem_post(&first);
	wanted = 2;
	IS(ckt_blocking_call_wait(&ckt_worker, both, &wanted, -1), 0);
	NO(ckt_blocking_call_is_busy(&ckt_worker));
	/* Mail for the executor, which is frozen: it would have finished them. */
	YES(atomic_load(&ckt_worker.mail));
}

/* As many as there may be, and not one more. */
static void test_limit(void)
{
	sem_t wait, begun;
	unsigned wanted = CKT_APART_MAX;
	sem_init(&wait, 0, 0);
	sem_init(&begun, 0, 0);
	finished = 0;
	for (int i = 0; i < CKT_APART_MAX; i++)
		MUST(submit(&wait, &begun), 0);
	IS(submit(&wait, &begun), -EAGAIN);
	for (int i = 0; i < CKT_APART_MAX; i++)
		sem_post(&wait);
	IS(ckt_blocking_call_wait(&ckt_worker, both, &wanted, -1), 0);
	sem_post(&wait);
	IS(submit(&wait, &begun), 0);
	wanted++;
	IS(ckt_blocking_call_wait(&ckt_worker, both, &wanted, -1), 0);
}

UNIT_SUITE(apart, {"two at one time", test_apart}, {"as many as there may be", test_limit})
