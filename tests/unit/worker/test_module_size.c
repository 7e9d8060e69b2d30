/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modules take of a GPU, by their images: variables of PTX in every form, sections of machine
 * code.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module_size.h"
#include "tests/unit/suite.h"

/* Beyond the text itself, which stands for the code. */
static uint64_t variables(const char *text)
{
	size_t size = strlen(text);
	char *copy = malloc(size + 1);
	memcpy(copy, text, size + 1);
	uint64_t bytes = ckt_module_device_bytes((const uint8_t *)copy, size, 90);
	free(copy);
	return bytes - size;
}

static void test_variables(void)
{
	CU_ASSERT_EQUAL(variables(".version 8.0\n.target sm_90\n"), 0);
	CU_ASSERT_EQUAL(variables(".visible .global .align 4 .b8 big[3221225472];\n"), 3221225472);
	CU_ASSERT_EQUAL(variables(".global .u32 one;.global .align 8 .u64 two;"), 12);
	CU_ASSERT_EQUAL(variables(".global .f32 m[100][200];"), 80000);
	CU_ASSERT_EQUAL(variables(".global .v4 .f32 v[10];"), 160);
	CU_ASSERT_EQUAL(variables(".const .b8 c[65536];"), 65536);
	CU_ASSERT_EQUAL(
		variables(".global .attribute(.managed) .align 4 .b8 m[1048576];"), 1048576);
	CU_ASSERT_EQUAL(variables(".global /* [5] */ .b8 a[0x100];"), 256);
	CU_ASSERT_EQUAL(variables("// .global .b8 a[100];\n/* .global .b8 a[100]; */"), 0);
	CU_ASSERT_EQUAL(variables(".extern .global .b8 elsewhere[100];"), 0);
	CU_ASSERT_EQUAL(
		variables(
			".entry k(.param .u64 .ptr .global .align 4 p) { ld.global.u32 %r1, [%rd1+400]; st.global [a], 5; }"),
		0);
	CU_ASSERT_TRUE(variables(".global .b8 a[100] = {1, 2, 3};") >= 100);
	CU_ASSERT_TRUE(
		variables(
			".global .b8 a[18446744073709551615]; .global .b8 b[18446744073709551615];") >=
		(uint64_t)1 << 62);
	CU_ASSERT_TRUE(variables(".global .b64 a[4294967296][4294967296];") >= (uint64_t)1 << 62);
	/* Ends anywhere. */
	static const char all[] = ".global .v4 .f32 v[10][0x20] = {1}; /* x */ .const .b8 c[6";
	for (size_t size = 0; size < sizeof all; size++) {
		char *copy = calloc(1, size + 1);
		memcpy(copy, all, size);
		ckt_module_device_bytes((const uint8_t *)copy, size, 90);
		free(copy);
	}
}

UNIT_SUITE(module_bytes, {"variables", test_variables})
