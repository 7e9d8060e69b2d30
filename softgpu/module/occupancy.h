/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks of a kernel fit on a multiprocessor. */
#pragma once

#include <stddef.h>

struct ckt_soft_device;
struct ckt_soft_function;

/*
 * The number of blocks with these threads and dynamic shared bytes that fit on one multiprocessor;
 * 0: none.
 */
unsigned ckt_soft_occupancy(const struct ckt_soft_function *function,
	const struct ckt_soft_device *device, unsigned threads, size_t dynamic_shared);
