/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/memmap.c: pages marked and unmarked, across leaves, and what lies outside the
 * address space.
 */
#include <errno.h>

#include "files.h"
#include "softgpu/memory/memmap.h"

#define LEAF (1ull << CKT_SOFT_LEAF_SHIFT)
enum { PAGE = 4096, RW = CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE };

static void test_pages(void)
{
	uint64_t base = 77 * LEAF; /* nothing of the process lies there */
	NO(ckt_soft_memmap_ok(base, 1, CKT_SOFT_PAGE_READ));
	/* Every page that is touched, and no more. */
	IS(ckt_soft_memmap_set(base + PAGE + 1, 2 * PAGE, RW), 0);
	static const bool want[] = {false, true, true, true, false};
	for (unsigned i = 0; i < 5; i++)
		IS(ckt_soft_memmap_page_ok(base + i * PAGE, RW), want[i]);
	YES(ckt_soft_memmap_ok(base + PAGE, 16, RW));
	YES(ckt_soft_memmap_ok(base + 2 * PAGE - 1, 2, RW));
	NO(ckt_soft_memmap_ok(base + PAGE - 1, 2, RW));
	NO(ckt_soft_memmap_ok(base + 4 * PAGE - 1, 2, CKT_SOFT_PAGE_READ));
	/* One kind of access alone. */
	IS(ckt_soft_memmap_set(base + 2 * PAGE, 1, CKT_SOFT_PAGE_READ), 0);
	YES(ckt_soft_memmap_ok(base + 2 * PAGE, 4, CKT_SOFT_PAGE_READ));
	NO(ckt_soft_memmap_ok(base + 2 * PAGE, 4, CKT_SOFT_PAGE_WRITE));
	NO(ckt_soft_memmap_ok(base + 2 * PAGE - 2, 4, CKT_SOFT_PAGE_WRITE));
	IS(ckt_soft_memmap_set(base, 8 * PAGE, 0), 0);
	NO(ckt_soft_memmap_page_ok(base + PAGE, CKT_SOFT_PAGE_READ));
	IS(ckt_soft_memmap_set(base, 0, RW), 0);
	NO(ckt_soft_memmap_page_ok(base, CKT_SOFT_PAGE_READ));
}

static void test_leaves(void)
{
	uint64_t edge = 79 * LEAF;
	IS(ckt_soft_memmap_set(edge - PAGE, 2 * PAGE, RW), 0);
	YES(ckt_soft_memmap_ok(edge - 8, 16, RW));
	NO(ckt_soft_memmap_page_ok(edge - PAGE - 1, CKT_SOFT_PAGE_READ));
	NO(ckt_soft_memmap_page_ok(edge + PAGE, CKT_SOFT_PAGE_READ));
	IS(ckt_soft_memmap_set(edge - 3 * LEAF / 2, 3 * LEAF, RW), 0);
	YES(ckt_soft_memmap_page_ok(edge + LEAF, RW));
	YES(ckt_soft_memmap_page_ok(edge - 3 * LEAF / 2, RW));
	IS(ckt_soft_memmap_set(edge - 3 * LEAF / 2, 3 * LEAF, 0), 0);
	NO(ckt_soft_memmap_page_ok(edge, CKT_SOFT_PAGE_READ));
	/* Unmarking where nothing ever was makes no leaf. */
	IS(ckt_soft_memmap_set(101 * LEAF, LEAF, 0), 0);
	YES(!ckt_soft_memmap[101]);
}

static void test_bounds(void)
{
	static const uint64_t top = 1ull << 47;
	IS(ckt_soft_memmap_set(top - PAGE, PAGE, RW), 0);
	YES(ckt_soft_memmap_ok(top - 4, 4, RW));
	NO(ckt_soft_memmap_ok(top - 4, 8, RW));
	IS(ckt_soft_memmap_set(top - PAGE, PAGE, 0), 0);
	IS(ckt_soft_memmap_set(top, 1, RW), -ENOMEM);
	IS(ckt_soft_memmap_set(top - PAGE, 2 * PAGE, RW), -ENOMEM);
	IS(ckt_soft_memmap_set(UINT64_MAX, 2, RW), -ENOMEM);
	NO(ckt_soft_memmap_page_ok(top, CKT_SOFT_PAGE_READ));
	NO(ckt_soft_memmap_page_ok(UINT64_MAX, CKT_SOFT_PAGE_READ));
	NO(ckt_soft_memmap_ok(UINT64_MAX - 1, 4, CKT_SOFT_PAGE_READ));
	NO(ckt_soft_memmap_page_ok(top - 1, CKT_SOFT_PAGE_READ));
}

UNIT_SUITE(softgpu / memory / memmap, {"pages", test_pages}, {"leaves", test_leaves},
	{"bounds", test_bounds})
