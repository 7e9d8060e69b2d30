/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES: numbers, UUIDs and their beginnings, and what ends the list. */
#include <CUnit/Basic.h>
#include <string.h>

#include "cudacommon/visible_devices.h"

/* Three GPUs; the first two have much in common. */
static const uint8_t uuids[3][CKT_VISIBLE_UUID] = {
	{0xab, 0xcd, 0xef, 0x01, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
	{0xab, 0xcd, 0xef, 0x01, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14},
	{0xac, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x99},
};

/* expected: the digits of what is visible, in its order */
static void expect(const char *text, const char *expected)
{
	unsigned chosen[3];
	char got[8] = "";
	int n = ckt_visible_select(text, uuids, 3, chosen);
	CU_ASSERT_FATAL(n <= 3);
	if (n < 0)
		strcpy(got, "twice");
	for (int i = 0; i < n; i++)
		got[i] = (char)('0' + chosen[i]);
	CU_ASSERT_STRING_EQUAL(got, expected);
}

static void test_numbers(void)
{
	expect("0", "0");
	expect("2,0,1", "201");
	expect("1 , 2", "12");
	expect("1gpu,2", "12");
	expect("", "");
	expect("-1", "");
	expect("3", "");
	expect("x", "");
	expect("99999999999999999999", "");
	expect(",0", "");
	expect("0,,1", "0");
	expect("0,3,1", "0");
	expect("1,-1,0", "1");
	expect("1,x,0", "1");
	expect("1,", "1");
}

static void test_uuids(void)
{
	expect("GPU-abcdef01-0203-0405-0607-08090a0b0c0d", "0");
	expect("GPU-abcdef01-0203-0405-0607-08090a0b0c0e", "1");
	expect("GPU-ac", "2");
	expect("GPU-ac,GPU-abcdef01-0203-0405-0607-08090a0b0c0e", "21");
	expect("GPU-ab", "");
	expect("GPU-", "");
	expect("GPU-ad", "");
	expect("GPU-ac,GPU-ad,0", "2");
	expect("GPU-ac,0", "2");
	expect("0,GPU-ac", "0");
	expect("GPU-ac000000-0000-0000-0000-000000000099", "2");
	expect("GPU-ac000000-0000-0000-0000-0000000000990", "2");
	expect("MIG-ac000000-0000-0000-0000-000000000099", "");
	expect("ac000000", "");
}

static void test_twice(void)
{
	expect("0,0", "twice");
	expect("1,2,1", "twice");
	expect("GPU-ac,GPU-ac000", "twice");
	expect("1,3,1", "1");
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("visible", NULL, NULL);
	CU_add_test(suite, "numbers", test_numbers);
	CU_add_test(suite, "UUIDs", test_uuids);
	CU_add_test(suite, "named twice", test_twice);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
