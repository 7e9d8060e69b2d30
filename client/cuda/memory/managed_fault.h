/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory that the program touches.  Everything needs the lock of managed_region.h. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_managed_region;
struct ckt_managed_walk;

/*
 * Fetches the chunks that the device has and opens all of them, for writing if that is requested.
 */
CUresult ckt_managed_open(struct ckt_managed_region *r, uint64_t first, uint64_t count, bool write);
/* The region is being closed. */
void ckt_managed_walk_end(struct ckt_managed_walk *walk);
/* Installs the handler of SIGSEGV, and removes it again. */
void ckt_managed_watch(void);
void ckt_managed_unwatch(void);
