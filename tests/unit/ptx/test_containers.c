/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/ptx/front/containers.c: memory of a module, the map from names, growing arrays. */
#include "harness.h"
#include "softgpu/ptx/front/containers.h"

static void test_arena(void)
{
	struct ptx_arena arena = {0};
	static const size_t sizes[] = {1, 15, 16, 17, 1000, 70000, 1 << 20, 3, 0};
	uint8_t *places[200];
	unsigned dirty = 0;
	for (unsigned k = 0; k < 200; k++) {
		size_t size = sizes[k % COUNT(sizes)];
		places[k] = ckt_ptx_arena_alloc(&arena, size);
		MUST(places[k] != NULL, 1);
		IS((uintptr_t)places[k] % 16, 0);
		for (size_t i = 0; i < size; i++)
			dirty += places[k][i] != 0;
		memset(places[k], (int)(k + 1), size);
	}
	IS(dirty, 0);
	/* None lies in another. */
	for (unsigned k = 0; k < 200; k++)
		for (size_t i = 0; i < sizes[k % COUNT(sizes)]; i += 997)
			dirty += places[k][i] != (uint8_t)(k + 1);
	IS(dirty, 0);
	char *copy = ckt_ptx_arena_string(&arena, "abcdef", 3);
	TEXT(copy, "abc");
	TEXT(ckt_ptx_arena_string(&arena, "", 0), "");
	ckt_ptx_arena_free(&arena);
	CU_ASSERT_PTR_NULL(arena.chunks);
	ckt_ptx_arena_free(&arena);
}

static void test_map(void)
{
	enum { N = 5000 };
	static char keys[N][8];
	static int values[2];
	struct ptx_map map = {0};
	CU_ASSERT_PTR_NULL(ckt_ptx_map_get(&map, "x", 1));
	for (unsigned k = 0; k < N; k++) {
		snprintf(keys[k], sizeof keys[k], "%%r%u", k);
		IS(ckt_ptx_map_put(&map, keys[k], strlen(keys[k]), keys[k]), 0);
	}
	IS(map.n, N);
	unsigned wrong = 0;
	for (unsigned k = 0; k < N; k++)
		wrong += ckt_ptx_map_get(&map, keys[k], strlen(keys[k])) != keys[k];
	IS(wrong, 0);
	/* By size and not by NUL; the last value counts; a value may be none. */
	YES(ckt_ptx_map_get(&map, "%r12345", 5) == keys[123]);
	CU_ASSERT_PTR_NULL(ckt_ptx_map_get(&map, "%r", 2));
	CU_ASSERT_PTR_NULL(ckt_ptx_map_get(&map, "%r5000", 6));
	ckt_ptx_map_put(&map, "%r7", 3, &values[0]);
	YES(ckt_ptx_map_get(&map, "%r7", 3) == &values[0]);
	IS(map.n, N);
	ckt_ptx_map_put(&map, "", 0, &values[1]);
	YES(ckt_ptx_map_get(&map, "x", 0) == &values[1]);
	ckt_ptx_map_free(&map);
	CU_ASSERT_PTR_NULL(ckt_ptx_map_get(&map, "%r7", 3));
	ckt_ptx_map_free(&map);
}

static void test_grow(void)
{
	uint64_t *array = NULL;
	size_t capacity = 0;
	IS(ckt_ptx_grow((void **)&array, &capacity, 1, sizeof *array), 0);
	IS(capacity, 16);
	for (unsigned k = 0; k < 16; k++)
		array[k] = k;
	IS(ckt_ptx_grow((void **)&array, &capacity, 17, sizeof *array), 0);
	IS(capacity, 32);
	IS(ckt_ptx_grow((void **)&array, &capacity, 1000, sizeof *array), 0);
	IS(capacity, 1000);
	unsigned wrong = 0;
	for (unsigned k = 0; k < 16; k++)
		wrong += array[k] != k;
	IS(wrong, 0);
	free(array);
}

UNIT_SUITE(softgpu / ptx / front / containers, {"arena", test_arena}, {"map", test_map},
	{"grow", test_grow})
