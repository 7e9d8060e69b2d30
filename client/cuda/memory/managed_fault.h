/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults of the program on managed memory.  All functions need the lock of managed_region.h.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_managed_region;
struct ckt_managed_walk;

/*
 * Fetches those chunks that are in state DEVICE and opens all of them for reading (write: also for
 * writing).
 */
CUresult ckt_managed_open(struct ckt_managed_region *r, uint64_t first, uint64_t count, bool write);
/* Call it when all chunks of the region are closed. */
void ckt_managed_walk_end(struct ckt_managed_walk *walk);
/* These install and remove the handler of SIGSEGV. */
void ckt_managed_watch(void);
void ckt_managed_unwatch(void);
