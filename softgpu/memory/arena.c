/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory for cuMemAlloc: pages of one address range per device, reserved once.  A single
 * range keeps the number of the kernel's mappings small, however many allocations a program makes.
 * memmap decides which pages kernels may access.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softgpu/memory/arena.h"
#include "base/sorted.h"
#include "softgpu/memory/memmap.h"

enum {
	GROW = 64 << 20
}; /* the range becomes accessible in steps, so strict overcommit counts only used memory */

static int arena_start(struct ckt_soft_arena *arena, uint64_t base, uint64_t size, uint64_t unit)
{
	pthread_mutex_init(&arena->lock, NULL);
	arena->unit = unit;
	arena->base = base;
	arena->size = size;
	arena->n_free_max = 16;
	arena->free_list = malloc(arena->n_free_max * sizeof(*arena->free_list));
	if (!arena->free_list)
		return -ENOMEM;
	arena->free_list[0] = (struct ckt_soft_extent){.base = base, .size = size};
	arena->n_free = 1;
	return 0;
}

int ckt_soft_arena_init(struct ckt_soft_arena *arena, uint64_t wish, uint64_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#ifdef __SANITIZE_THREAD__
	/*
	 * ThreadSanitizer replaces a fixed address that it needs itself with address 0, and root
	 * gets a mapping there.  The address below is free under the sanitizer.
	 */
	if (wish)
		wish += 0x7ed000000000 - 0x300000000000;
#endif
	void *p = wish
		? mmap((void *)(uintptr_t)wish, size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0)
		: MAP_FAILED;
	if (p != MAP_FAILED && p != (void *)(uintptr_t)wish) {
		/* a kernel that does not know the flag treats the address as a hint */
		munmap(p, size);
		p = MAP_FAILED;
	}
	if (p == MAP_FAILED)
		p = mmap(NULL, size + CKT_SOFT_GRANULE, PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	uint64_t base =
		((uint64_t)(uintptr_t)p + CKT_SOFT_GRANULE - 1) & ~(uint64_t)(CKT_SOFT_GRANULE - 1);
	arena->readable_end = base;
	return arena_start(arena, base, size, CKT_SOFT_PAGE);
}

int ckt_soft_arena_init_at(struct ckt_soft_arena *arena, uint64_t base, uint64_t size)
{
	arena->readable_end = base + size;
	return arena_start(arena, base, size, 16);
}

void ckt_soft_arena_fini(struct ckt_soft_arena *arena)
{
	pthread_mutex_destroy(&arena->lock);
	free(arena->free_list);
}

uint64_t ckt_soft_arena_alloc(struct ckt_soft_arena *arena, uint64_t size)
{
	uint64_t address = 0;
	size = (size + arena->unit - 1) & ~(arena->unit - 1);
	/* Large allocations begin on a granule, as on a real device; programs check this. */
	uint64_t align = size >= CKT_SOFT_GRANULE && arena->unit == CKT_SOFT_PAGE ? CKT_SOFT_GRANULE
										  : arena->unit;
	pthread_mutex_lock(&arena->lock);
	/* A split in the middle needs one more entry, so allocate it before any change. */
	if (arena->n_free + 1 > arena->n_free_max) {
		struct ckt_soft_extent *bigger =
			realloc(arena->free_list, 2 * arena->n_free_max * sizeof(*bigger));
		if (!bigger)
			goto out;
		arena->free_list = bigger;
		arena->n_free_max *= 2;
	}
	for (size_t i = 0; i < arena->n_free; i++) {
		struct ckt_soft_extent *e = &arena->free_list[i];
		uint64_t start = (e->base + align - 1) & ~(align - 1), skip = start - e->base;
		if (e->size < skip || e->size - skip < size)
			continue;
		uint64_t end = start + size, e_end = e->base + e->size;
		if (end > arena->readable_end) {
			uint64_t to = (end - arena->base + GROW - 1) / GROW * GROW + arena->base;
			if (to > arena->base + arena->size)
				to = arena->base + arena->size;
			if (mprotect((void *)(uintptr_t)arena->readable_end,
				    to - arena->readable_end, PROT_READ | PROT_WRITE))
				break;
			arena->readable_end = to;
		}
		if (skip && end < e_end) {
			memmove(e + 2, e + 1, (arena->n_free - i - 1) * sizeof(*e));
			e[1] = (struct ckt_soft_extent){.base = end, .size = e_end - end};
			e->size = skip;
			arena->n_free++;
		} else if (skip) {
			e->size = skip;
		} else if (end < e_end) {
			*e = (struct ckt_soft_extent){.base = end, .size = e_end - end};
		} else {
			memmove(e, e + 1, (arena->n_free - i - 1) * sizeof(*e));
			arena->n_free--;
		}
		address = start;
		break;
	}
out:
	pthread_mutex_unlock(&arena->lock);
	return address;
}

void ckt_soft_arena_free(struct ckt_soft_arena *arena, uint64_t base, uint64_t size)
{
	size = (size + arena->unit - 1) & ~(arena->unit - 1);
	/* The next owner must find zeros.  This also returns the pages to the host. */
	if (arena->unit == CKT_SOFT_PAGE)
		madvise((void *)(uintptr_t)base, size, MADV_DONTNEED);
	pthread_mutex_lock(&arena->lock);
	struct ckt_soft_extent *list = arena->free_list;
	size_t at = CKT_SORTED_UPPER(list, arena->n_free, base, base);
	bool joins_before = at > 0 && list[at - 1].base + list[at - 1].size == base;
	bool joins_after = at < arena->n_free && base + size == list[at].base;
	if (joins_before && joins_after) {
		list[at - 1].size += size + list[at].size;
		memmove(&list[at], &list[at + 1], (arena->n_free - at - 1) * sizeof(*list));
		arena->n_free--;
	} else if (joins_before) {
		list[at - 1].size += size;
	} else if (joins_after) {
		list[at].base = base;
		list[at].size += size;
	} else {
		if (arena->n_free == arena->n_free_max) {
			list = realloc(list, 2 * arena->n_free_max * sizeof(*list));
			if (!list) {
				/*
				 * The process loses this piece of memory; there is no other effect.
				 */
				pthread_mutex_unlock(&arena->lock);
				return;
			}
			arena->free_list = list;
			arena->n_free_max *= 2;
		}
		memmove(&list[at + 1], &list[at], (arena->n_free - at) * sizeof(*list));
		list[at] = (struct ckt_soft_extent){.base = base, .size = size};
		arena->n_free++;
	}
	pthread_mutex_unlock(&arena->lock);
}
