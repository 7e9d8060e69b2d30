/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's own memory: where it is wished, else elsewhere, and never at address 0 (which a
 * sanitizer makes of a wish, and root gets).
 */
#include <CUnit/Basic.h>
#include <string.h>
#include <sys/mman.h>

#include "server/worker/memory/fixed_address.h"

enum { SIZE = 1 << 20 };

static void use(uint8_t *memory)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
	memset(memory, 7, SIZE);
	CU_ASSERT_EQUAL(memory[SIZE - 1], 7);
}

static void test_place(void)
{
	/*
	 * The first is the worker's, the others belong to some process: below them, its stack, and
	 * what no process may have.
	 */
	int local = 0;
	const uint64_t wishes[] = {0x1f0000000000, (uint64_t)(uintptr_t)&local & ~(uint64_t)0xfff,
		0x7fffffffe000, UINT64_MAX & ~(uint64_t)0xfff};
	for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
		uint8_t *memory = ckt_fixed_address_map(wishes[i], SIZE, 0);
		use(memory);
		CU_ASSERT_EQUAL(local, 0);
		munmap(memory, SIZE);
	}
}

static void test_taken(void)
{
	uint8_t *first = ckt_fixed_address_map(0x1f0000000000, SIZE, 0);
	use(first);
#ifndef __SANITIZE_THREAD__
	CU_ASSERT_EQUAL((uintptr_t)first, 0x1f0000000000);
#endif
	uint8_t *second = ckt_fixed_address_map((uintptr_t)first, SIZE, MAP_POPULATE);
	CU_ASSERT_PTR_NOT_EQUAL(second, first);
	memset(first, 3, SIZE);
	use(second);
	CU_ASSERT_EQUAL(first[0], 3);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("place", NULL, NULL);
	CU_add_test(suite, "place", test_place);
	CU_add_test(suite, "taken", test_taken);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
