/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks and joins with an end, a time of CLOCK_MONOTONIC (NULL: none).  They look again and again, ten
 * times a millisecond: ThreadSanitizer takes a lock of pthread_mutex_clocklock for none, and a thread
 * joined by pthread_clockjoin_np for one that still runs.  Threading: any.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* Sleeps until the next look.  False: that was the last one. */
static inline bool ckt_until_again(const struct timespec *until)
{
	if (ckt_now_ns() >= (int64_t)until->tv_sec * 1000000000 + until->tv_nsec)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	return true;
}

/* False: somebody else still has it. */
static inline bool ckt_lock_until(pthread_mutex_t *lock, const struct timespec *until)
{
	if (!until)
		return pthread_mutex_lock(lock) == 0;
	while (pthread_mutex_trylock(lock))
		if (!ckt_until_again(until))
			return false;
	return true;
}

/* False: the thread still runs. */
static inline bool ckt_join_until(pthread_t thread, const struct timespec *until)
{
	if (!until)
		return pthread_join(thread, NULL) == 0;
	while (pthread_tryjoin_np(thread, NULL))
		if (!ckt_until_again(until))
			return false;
	return true;
}
