/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory as a buffer of system calls.  Both functions need the lock of managed_region.h,
 * except in ckt_managed_wake.
 */
#pragma once

#include <stdint.h>

/* These say whether the preloaded library must call us before a system call on this range. */
void ckt_buffers_enter(uint64_t base, uint64_t size);
void ckt_buffers_leave(uint64_t base, uint64_t size);
