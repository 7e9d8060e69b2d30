/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory as a buffer of system calls. */
#pragma once

#include <stdint.h>

/* The region's addresses are, or are no longer, memory for which system calls must ask. */
void ckt_buffers_enter(uint64_t base, uint64_t size);
void ckt_buffers_leave(uint64_t base, uint64_t size);
