/* SPDX-License-Identifier: Apache-2.0 */
/* The time that durations are measured by.  Threading: any. */
#pragma once

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC. */
static inline int64_t ckt_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
