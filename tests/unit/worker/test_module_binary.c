/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs a module's image runs on, by its parts. */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module_binary.h"

enum { ENTRY = 64, ROOM = 4096 };

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	memcpy(at, &value, bytes);
}

struct fat {
	uint8_t bytes[ROOM];
	size_t size;
};

static void begin(struct fat *fat)
{
	memset(fat, 0, sizeof *fat);
	put(fat->bytes, 0xba55ed50, 4);
	put(fat->bytes + 4, 1, 2);
	put(fat->bytes + 6, 16, 2);
	fat->size = 16;
}

static void entry(
	struct fat *fat, unsigned kind, unsigned capability, const void *data, size_t size)
{
	uint8_t *header = fat->bytes + fat->size;
	put(header, kind, 2);
	put(header + 4, ENTRY, 4);
	put(header + 8, size, 8);
	put(header + 28, capability, 4);
	memcpy(header + ENTRY, data, size);
	fat->size += ENTRY + size;
	put(fat->bytes + 8, fat->size - 16, 8);
}

static bool fits(const void *data, size_t size, unsigned capability)
{
	/* A copy of the exact size: sanitizers see what lies behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	bool has_ptx;
	memcpy(copy, data, size);
	bool result = ckt_module_binary_fits(copy, size, capability, &has_ptx);
	free(copy);
	return result;
}

static void test_ptx(void)
{
	static const char plain[] = ".version 8.0\n.target sm_90\n.address_size 64\n",
			  own[] = ".version 8.0\n.target sm_90a\n",
			  family[] = ".version 8.8\n.target sm_100f\n", none[] = ".version 8.0\n";
	CU_ASSERT_TRUE(fits(plain, sizeof plain, 90));
	CU_ASSERT_TRUE(fits(plain, sizeof plain, 120));
	CU_ASSERT_FALSE(fits(plain, sizeof plain, 89));
	CU_ASSERT_TRUE(fits(own, sizeof own, 90));
	CU_ASSERT_FALSE(fits(own, sizeof own, 100));
	CU_ASSERT_TRUE(fits(family, sizeof family, 103));
	CU_ASSERT_FALSE(fits(family, sizeof family, 110));
	CU_ASSERT_FALSE(fits(family, sizeof family, 90));
	/* What tells nothing is the driver's to refuse. */
	CU_ASSERT_TRUE(fits(none, sizeof none, 90));
	CU_ASSERT_TRUE(fits("", 0, 90));
	CU_ASSERT_TRUE(fits(plain, 20, 10));
}

static void test_code(void)
{
	uint8_t elf[ENTRY] = "\177ELF";
	put(elf + 18, 190, 2);
	elf[7] = 0x41;
	put(elf + 48, 0x06005a04, 4);
	CU_ASSERT_TRUE(fits(elf, sizeof elf, 90));
	CU_ASSERT_FALSE(fits(elf, sizeof elf, 120));
	CU_ASSERT_FALSE(fits(elf, sizeof elf, 89));
	elf[7] = 0x33;
	put(elf + 48, 0x00500550, 4);
	CU_ASSERT_TRUE(fits(elf, sizeof elf, 80));
	CU_ASSERT_TRUE(fits(elf, sizeof elf, 89));
	CU_ASSERT_FALSE(fits(elf, sizeof elf, 90));
	elf[7] = 0;
	CU_ASSERT_TRUE(fits(elf, sizeof elf, 90));
	CU_ASSERT_TRUE(fits(elf, 20, 90));
}

static void test_fat(void)
{
	static const char ptx[] = ".version 8.0\n.target sm_75\n";
	bool has_ptx;
	struct fat fat;
	begin(&fat);
	entry(&fat, 2, 90, "code", 4);
	CU_ASSERT_TRUE(ckt_module_binary_fits(fat.bytes, fat.size, 90, &has_ptx));
	CU_ASSERT_FALSE(has_ptx);
	CU_ASSERT_FALSE(ckt_module_binary_fits(fat.bytes, fat.size, 120, &has_ptx));
	CU_ASSERT_FALSE(has_ptx);
	entry(&fat, 1, 75, ptx, sizeof ptx);
	CU_ASSERT_TRUE(ckt_module_binary_fits(fat.bytes, fat.size, 120, &has_ptx));
	CU_ASSERT_TRUE(has_ptx);
	CU_ASSERT_FALSE(ckt_module_binary_fits(fat.bytes, fat.size, 70, &has_ptx));
	/* Cut anywhere, and with every byte of its headers wrong: an answer, whichever. */
	for (size_t size = 0; size <= fat.size; size++)
		fits(fat.bytes, size, 90);
	for (size_t at = 0; at < fat.size; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			fat.bytes[at] ^= (uint8_t)(1 << bit);
			fits(fat.bytes, fat.size, 90);
			fat.bytes[at] ^= (uint8_t)(1 << bit);
		}
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("binary", NULL, NULL);
	CU_add_test(suite, "PTX", test_ptx);
	CU_add_test(suite, "machine code", test_code);
	CU_add_test(suite, "fat binaries", test_fat);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
