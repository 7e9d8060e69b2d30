/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/arena.c: pieces that never overlap, zeros, alignment, joining, the wish, and a
 * heap of small units.
 */
#include <sys/mman.h>

#include "files.h"
#include "softgpu/memory/arena.h"

enum { MIB = 1 << 20 };

static void drop(struct ckt_soft_arena *arena)
{
	munmap((void *)(uintptr_t)arena->base, arena->size);
	ckt_soft_arena_fini(arena);
}

static void test_pieces(void)
{
	struct ckt_soft_arena arena;
	MUST(ckt_soft_arena_init(&arena, 0, 16 * MIB), 0);
	IS(arena.base % CKT_SOFT_GRANULE, 0);
	uint64_t a = ckt_soft_arena_alloc(&arena, 1), b = ckt_soft_arena_alloc(&arena, 4097),
		 c = ckt_soft_arena_alloc(&arena, 4096);
	IS(a, arena.base);
	IS(b, a + 4096);
	IS(c, b + 8192);
	/* What was written is gone for the next owner. */
	memset((void *)(uintptr_t)b, 0xff, 8192);
	ckt_soft_arena_free(&arena, b, 4097);
	uint64_t again = ckt_soft_arena_alloc(&arena, 8192);
	IS(again, b);
	for (unsigned i = 0; i < 8192; i++)
		if (((unsigned char *)(uintptr_t)again)[i]) {
			CU_FAIL("not zeros");
			break;
		}
	/* 2 MiB and more begin on a granule; the gap before it is still given out. */
	uint64_t large = ckt_soft_arena_alloc(&arena, 2 * MIB),
		 small = ckt_soft_arena_alloc(&arena, 4096);
	IS(large, arena.base + 2 * MIB);
	IS(small, c + 4096);
	IS(ckt_soft_arena_alloc(&arena, 13 * MIB), 0);
	IS(ckt_soft_arena_alloc(&arena, 12 * MIB), arena.base + 4 * MIB);
	drop(&arena);
}

/* A thousand random steps against a plain list; at the end all is one piece again. */
static void test_model(void)
{
	struct ckt_soft_arena arena;
	struct {
		uint64_t base, size;
	} live[64] = {{0, 0}};
	unsigned seed = 7, n_allocated = 0;
	MUST(ckt_soft_arena_init(&arena, 0, 8 * MIB), 0);
	for (unsigned step = 0; step < 2000; step++) {
		seed = seed * 1103515245 + 12345;
		unsigned i = seed >> 16 & 63, size = (seed >> 8 & 0xff) * 1021 + 1;
		if (live[i].base) {
			ckt_soft_arena_free(&arena, live[i].base, live[i].size);
			live[i].base = 0;
			continue;
		}
		uint64_t base = ckt_soft_arena_alloc(&arena, size);
		if (!base)
			continue;
		n_allocated++;
		YES(base % 4096 == 0 && base >= arena.base &&
			base + size <= arena.base + arena.size);
		for (unsigned k = 0; k < 64; k++)
			if (live[k].base && base < live[k].base + live[k].size &&
				live[k].base < base + size)
				CU_FAIL("overlap");
		live[i].base = base;
		live[i].size = size;
	}
	YES(n_allocated > 500);
	for (unsigned k = 0; k < 64; k++)
		if (live[k].base)
			ckt_soft_arena_free(&arena, live[k].base, live[k].size);
	IS(arena.n_free, 1);
	IS(arena.free_list[0].base, arena.base);
	IS(arena.free_list[0].size, arena.size);
	drop(&arena);
}

/* More holes than the list has room for at first. */
static void test_holes(void)
{
	struct ckt_soft_arena arena;
	uint64_t page[200];
	MUST(ckt_soft_arena_init(&arena, 0, 2 * MIB), 0);
	for (unsigned i = 0; i < 200; i++)
		page[i] = ckt_soft_arena_alloc(&arena, 4096);
	for (unsigned i = 0; i < 200; i += 2)
		ckt_soft_arena_free(&arena, page[i], 4096);
	IS(arena.n_free, 101);
	for (unsigned i = 0; i < 200; i += 2)
		IS(ckt_soft_arena_alloc(&arena, 4096), page[i]);
	IS(arena.n_free, 1);
	drop(&arena);
}

static void test_wish(void)
{
	struct ckt_soft_arena first, second;
	void *place =
		mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t wish = ((uint64_t)(uintptr_t)place + 4 * MIB) & ~(uint64_t)(CKT_SOFT_GRANULE - 1);
	munmap(place, 8 * MIB);
#ifndef __SANITIZE_THREAD__
	MUST(ckt_soft_arena_init(&first, wish, 2 * MIB), 0);
	IS(first.base, wish);
#else
	MUST(ckt_soft_arena_init(&first, 0, 2 * MIB), 0);
	wish = first.base;
#endif
	/* Taken: elsewhere, and what is there stays. */
	uint64_t mine = ckt_soft_arena_alloc(&first, 4);
	*(int *)(uintptr_t)mine = 42;
	MUST(ckt_soft_arena_init(&second, wish, 2 * MIB), 0);
	YES(second.base >= first.base + first.size || second.base + second.size <= first.base);
	IS(*(int *)(uintptr_t)mine, 42);
	drop(&second);
	drop(&first);
}

static void test_heap(void)
{
	static _Alignas(16) unsigned char block[256];
	struct ckt_soft_arena arena;
	uint64_t base = (uint64_t)(uintptr_t)block;
	memset(block, 7, sizeof(block));
	MUST(ckt_soft_arena_init_at(&arena, base, sizeof(block)), 0);
	IS(ckt_soft_arena_alloc(&arena, 1), base);
	IS(ckt_soft_arena_alloc(&arena, 17), base + 16);
	IS(ckt_soft_arena_alloc(&arena, 208), base + 48);
	IS(ckt_soft_arena_alloc(&arena, 1), 0);
	/* It is the caller's memory: never cleared, never unmapped. */
	ckt_soft_arena_free(&arena, base + 16, 17);
	IS(block[16], 7);
	IS(ckt_soft_arena_alloc(&arena, 32), base + 16);
	ckt_soft_arena_fini(&arena);
}

UNIT_SUITE(softgpu / memory / arena, {"pieces", test_pieces}, {"model", test_model},
	{"holes", test_holes}, {"wish", test_wish}, {"heap", test_heap})
