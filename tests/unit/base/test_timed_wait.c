/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/timed_wait.h under a clock of the day that goes back by a day at every look: who waits by it
 * ends at once.
 */
#include "base/timed_wait.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/suite.h"

enum { DAY_S = 86400 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool done;
static unsigned looks;

/* In place of libc's, in this program. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, id, now);
	if (id == CLOCK_REALTIME)
		now->tv_sec -= ++looks * DAY_S;
	return result;
}

static void *signal_it(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	done = true;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void test_signalled(void)
{
	pthread_t thread;
	int error = 0;
	done = false;
	pthread_mutex_lock(&lock);
	MUST(pthread_create(&thread, NULL, signal_it, NULL), 0);
	int64_t until = ckt_now_ns() + INT64_C(60000000000);
	while (!done && !error)
		error = ckt_cond_wait_until(&cond, &lock, until);
	pthread_mutex_unlock(&lock);
	IS(error, 0);
	YES(done);
	pthread_join(thread, NULL);
}

static void test_late(void)
{
	int error = 0;
	int64_t begun = ckt_now_ns();
	pthread_mutex_lock(&lock);
	/* It may end for no reason, and only that. */
	while (!error)
		error = ckt_cond_wait_until(&cond, &lock, begun + 20000000);
	IS(error, ETIMEDOUT);
	CU_ASSERT_TRUE(ckt_now_ns() - begun >= 20000000);
	/* What is over ends at once. */
	IS(ckt_cond_wait_until(&cond, &lock, begun), ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	IS(looks, 0);
}

UNIT_SUITE(timed_wait, {"signalled", test_signalled}, {"late", test_late})
