/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of the program to pinned memory while the GPU works, and the macro that goes around every
 * wait for the GPU because of them.  Such a write does not wait for the GPU.
 */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cuda/memory/registered.h"

struct ckt_managed_region;

extern _Atomic unsigned ckt_managed_early;
void ckt_managed_send_early(void);

/* The next three functions need the lock of managed_region.h. */

/* Opens a chunk in state DEVICE for the program's write, although the GPU may still work. */
CUresult ckt_managed_open_early(struct ckt_managed_region *r, uint64_t chunk);
/*
 * Sends the program's changes in EARLY chunks and closes these chunks.  Sets *sent if there were
 * changes, and otherwise leaves it.
 */
CUresult ckt_managed_close_early(struct ckt_managed_region *r, bool *sent);
void ckt_managed_drop_early(struct ckt_managed_region *r);

/* Use it around every wait for the GPU: the kernel may itself wait for a write of the program. */
#define CKT_WAIT_FOR_GPU(expression, context)                                      \
	({                                                                         \
		if (__builtin_expect(ckt_managed_early != 0, 0))                   \
			ckt_managed_send_early();                                  \
		CUresult waited_ = ckt_registered_after_wait(expression, context); \
		if (__builtin_expect(ckt_managed_early != 0, 0))                   \
			ckt_managed_send_early();                                  \
		waited_;                                                           \
	})
