/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses that the soft GPU may access: a two-level table over the 47-bit address space in 4
 * KiB pages.
 *
 * Device memory of the soft GPU is ordinary memory of this process, and a device address equals the
 * host address.  The driver marks a page when memory is mapped (cuMemMap + cuMemSetAccess,
 * cuMemAlloc, pinned host memory) and unmarks it when the memory is unmapped.  The interpreter
 * checks the table before every global, generic and constant access.  Reads are lock-free; marking
 * takes a lock.  A leaf covers 1 GiB and is never freed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	CKT_SOFT_PAGE_SHIFT = 12,
	CKT_SOFT_PAGE = 1 << CKT_SOFT_PAGE_SHIFT,
	CKT_SOFT_LEAF_SHIFT = 30,
	CKT_SOFT_LEAF_PAGES = 1 << (CKT_SOFT_LEAF_SHIFT - CKT_SOFT_PAGE_SHIFT),
	CKT_SOFT_ROOT_ENTRIES = 1 << (47 - CKT_SOFT_LEAF_SHIFT),
	CKT_SOFT_PAGE_READ = 1,
	CKT_SOFT_PAGE_WRITE = 2,
};

/* Entry: an array of CKT_SOFT_LEAF_PAGES bytes of CKT_SOFT_PAGE_* bits, or NULL. */
extern uint8_t *_Atomic ckt_soft_memmap[CKT_SOFT_ROOT_ENTRIES];

/* Sets the bits of every page that [address, address + size) touches.  0 or -ENOMEM. */
int ckt_soft_memmap_set(uint64_t address, uint64_t size_bytes, uint8_t bits);

static inline bool ckt_soft_memmap_page_ok(uint64_t address, uint8_t bits)
{
	if (address >> 47)
		return false;
	const uint8_t *leaf = __atomic_load_n(
		(uint8_t **)&ckt_soft_memmap[address >> CKT_SOFT_LEAF_SHIFT], __ATOMIC_ACQUIRE);
	return leaf &&
		(leaf[(address >> CKT_SOFT_PAGE_SHIFT) & (CKT_SOFT_LEAF_PAGES - 1)] & bits) == bits;
}

/* True if the whole access [address, address + size_bytes), size_bytes >= 1, is allowed. */
static inline bool ckt_soft_memmap_ok(uint64_t address, uint32_t size_bytes, uint8_t bits)
{
	return ckt_soft_memmap_page_ok(address, bits) &&
		(((address ^ (address + size_bytes - 1)) >> CKT_SOFT_PAGE_SHIFT) == 0 ||
			ckt_soft_memmap_page_ok(address + size_bytes - 1, bits));
}
