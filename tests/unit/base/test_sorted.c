/* SPDX-License-Identifier: Apache-2.0 */
/* base/sorted.h: where a key stands among the entries of an array. */
#include "base/sorted.h"
#include "tests/unit/suite.h"

static void test_upper(void)
{
	static const struct {
		uint32_t other;
		uint64_t at;
	} list[] = {{9, 2}, {9, 5}, {9, 5}, {9, 0x2000000000000005}, {9, UINT64_MAX}};
	static const struct {
		uint64_t key;
		size_t index;
	} rows[] = {{0, 0}, {1, 0}, {2, 1}, {4, 1}, {5, 3}, {6, 3}, {0x2000000000000004, 3},
		{0x2000000000000005, 4}, {UINT64_MAX - 1, 4}, {UINT64_MAX, 5}};
	for (size_t i = 0; i < COUNT(rows); i++)
		IS(CKT_SORTED_UPPER(list, COUNT(list), at, rows[i].key), rows[i].index);
	IS(CKT_SORTED_UPPER(list, 0, at, 7), 0);
	IS(CKT_SORTED_UPPER(list, 1, at, 7), 1);
	IS(ckt_sorted_upper(NULL, 0, sizeof *list, 0, 7), 0);
	/* Every size of array, and every place in it. */
	uint64_t odd[17];
	for (size_t count = 0; count < COUNT(odd); count++) {
		odd[count] = 2 * count + 1;
		for (uint64_t key = 0; key <= 2 * count + 2; key++)
			IS(ckt_sorted_upper(odd, count + 1, sizeof *odd, 0, key), (key + 1) / 2);
	}
}

UNIT_SUITE(sorted, {"upper", test_upper})
