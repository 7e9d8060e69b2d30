/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/pool_arena.c: what an H200 (driver 580.159, 2026-11-22) told about its pools,
 * allocation by allocation.
 */
#include "cudacommon/pool_arena.h"

#include "tests/unit/suite.h"

#define K ((uint64_t)1 << 10)
#define M ((uint64_t)1 << 20)

enum { S = 10, T = 11 }; /* streams */

static struct ckt_pool_arena arena;

static void figures(uint64_t used, uint64_t reserved)
{
	IS(arena.used, used);
	IS(arena.reserved, reserved);
}

static uint64_t at(uint64_t key)
{
	for (size_t i = 0; i < arena.count; i++)
		if (arena.slots[i].key == key)
			return arena.slots[i].begin / CKT_POOL_ARENA_UNIT;
	return UINT64_MAX;
}

static void test_sizes(void)
{
	const struct {
		uint64_t bytes, reserved;
	} cases[] = {{1, 32 * M}, {256, 32 * M}, {512, 32 * M}, {513, 32 * M}, {1000, 32 * M},
		{64 * K, 32 * M}, {64 * K + 1, 32 * M}, {100000, 32 * M}, {M, 32 * M},
		{2 * M + 1, 32 * M}, {31 * M, 32 * M}, {32 * M - 1, 32 * M}, {32 * M, 32 * M},
		{32 * M + 1, 64 * M}, {33 * M, 64 * M}, {64 * M, 64 * M}, {64 * M + 1, 96 * M},
		{100 * M, 128 * M}, {200 * M + 5, 224 * M}, {1024 * M, 1024 * M},
		{1024 * M + 1, 1056 * M}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		IS(ckt_pool_arena_growth(&arena, cases[i].bytes, S), cases[i].reserved);
		YES(ckt_pool_arena_take(&arena, 1, cases[i].bytes, S));
		figures(cases[i].bytes, cases[i].reserved);
		ckt_pool_arena_hold(&arena, 1, S);
		figures(0, cases[i].reserved);
		/* The GPU has come there, and the program waited. */
		ckt_pool_arena_drop(&arena, 1);
		ckt_pool_arena_trim(&arena, 0);
		figures(0, 0);
		IS(arena.used_high, cases[i].bytes);
		IS(arena.reserved_high, cases[i].reserved);
		ckt_pool_arena_reset_used(&arena);
		ckt_pool_arena_reset_reserved(&arena);
		IS(arena.used_high + arena.reserved_high, 0);
	}
	NO(ckt_pool_arena_take(&arena, 1, UINT64_MAX, S));
	figures(0, 0);
	ckt_pool_arena_fini(&arena);
}

/*
 * Sizes one behind the other: where each lay in units of 512 bytes, and what was used and reserved
 * then.
 */
static void test_row(void)
{
	const struct {
		uint64_t bytes, place, used, reserved;
	} row[] = {{1, 0, 1, 32}, {513, 1, 514, 32}, {1025, 3, 1539, 32}, {2 * K, 6, 3587, 32},
		{4 * K, 10, 7683, 32}, {5000, 18, 12683, 32}, {8 * K, 28, 20875, 32},
		{16 * K, 44, 37259, 32}, {20000, 76, 57259, 32}, {32 * K, 116, 90027, 32},
		{40000, 180, 130027, 32}, {64 * K, 259, 195563, 32}, {65537, 387, 261100, 32},
		{70000, 516, 331100, 32}, {131072, 653, 462172, 32}, {200000, 909, 662172, 32},
		{256 * K, 1300, 924316, 32}, {512 * K, 1812, 1448604, 32},
		{600000, 2836, 2048604, 32}, {M, 4008, 3097180, 32}, {M + 1, 6056, 4145757, 32},
		{2 * M, 8105, 6242909, 32}, {3 * M, 12201, 9388637, 32},
		{4 * M + 1, 18345, 13582942, 32}, {8 * M, 26538, 21971550, 32},
		{1, 42922, 21971551, 32}, {512, 42923, 21972063, 32}, {64 * K, 42924, 22037599, 32},
		{M, 43052, 23086175, 32}, {2 * M, 45100, 25183327, 32},
		{10 * M, 49196, 35669087, 64}, {20 * M, 69676, 56640607, 64},
		{1, 110636, 56640608, 64}, {30 * M, 110637, 88097888, 96},
		{2 * M, 172077, 90195040, 96}, {512, 176173, 90195552, 96}};
	for (size_t i = 0; i < COUNT(row); i++) {
		YES(ckt_pool_arena_take(&arena, i + 1, row[i].bytes, S));
		IS(at(i + 1), row[i].place);
		figures(row[i].used, row[i].reserved * M);
	}
	ckt_pool_arena_fini(&arena);
}

/* What its own stream freed is a stream's at once, in parts and joined; another's is not. */
static void test_streams(void)
{
	for (uint64_t key = 1; key <= 3; key++)
		YES(ckt_pool_arena_take(&arena, key, M, S));
	ckt_pool_arena_hold(&arena, 2, S);
	YES(ckt_pool_arena_take(&arena, 4, 512 * K, S));
	IS(at(4), 2048);
	YES(ckt_pool_arena_take(&arena, 5, 512 * K, S));
	IS(at(5), 3072);
	YES(ckt_pool_arena_take(&arena, 6, M, S));
	IS(at(6), 6144);
	figures(4 * M, 32 * M);
	ckt_pool_arena_hold(&arena, 6, S);
	ckt_pool_arena_hold(&arena, 3, S);
	YES(ckt_pool_arena_take(&arena, 7, 2 * M, S));
	IS(at(7), 4096);
	figures(4 * M, 32 * M);
	ckt_pool_arena_fini(&arena);

	YES(ckt_pool_arena_take(&arena, 1, 32 * M, S));
	ckt_pool_arena_hold(&arena, 1, S);
	IS(ckt_pool_arena_growth(&arena, 32 * M, S), 0);
	YES(ckt_pool_arena_take(&arena, 2, 32 * M, T));
	figures(32 * M, 64 * M);
	YES(ckt_pool_arena_take(&arena, 3, 32 * M, T));
	figures(64 * M, 96 * M);
	/*
	 * Nobody's is held until it is dropped; what a stream holds in the middle of it stays so.
	 */
	ckt_pool_arena_hold(&arena, 2, CKT_POOL_ARENA_NOBODY);
	IS(ckt_pool_arena_growth(&arena, 32 * M, CKT_POOL_ARENA_NOBODY), 32 * M);
	YES(ckt_pool_arena_take(&arena, 4, M, S));
	YES(ckt_pool_arena_take(&arena, 5, 32 * M, S));
	figures(65 * M, 128 * M);
	ckt_pool_arena_drop(&arena, 2);
	ckt_pool_arena_drop(&arena, 1);
	ckt_pool_arena_trim(&arena, 0);
	figures(65 * M, 96 * M);
	ckt_pool_arena_fini(&arena);
}

static void test_trim(void)
{
	const uint64_t keeps[][2] = {{100, 128}, {97, 128}, {96, 96}, {90, 96}, {65, 96}, {64, 64},
		{33, 64}, {32, 32}, {0, 0}};
	for (uint64_t key = 1; key <= 3; key++)
		YES(ckt_pool_arena_take(&arena, key, 40 * M, S));
	figures(120 * M, 128 * M);
	YES(ckt_pool_arena_take(&arena, 4, 20 * M, S));
	IS(at(4), 245760);
	figures(140 * M, 160 * M);
	/* No whole page is free without the second one. */
	ckt_pool_arena_drop(&arena, 2);
	ckt_pool_arena_trim(&arena, 0);
	figures(100 * M, 160 * M);
	ckt_pool_arena_drop(&arena, 1);
	ckt_pool_arena_drop(&arena, 3);
	ckt_pool_arena_drop(&arena, 4);
	for (size_t i = 0; i < COUNT(keeps); i++) {
		ckt_pool_arena_trim(&arena, keeps[i][0] * M);
		figures(0, keeps[i][1] * M);
	}

	/* Halves of pages; then a page that was given back is taken again. */
	for (uint64_t key = 1; key <= 8; key++)
		YES(ckt_pool_arena_take(&arena, key, 16 * M, S));
	for (uint64_t key = 1; key <= 8; key += 2)
		ckt_pool_arena_drop(&arena, key);
	ckt_pool_arena_trim(&arena, 0);
	figures(64 * M, 128 * M);
	ckt_pool_arena_drop(&arena, 2);
	ckt_pool_arena_trim(&arena, 0);
	figures(48 * M, 96 * M);
	YES(ckt_pool_arena_take(&arena, 9, 48 * M, S));
	IS(at(9), 0);
	figures(96 * M, 128 * M);
	ckt_pool_arena_fini(&arena);

	YES(ckt_pool_arena_take(&arena, 1, 256 * M, S));
	ckt_pool_arena_hold(&arena, 1, S);
	YES(ckt_pool_arena_take(&arena, 2, M, S));
	ckt_pool_arena_drop(&arena, 1);
	ckt_pool_arena_trim(&arena, 0);
	figures(M, 32 * M);
	YES(ckt_pool_arena_take(&arena, 3, 100 * M, S));
	IS(at(3), 2048);
	figures(101 * M, 128 * M);
	ckt_pool_arena_fini(&arena);
}

static void test_limit(void)
{
	IS(ckt_pool_arena_limit(0), 0);
	IS(ckt_pool_arena_limit(1), 32 * M);
	IS(ckt_pool_arena_limit(32 * M), 32 * M);
	IS(ckt_pool_arena_limit(33 * M), 64 * M);
	IS(ckt_pool_arena_limit(UINT64_MAX), 0);
}

UNIT_SUITE(pool_arena, {"sizes", test_sizes}, {"row", test_row}, {"streams", test_streams},
	{"trim", test_trim}, {"limit", test_limit})
