/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/range.c: what memory the program has: edges, sizes that overflow, neighbours,
 * and a thousand changes compared with a plain list.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "client/conn/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/range.h"

enum { KIB = 1024 };

/*
 * What client/cuda/context/route.c and client/conn/nodes.c know: here a context's number is its
 * server's.
 */
unsigned ckt_conn_count = 1;
static unsigned node;

unsigned ckt_call_node(void)
{
	return node;
}

unsigned ckt_client_context_node(uint64_t context)
{
	return (unsigned)context;
}

static void add(
	uint64_t base, uint64_t size, enum ckt_range_kind kind, unsigned flags, uint64_t owner)
{
	ckt_range_add(&(struct ckt_client_range){
		.base = base, .size = size, .kind = kind, .flags = flags, .owner = owner});
}

static bool found(uint64_t address, uint64_t base)
{
	struct ckt_client_range range = {0};
	return ckt_range_find(address, &range) && range.base == base;
}

static void test_edges(void)
{
	struct ckt_client_range range;
	CU_ASSERT_FALSE(ckt_range_find(0, &range));
	CU_ASSERT_FALSE(ckt_range_is_device(0, 1));
	CU_ASSERT_FALSE(ckt_range_overlaps(0, UINT64_MAX));
	/* The second lies before the first, a third directly behind. */
	add(0x20000, 4 * KIB, CKT_RANGE_DEVICE, 0, 0);
	add(0x10000, 4 * KIB, CKT_RANGE_DEVICE, 0, 0);
	add(0x21000, 4 * KIB, CKT_RANGE_DEVICE, 0, 0);
	CU_ASSERT_TRUE(found(0x20000, 0x20000) && found(0x20fff, 0x20000) &&
		found(0x21000, 0x21000) && found(0x10fff, 0x10000));
	CU_ASSERT_FALSE(found(0xffff, 0x10000) || found(0x11000, 0x10000) ||
		ckt_range_find(0x22000, &range) || ckt_range_find(UINT64_MAX, &range));
	/* All of one allocation, and no size carries it around the end of the address space. */
	CU_ASSERT_TRUE(ckt_range_is_device(0x20000, 4 * KIB) && ckt_range_is_device(0x20fff, 1) &&
		ckt_range_is_device(0x20fff, 0));
	CU_ASSERT_FALSE(ckt_range_is_device(0x20000, 4 * KIB + 1));
	CU_ASSERT_FALSE(ckt_range_is_device(0x20fff, UINT64_MAX));
	CU_ASSERT_FALSE(ckt_range_is_device(0x20001, UINT64_MAX - 0x20000));
	CU_ASSERT_TRUE(ckt_range_overlaps(0x0, 0x10001) && ckt_range_overlaps(0x10fff, 1) &&
		ckt_range_overlaps(0x11000, UINT64_MAX));
	CU_ASSERT_FALSE(ckt_range_overlaps(0, 0x10000) || ckt_range_overlaps(0x11000, 0xf000) ||
		ckt_range_overlaps(0x22000, UINT64_MAX - 0x22000));
	CU_ASSERT_FALSE(ckt_range_remove(0x20001, CKT_RANGE_DEVICE, NULL));
	CU_ASSERT_FALSE(ckt_range_remove(0x20000, CKT_RANGE_MANAGED, NULL));
	CU_ASSERT_TRUE(
		ckt_range_remove(0x20000, CKT_RANGE_DEVICE, &range) && range.size == 4 * KIB);
	CU_ASSERT_FALSE(ckt_range_remove(0x20000, CKT_RANGE_DEVICE, NULL));
	CU_ASSERT_TRUE(found(0x21000, 0x21000) &&
		ckt_range_remove(0x21000, CKT_RANGE_DEVICE, NULL) &&
		ckt_range_remove(0x10000, CKT_RANGE_DEVICE, NULL));
}

static void test_host_is_not_device(void)
{
	add(0x30000, 4 * KIB, CKT_RANGE_HOST_ALLOC, 0, 0);
	add(0x31000, 4 * KIB, CKT_RANGE_HOST_REGISTERED, 0, 0);
	CU_ASSERT_FALSE(ckt_range_is_device(0x30000, 1) || ckt_range_is_device(0x31000, 1));
	CU_ASSERT_TRUE(ckt_range_is_pinned((void *)0x30000, 4 * KIB) &&
		ckt_range_is_pinned((void *)0x31fff, 1));
	CU_ASSERT_FALSE(ckt_range_is_pinned((void *)0x30001, 4 * KIB));
	CU_ASSERT_FALSE(ckt_range_is_pinned((void *)0x30001, UINT64_MAX));
	/* Mapped, it is both. */
	ckt_range_set_mapped(0x30000);
	ckt_range_set_mapped(0x31000);
	CU_ASSERT_TRUE(ckt_range_is_device(0x30000, 4 * KIB) &&
		ckt_range_is_pinned((void *)0x30000, 4 * KIB));
	CU_ASSERT_FALSE(ckt_range_is_device(0x31000, 1));
	CU_ASSERT_TRUE(ckt_range_remove(0x30000, CKT_RANGE_HOST_ALLOC, NULL) &&
		ckt_range_remove(0x31000, CKT_RANGE_HOST_REGISTERED, NULL));
}

/*
 * Mappings of the program's own go on where one ends and the next begins, as long as each may be
 * accessed.
 */
static void test_mappings(void)
{
	const unsigned write = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	for (uint64_t i = 0; i < 4; i++)
		add(0x40000 + i * 0x1000, 0x1000, CKT_RANGE_MAPPED, write, i);
	add(0x45000, 0x1000, CKT_RANGE_MAPPED, write, 5);
	add(0x46000, 0x1000, CKT_RANGE_DEVICE, 0, 0);
	CU_ASSERT_TRUE(
		ckt_range_is_device(0x40800, 0x3000) && ckt_range_is_device(0x40000, 0x4000));
	CU_ASSERT_FALSE(ckt_range_is_device(0x40000, 0x4001));
	CU_ASSERT_FALSE(ckt_range_is_device(0x45000, 0x1001));
	CU_ASSERT_FALSE(ckt_range_is_device(0x40000, UINT64_MAX));
	/* Flags change where a mapping begins within the bytes that are named. */
	ckt_range_set_flags(0x41000, 0x1000, CKT_RANGE_MAPPED, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CU_ASSERT_FALSE(ckt_range_is_device(0x41000, 1) || ckt_range_is_device(0x40fff, 2));
	CU_ASSERT_TRUE(
		ckt_range_is_device(0x40000, 0x1000) && ckt_range_is_device(0x42000, 0x2000));
	ckt_range_set_flags(0x40001, 0x7000, CKT_RANGE_MAPPED, write);
	CU_ASSERT_TRUE(ckt_range_is_device(0x40000, 0x4000));
	struct ckt_client_range range = {0};
	CU_ASSERT_TRUE(ckt_range_find(0x46000, &range) && range.flags == 0);
	ckt_range_set_flags(0, UINT64_MAX, CKT_RANGE_MAPPED, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CU_ASSERT_FALSE(ckt_range_is_device(0x43000, 1));
	for (uint64_t i = 0; i < 4; i++)
		CU_ASSERT_TRUE(ckt_range_remove(0x40000 + i * 0x1000, CKT_RANGE_MAPPED, NULL));
	CU_ASSERT_TRUE(ckt_range_remove(0x45000, CKT_RANGE_MAPPED, NULL) &&
		ckt_range_remove(0x46000, CKT_RANGE_DEVICE, NULL));
}

static void test_owners(void)
{
	struct ckt_client_range range = {0};
	uint64_t last = 0;
	for (uint64_t i = 0; i < 6; i++) {
		add(0x50000 + i * 0x100, 0x10, i == 4 ? CKT_RANGE_MAPPED : CKT_RANGE_GLOBAL, 0,
			i % 2);
		CU_ASSERT_TRUE(
			ckt_range_find(0x50000 + i * 0x100, &range) && range.buffer_id > last);
		last = range.buffer_id;
	}
	ckt_range_remove_owner(0);
	for (uint64_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(ckt_range_find(0x50000 + i * 0x100, &range), i % 2 || i == 4);
	ckt_range_remove_owner(1);
	CU_ASSERT_TRUE(ckt_range_remove(0x50400, CKT_RANGE_MAPPED, NULL));
	CU_ASSERT_FALSE(ckt_range_overlaps(0, UINT64_MAX));
}

/* A registered buffer may lie at the address of another kind's range. */
static void test_same_base(void)
{
	struct ckt_client_range range;
	add(0x60000, 64, CKT_RANGE_HOST_ALLOC, 1, 0);
	add(0x60000, 32, CKT_RANGE_MANAGED, 2, 0);
	CU_ASSERT_TRUE(ckt_range_remove(0x60000, CKT_RANGE_HOST_ALLOC, &range) && range.flags == 1);
	CU_ASSERT_TRUE(found(0x60000, 0x60000));
	CU_ASSERT_TRUE(ckt_range_remove(0x60000, CKT_RANGE_MANAGED, &range) && range.flags == 2);
}

static void test_model(void)
{
	enum { PLACES = 300, STEP = 0x1000 };
	static uint64_t sizes[PLACES];
	unsigned seed = 1, wrong = 0;
	for (int i = 0; i < 20000; i++) {
		unsigned at = (unsigned)rand_r(&seed) % PLACES;
		uint64_t base = 0x100000 + (uint64_t)at * STEP,
			 offset = (unsigned)rand_r(&seed) % STEP;
		if (i % 3 == 0 && !sizes[at]) {
			sizes[at] = 1 + (unsigned)rand_r(&seed) % STEP;
			add(base, sizes[at], CKT_RANGE_DEVICE, 0, 0);
		} else if (i % 3 == 1) {
			wrong += ckt_range_remove(base, CKT_RANGE_DEVICE, NULL) != (sizes[at] != 0);
			sizes[at] = 0;
		}
		wrong += found(base + offset, base) != (offset < sizes[at]);
		wrong += ckt_range_is_device(base + offset, 16) !=
			(offset < sizes[at] && sizes[at] - offset >= 16);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

/*
 * Of two servers: one address may be a variable's at each, and means the one where the thread's
 * calls go.
 */
static void test_two_servers(void)
{
	struct ckt_client_range range;
	ckt_conn_count = 2;
	ckt_range_add(&(struct ckt_client_range){
		.base = 0x50000, .size = 16, .kind = CKT_RANGE_GLOBAL, .context = 0, .owner = 7});
	ckt_range_add(&(struct ckt_client_range){
		.base = 0x50000, .size = 32, .kind = CKT_RANGE_GLOBAL, .context = 1, .owner = 8});
	ckt_range_add(&(struct ckt_client_range){
		.base = 0x60000, .size = 16, .kind = CKT_RANGE_DEVICE, .context = 1});
	for (node = 0; node < 2; node++) {
		CU_ASSERT_TRUE(ckt_range_find(0x5000f, &range) && range.owner == 7 + node &&
			range.context == node);
		CU_ASSERT_EQUAL(ckt_range_is_device(0x50000, 32), node == 1);
		/* What only one has is found from both. */
		CU_ASSERT_TRUE(ckt_range_find(0x60000, &range) && range.context == 1);
		CU_ASSERT_TRUE(
			ckt_range_overlaps(0x60000, 1) && ckt_range_overlaps(0x5f000, 0x1001));
		CU_ASSERT_FALSE(ckt_range_overlaps(0x5f000, 0x1000));
	}
	node = 0;
	CU_ASSERT_TRUE(ckt_range_find(0x50010, &range) && range.owner == 8);
	ckt_range_remove_owner(7);
	CU_ASSERT_TRUE(ckt_range_find(0x50000, &range) && range.owner == 8);
	CU_ASSERT_TRUE(ckt_range_remove(0x60000, CKT_RANGE_DEVICE, &range) && range.context == 1);
	ckt_range_remove_context(1);
	CU_ASSERT_FALSE(ckt_range_find(0x50000, &range) || ckt_range_find(0x60000, &range));
	ckt_conn_count = 1;
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("range", NULL, NULL);
	CU_add_test(suite, "edges", test_edges);
	CU_add_test(suite, "host memory", test_host_is_not_device);
	CU_add_test(suite, "mappings", test_mappings);
	CU_add_test(suite, "owners", test_owners);
	CU_add_test(suite, "same base", test_same_base);
	CU_add_test(suite, "model", test_model);
	CU_add_test(suite, "two servers", test_two_servers);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
