/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/module/fat_binary.c: which entries of a fat binary are sent. */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/module/fat_binary.h"

enum { PTX = 1, CODE = 2, OTHER = 8, HEADER = 16, ENTRY = 64 };

static struct {
	uint8_t bytes[4096];
	size_t size;
} fat;

static void begin(void)
{
	const uint16_t version = 1, header = HEADER;
	const uint32_t magic = 0xBA55ED50;
	memset(&fat, 0, sizeof fat);
	memcpy(fat.bytes, &magic, 4);
	memcpy(fat.bytes + 4, &version, 2);
	memcpy(fat.bytes + 6, &header, 2);
	fat.size = HEADER;
}

/* The payload's bytes are the entry's number, so that a copy can be told. */
static void add(uint16_t kind, uint32_t capability, uint64_t payload)
{
	uint8_t *at = fat.bytes + fat.size;
	const uint32_t header = ENTRY;
	memcpy(at, &kind, 2);
	memcpy(at + 4, &header, 4);
	memcpy(at + 8, &payload, 8);
	memcpy(at + 28, &capability, 4);
	memset(at + ENTRY, (int)capability, payload);
	fat.size += ENTRY + payload;
	uint64_t entries = fat.size - HEADER;
	memcpy(fat.bytes + 8, &entries, 8);
}

/* Kinds and capabilities of what is sent, such as "c90 p90"; "all": the image as it is. */
static const char *chosen(unsigned capability)
{
	static char text[256];
	void *data = NULL;
	size_t size = 0;
	char *to = text;
	/* Exactly as long, for sanitizers. */
	uint8_t *copy = malloc(fat.size);
	memcpy(copy, fat.bytes, fat.size);
	CUresult result = ckt_client_fat_binary_choose(copy, fat.size, capability, &data, &size);
	free(copy);
	if (result)
		return result == CUDA_ERROR_NO_BINARY_FOR_GPU ? "no binary" : "error";
	if (!data)
		return "all";
	uint64_t entries;
	memcpy(&entries, (uint8_t *)data + 8, 8);
	CU_ASSERT_EQUAL(entries, size - HEADER);
	CU_ASSERT_EQUAL(memcmp(data, fat.bytes, 8), 0);
	*to = 0;
	for (const uint8_t *at = (uint8_t *)data + HEADER; at < (uint8_t *)data + size;) {
		uint64_t payload;
		uint32_t of;
		memcpy(&payload, at + 8, 8);
		memcpy(&of, at + 28, 4);
		to += sprintf(to, "%s%c%u", to == text ? "" : " ",
			at[0] == PTX            ? 'p'
				: at[0] == CODE ? 'c'
						: 'o',
			of);
		/* The entry as it was, compressed or not. */
		CU_ASSERT_PTR_NOT_NULL(memmem(fat.bytes, fat.size, at, ENTRY + payload));
		at += ENTRY + payload;
	}
	free(data);
	return text;
}

#define CHOSEN(capability, expected) CU_ASSERT_STRING_EQUAL(chosen(capability), expected)

static void test_code(void)
{
	begin();
	add(CODE, 75, 100);
	add(CODE, 80, 200);
	add(CODE, 86, 8);
	add(CODE, 90, 48);
	add(PTX, 90, 300);
	CHOSEN(90, "c90 p90");
	CHOSEN(86, "c86 p90");
	CHOSEN(80, "c80 p90");
	/* The nearest below; what is above does not run. */
	CHOSEN(89, "c86 p90");
	CHOSEN(87, "c86 p90");
	/* None fits: PTX alone. */
	CHOSEN(120, "p90");
	CHOSEN(70, "p90");
}

static void test_no_ptx(void)
{
	begin();
	add(CODE, 80, 16);
	add(CODE, 90, 16);
	CHOSEN(90, "c90");
	/* The driver names what is missing. */
	CHOSEN(75, "all");
	begin();
	add(CODE, 90, 16);
	CHOSEN(90, "all");
	begin();
	CHOSEN(90, "all");
}

/* From 9.0 on, code of a lower number may be for another GPU alone (sm_101a on 10.3). */
static void test_variants(void)
{
	begin();
	add(CODE, 100, 16);
	add(CODE, 101, 24);
	add(CODE, 90, 24);
	CHOSEN(103, "c100 c101");
	add(CODE, 103, 8);
	CHOSEN(103, "c103");
	/* Two of one number: sm_103 and sm_103a. */
	add(CODE, 103, 40);
	CHOSEN(103, "c103 c103");
}

static void test_others(void)
{
	begin();
	add(CODE, 80, 16);
	add(OTHER, 80, 16);
	add(PTX, 70, 16);
	add(PTX, 120, 16);
	CHOSEN(90, "o80 p70 p120");
}

static void test_environment(void)
{
	begin();
	add(CODE, 80, 16);
	add(CODE, 90, 16);
	setenv("CUDA_FORCE_PTX_JIT", "1", 1);
	CHOSEN(90, "no binary");
	add(PTX, 80, 16);
	CHOSEN(90, "p80");
	setenv("CUDA_FORCE_PTX_JIT", "0", 1);
	CHOSEN(90, "c90 p80");
	setenv("CRICKET_WHOLE_MODULES", "1", 1);
	CHOSEN(90, "all");
	setenv("CUDA_FORCE_PTX_JIT", "1", 1);
	CHOSEN(90, "p80");
	unsetenv("CUDA_FORCE_PTX_JIT");
	unsetenv("CRICKET_WHOLE_MODULES");
}

/* Whatever is not understood goes as it is, and nothing is read behind it. */
static void test_damaged(void)
{
	begin();
	add(CODE, 80, 16);
	add(CODE, 90, 16);
	size_t whole = fat.size;
	for (fat.size = 0; fat.size < whole; fat.size++)
		CHOSEN(90, "all");
	fat.size = whole;
	CHOSEN(90, "c90");
	static const struct {
		unsigned at;
		uint8_t byte;
	} damage[] = {{0, 1}, {4, 2}, {6, 15}, {6, 17}, {8, 1}, {HEADER + 4, 63}, {HEADER + 7, 1},
		{HEADER + 8, 255}, {HEADER + 15, 255}, {HEADER + 80 + 8, 17}};
	for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
		uint8_t before = fat.bytes[damage[i].at];
		fat.bytes[damage[i].at] = damage[i].byte;
		CHOSEN(90, "all");
		fat.bytes[damage[i].at] = before;
	}
	strcpy((char *)fat.bytes, ".version 8.0\n");
	CHOSEN(90, "all");
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("fat_binary", NULL, NULL);
	CU_add_test(suite, "code", test_code);
	CU_add_test(suite, "no ptx", test_no_ptx);
	CU_add_test(suite, "variants", test_variants);
	CU_add_test(suite, "others", test_others);
	CU_add_test(suite, "environment", test_environment);
	CU_add_test(suite, "damaged", test_damaged);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
