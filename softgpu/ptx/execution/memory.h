/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a device address to memory of this process (memory.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/grid.h"

/* The host memory at a device address, as lane `lane` sees it; NULL after recording a fault. */
uint8_t *ckt_ptx_memory(struct ptx_warp *w, unsigned lane, enum ptx_space space, uint64_t address,
	uint32_t size, uint8_t access);
/*
 * The same, but fast if the lane's page is that of the previous access, or if the address is
 * clearly in the block's shared memory.  size_bytes is at most 16 or a power of two, so that an
 * aligned access stays within its page.
 */
static inline uint8_t *ckt_ptx_memory_quick(struct ptx_warp *w, unsigned lane, enum ptx_space space,
	uint64_t address, uint32_t size_bytes, uint8_t access)
{
	bool aligned = !(address & (size_bytes - 1));
	if (space == SP_SHARED) {
		if (aligned && address < PTX_SHARED_MAX &&
			address + size_bytes <= w->block->shared_bytes)
			return w->block->shared + address;
	} else if (space <= SP_CONST) {
		/*
		 * Pages of memory lie below every window, so a page that was looked up belongs to
		 * global memory.
		 */
		uint64_t page = (address >> CKT_SOFT_PAGE_SHIFT) + 1;
		if (aligned &&
			page == (access & CKT_SOFT_PAGE_WRITE ? w->last_page_write : w->last_page))
			return (uint8_t *)(uintptr_t)address;
	}
	return ckt_ptx_memory(w, lane, space, address, size_bytes, access);
}
static inline uint8_t *ckt_ptx_local(struct ptx_warp *w, unsigned lane, uint32_t offset)
{
	return w->local + (size_t)lane * w->stack_bytes + offset;
}
