/* SPDX-License-Identifier: Apache-2.0 */
/* base/thread.h: no signal reaches such a thread, whose starter's signals are as before. */
#include "base/thread.h"

#include <errno.h>
#include <semaphore.h>

#include "tests/unit/suite.h"

enum { STACK_BYTES = 1 << 20 };

static sem_t ended;

static void *look(void *context)
{
	pthread_sigmask(SIG_SETMASK, NULL, context);
	sem_post(&ended);
	return context;
}

static void test_signals(void)
{
	sigset_t one, here, there;
	pthread_t thread;
	void *result = NULL;
	sem_init(&ended, 0, 0);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	IS(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
	IS(ckt_thread_start(&thread, STACK_BYTES, look, &there), 0);
	IS(pthread_join(thread, &result), 0);
	CU_ASSERT_PTR_EQUAL(result, &there);
	IS(sigismember(&there, SIGINT), 1);
	IS(sigismember(&there, SIGCHLD), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &here);
	IS(sigismember(&here, SIGUSR2), 1);
	IS(sigismember(&here, SIGINT), 0);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	sem_wait(&ended);
}

static void test_detached(void)
{
	sigset_t there;
	IS(ckt_thread_start(NULL, 0, look, &there), 0);
	sem_wait(&ended);
	IS(sigismember(&there, SIGTERM), 1);
}

/* More stack than there are addresses. */
static void test_refused(void)
{
	sigset_t there, here;
	pthread_t thread;
	IS(ckt_thread_start(&thread, (size_t)1 << 62, look, &there), -EAGAIN);
	pthread_sigmask(SIG_SETMASK, NULL, &here);
	IS(sigismember(&here, SIGINT), 0);
}

UNIT_SUITE(
	thread, {"signals", test_signals}, {"detached", test_detached}, {"refused", test_refused})
