/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that the program wrote while the GPU works, which it need not wait for; and what
 * goes around every wait for the GPU because of that.
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

/* Of a region.  These three functions need the lock of managed_region.h. */

/* Opens a chunk that the device has for the program's write, although the GPU may still work. */
CUresult ckt_managed_open_early(struct ckt_managed_region *r, uint64_t chunk);
/* Sends the program's changes to such chunks, and closes them; *sent: there were changes. */
CUresult ckt_managed_close_early(struct ckt_managed_region *r, bool *sent);
void ckt_managed_drop_early(struct ckt_managed_region *r);

/*
 * Around every wait for the GPU: the kernel that is waited for may be waiting for what the program
 * wrote.
 */
#define CKT_WAIT_FOR_GPU(expression, context)                                      \
	({                                                                         \
		if (__builtin_expect(ckt_managed_early != 0, 0))                   \
			ckt_managed_send_early();                                  \
		CUresult waited_ = ckt_registered_after_wait(expression, context); \
		if (__builtin_expect(ckt_managed_early != 0, 0))                   \
			ckt_managed_send_early();                                  \
		waited_;                                                           \
	})
