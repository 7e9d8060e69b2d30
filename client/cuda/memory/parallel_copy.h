/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of host memory by several threads, past the caches: for large copies between the program's
 * memory and memory that the GPU reads or wrote, where one thread is slower than the GPU's copies.
 */
#pragma once

#include <stddef.h>

/*
 * memcpy by the calling thread and some helpers, at most a quarter of that many processors.  The
 * helpers are made at first use, sleep in between, and handle no signal of the program's but faults.
 * One caller at a time has them; others copy by themselves.
 */
void ckt_parallel_copy(void *dst, const void *src, size_t size, unsigned processors);
