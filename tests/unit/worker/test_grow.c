/* SPDX-License-Identifier: Apache-2.0 */
/* base/grow.h: arrays that grow keep what they hold, in its order. */
#include "base/grow.h"
#include "tests/unit/suite.h"

static void test_grow(void)
{
	int *list = NULL;
	size_t count = 0, room = 0, wrong = 0;
	for (int i = 0; i < 1000; i++) {
		MUST(CKT_GROW(list, count, room, 3), 0);
		list[count++] = i;
	}
	IS(room, 3 << 9);
	for (int i = 0; i < 1000; i++)
		wrong += list[i] != i;
	IS(wrong, 0);
	free(list);
}

static void test_gap(void)
{
	struct entry {
		size_t number;
		char more[5];
	} *list = NULL;
	size_t count = 0, room = 0, wrong = 0;
	/*
	 * The even numbers, then each odd one between two of them; the places are told by an
	 * expression of the count.
	 */
	for (size_t i = 0; i < 100; i += 2) {
		MUST(CKT_GROW_AT(list, count, room, 2, count), 0);
		list[count - 1].number = i;
	}
	for (size_t i = 1; i < 100; i += 2) {
		MUST(CKT_GROW_AT(list, count, room, 2, i), 0);
		list[i].number = i;
	}
	IS(count, 100);
	IS(room, 128);
	for (size_t i = 0; i < count; i++)
		wrong += list[i].number != i;
	IS(wrong, 0);
	free(list);
}

UNIT_SUITE(grow, {"grow", test_grow}, {"gap", test_gap})
