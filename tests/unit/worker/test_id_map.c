/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/id_map.c: what is put is found, whatever else comes and goes, and no look-up
 * gets longer with their number.
 */
#include "server/worker/libs/id_map.h"

#include "tests/unit/suite.h"

enum { MANY = 20000 };

static char values[MANY];

static void test_find(void)
{
	struct ckt_id_map map = {0};
	CU_ASSERT_PTR_NULL(ckt_id_map_find(&map, 0));
	ckt_id_map_drop(&map, 7);
	for (uint64_t i = 0; i < MANY; i++)
		MUST(ckt_id_map_put(&map, i << 20, &values[i]), true);
	IS(map.count, MANY);
	size_t wrong = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		wrong += ckt_id_map_find(&map, i << 20) != &values[i];
		wrong += ckt_id_map_find(&map, (i << 20) + 1) != NULL;
	}
	IS(wrong, 0);
	/* Every second one goes, and some of these come again as something else. */
	for (uint64_t i = 0; i < MANY; i += 2)
		ckt_id_map_drop(&map, i << 20);
	for (uint64_t i = 0; i < MANY; i += 4)
		MUST(ckt_id_map_put(&map, i << 20, &values[0]), true);
	for (uint64_t i = 0; i < MANY; i++) {
		const char *wanted = i % 2 ? &values[i] : i % 4 ? NULL : &values[0];
		wrong += ckt_id_map_find(&map, i << 20) != wanted;
	}
	IS(wrong, 0);
	IS(map.count, MANY * 3 / 4);
	MUST(ckt_id_map_put(&map, 1 << 20, &values[5]), true);
	YES(ckt_id_map_find(&map, 1 << 20) == &values[5]);
	IS(map.count, MANY * 3 / 4);
	ckt_id_map_fini(&map);
	IS(map.room, 0);
}

/* What comes and goes for ever takes no more room, and is found as soon. */
static void test_churn(void)
{
	struct ckt_id_map map = {0};
	size_t most = 0, lost = 0;
	for (uint64_t i = 0; i < 10 * MANY; i++) {
		MUST(ckt_id_map_put(&map, i, &values[i % MANY]), true);
		if (i >= 100)
			ckt_id_map_drop(&map, i - 100);
		lost += ckt_id_map_find(&map, i) != &values[i % MANY];
		most = map.room > most ? map.room : most;
	}
	IS(lost, 0);
	IS(map.count, 100);
	YES(most <= 1024);
	YES(map.looks < 20 * 10 * MANY);
	ckt_id_map_fini(&map);
}

/*
 * Numbers that have one place in a table without a secret: they differ in their highest bits alone.
 */
static void test_looks(void)
{
	struct ckt_id_map map = {0};
	for (uint64_t i = 0; i < MANY; i++)
		MUST(ckt_id_map_put(&map, i << 48 | (i >> 16) << 40, &values[i]), true);
	uint64_t before = map.looks;
	for (uint64_t i = 0; i < MANY; i++)
		YES(ckt_id_map_find(&map, i << 48 | (i >> 16) << 40) != NULL);
	YES(map.looks - before < 4 * MANY);
	ckt_id_map_fini(&map);
}

static void test_key(void)
{
	uint64_t all = ckt_id_map_key(1, "some longer text", 16);
	IS(ckt_id_map_key(1, "some longer text", 16), all);
	YES(ckt_id_map_key(2, "some longer text", 16) != all);
	YES(ckt_id_map_key(1, "some longer text", 15) != all);
	YES(ckt_id_map_key(1, "Some longer text", 16) != all);
	YES(ckt_id_map_key(1, "some longer texT", 16) != all);
	YES(ckt_id_map_key(1, "", 0) != ckt_id_map_key(1, "\0", 1));
}

UNIT_SUITE(id_map, {"find", test_find}, {"churn", test_churn}, {"looks", test_looks},
	{"key", test_key})
