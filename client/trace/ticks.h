/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time stamps that cost a few nanoseconds: the processor's counter where it runs at one speed on
 * all processors, and the monotonic clock elsewhere.
 */
#pragma once

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <x86intrin.h>

#include "base/clock.h"

static inline bool ckt_ticks_invariant(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
}

/* counter: what ckt_ticks_invariant returned at the start. */
static inline uint64_t ckt_ticks_now(bool counter)
{
	return counter ? __rdtsc() : (uint64_t)ckt_now_ns();
}
