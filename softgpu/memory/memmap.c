/* SPDX-License-Identifier: Apache-2.0 */
/* The table of accessible pages.  See memmap.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softgpu/memory/memmap.h"

uint8_t *_Atomic ckt_soft_memmap[CKT_SOFT_ROOT_ENTRIES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int ckt_soft_memmap_set(uint64_t address, uint64_t size_bytes, uint8_t bits)
{
	if (size_bytes == 0)
		return 0;
	uint64_t page = address >> CKT_SOFT_PAGE_SHIFT,
		 last = (address + size_bytes - 1) >> CKT_SOFT_PAGE_SHIFT;
	if (last < page || last >> (47 - CKT_SOFT_PAGE_SHIFT))
		return -ENOMEM;
	int result = 0;
	pthread_mutex_lock(&lock);
	while (page <= last) {
		uint64_t root = page / CKT_SOFT_LEAF_PAGES, first = page % CKT_SOFT_LEAF_PAGES;
		uint64_t n = CKT_SOFT_LEAF_PAGES - first;
		if (n > last - page + 1)
			n = last - page + 1;
		uint8_t *leaf = ckt_soft_memmap[root];
		if (!leaf && bits) {
			/*
			 * mmap makes a sparsely used leaf cost only its accessed pages, and zeroes
			 * them.
			 */
			leaf = mmap(NULL, CKT_SOFT_LEAF_PAGES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (leaf == MAP_FAILED) {
				result = -ENOMEM;
				break;
			}
			ckt_soft_memmap[root] = leaf;
		}
		if (leaf)
			memset(leaf + first, bits, n);
		page += n;
	}
	pthread_mutex_unlock(&lock);
	return result;
}
