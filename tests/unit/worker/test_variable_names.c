/* SPDX-License-Identifier: Apache-2.0 */
/* Names of variables in an image, whatever it is. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "server/worker/module/variable_names.h"
#include "tests/unit/suite.h"

static bool has(const struct ckt_variable_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->list[i], name))
			return true;
	return false;
}

static void test_names(void)
{
	static const char text[] =
		".global .align 4 .b8 _Z5table[16];\n.global .u32 $tmp$1 = 3;\0second\0_Z5table";
	struct ckt_variable_names names;
	CU_ASSERT_EQUAL(ckt_variable_names_collect((const uint8_t *)text, sizeof text, &names), 0);
	CU_ASSERT_TRUE(has(&names, "_Z5table") && has(&names, "$tmp$1") && has(&names, "second"));
	CU_ASSERT_FALSE(has(&names, "4"));
	size_t twice = 0;
	for (size_t i = 0; i < names.count; i++)
		twice += !strcmp(names.list[i], "_Z5table");
	CU_ASSERT_EQUAL(twice, 1);
	ckt_variable_names_fini(&names);
	/* In a fat binary, one entry plain and one compressed; cut off anywhere it does no harm. */
	uint8_t image[1024] = {0}, *p = image + 16;
	memcpy(image, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	char packed[256];
	size_t size = ZSTD_compress(packed, sizeof packed, text, sizeof text, 1);
	CU_ASSERT_FALSE_FATAL(ZSTD_isError(size));
	for (int entry = 0; entry < 2; entry++) {
		uint64_t payload = entry ? (size + 7) / 8 * 8 : 8, flags = 0x8000,
			 unpacked = sizeof text;
		uint32_t header = 64, compressed = (uint32_t)size;
		memcpy(p, "\x01\x00\x01\x01", 4);
		memcpy(p + 4, &header, 4);
		memcpy(p + 8, &payload, 8);
		if (entry) {
			memcpy(p + 16, &compressed, 4);
			memcpy(p + 40, &flags, 8);
			memcpy(p + 56, &unpacked, 8);
		}
		memcpy(p + 64, entry ? packed : "\0plain\0", entry ? size : 8);
		p += 64 + payload;
	}
	uint64_t body = (uint64_t)(p - image) - 16;
	memcpy(image + 8, &body, 8);
	CU_ASSERT_EQUAL(ckt_variable_names_collect(image, (size_t)(p - image), &names), 0);
	CU_ASSERT_TRUE(has(&names, "_Z5table") && has(&names, "plain"));
	ckt_variable_names_fini(&names);
	for (size_t cut = 0; cut < (size_t)(p - image); cut++) {
		uint8_t *copy = malloc(cut + 1);
		memcpy(copy, image, cut);
		CU_ASSERT_EQUAL(ckt_variable_names_collect(copy, cut, &names), 0);
		ckt_variable_names_fini(&names);
		free(copy);
	}
}

UNIT_SUITE(names, {"names", test_names})
