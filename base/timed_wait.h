/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of threads that end by the monotonic clock: a step of the day's clock neither ends them early
 * nor makes them last for days, as it does with pthread_cond_timedwait.  Threading: any.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/*
 * Until somebody signals or deadline_ns, of ckt_now_ns.  0, also for no reason; ETIMEDOUT.
 * Precondition: locked.
 */
static inline int ckt_cond_wait_until(
	pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};
	return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until);
}
