/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/code/code_address.c: where code lies that a library gives to the driver, and
 * how much it is.
 */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/code/code.h"
#include "tests/unit/worker/inside.h"

static const char text[] = ".version 6.4\n.target sm_70\n.address_size 64\n";

static void test_kinds(void)
{
	struct ckt_code_place place;
	char *copy = strdup(text);
	YES(ckt_code_locate(copy, &place));
	YES(place.data == (const uint8_t *)copy);
	IS(place.size, sizeof text);
	TEXT(place.file, "");
	free(copy);
	/* A fat binary, and what nvcc puts before one. */
	uint64_t fat[4] = {0};
	uint16_t version = 1, head = 16;
	uint32_t mark = 0xba55ed50;
	memcpy(fat, &mark, 4);
	memcpy((uint8_t *)fat + 4, &version, 2);
	memcpy((uint8_t *)fat + 6, &head, 2);
	fat[1] = 16;
	struct {
		uint32_t mark, version;
		const void *data;
		void *more;
	} wrapper = {0x466243b1, 1, fat, NULL};
	YES(ckt_code_locate(&wrapper, &place));
	YES(place.data == (const uint8_t *)fat);
	IS(place.size, 32);
	wrapper.data = NULL;
	NO(ckt_code_locate(&wrapper, &place));
	NO(ckt_code_locate(NULL, &place));
	Elf64_Ehdr elf = {.e_shoff = 1000,
		.e_shnum = 3,
		.e_shentsize = 64,
		.e_phoff = 64,
		.e_phnum = 2,
		.e_phentsize = 56};
	memcpy(elf.e_ident, ELFMAG, SELFMAG);
	YES(ckt_code_locate(&elf, &place));
	IS(place.size, 1192);
}

/* Of a library's file: found again by name and place, and by no more than it has. */
static void test_file(void)
{
	struct ckt_code_place place;
	const struct ckt_code_place none = {0};
	/* libc has no code for GPUs, but text in a file that is loaded. */
	YES(ckt_code_locate(strerror(1), &place));
	MUST(place.file[0] != 0, true);
	HAS(place.file, "libc.so");
	const uint8_t *found = ckt_code_find_file(place.file, place.offset, place.size);
	YES(found == place.data);
	CU_ASSERT_PTR_NULL(ckt_code_find_file(place.file, place.offset, (uint64_t)1 << 40));
	CU_ASSERT_PTR_NULL(ckt_code_find_file(place.file, UINT64_MAX, 16));
	CU_ASSERT_PTR_NULL(ckt_code_find_file("libnothing.so.1", place.offset, place.size));
	CU_ASSERT_PTR_NULL(ckt_code_find_file(none.file, 0, 1));
}

UNIT_SUITE(libs_code_place, {"kinds", test_kinds}, {"file", test_file})
