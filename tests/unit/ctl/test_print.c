/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/print.c: how sizes, times, states and foreign text are printed. */
#include <CUnit/Basic.h>
#include <jansson.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/control.h"

static void test_texts(void)
{
	char buffer[64];
	CU_ASSERT_STRING_EQUAL(ckt_ctl_size_text(0, buffer, sizeof buffer), "0 B");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_size_text(1023, buffer, sizeof buffer), "1023 B");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_size_text(1536, buffer, sizeof buffer), "1.5 KiB");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_size_text(64ull << 30, buffer, sizeof buffer), "64 GiB");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_size_text(UINT64_MAX, buffer, sizeof buffer), "16 EiB");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_time_text(0, buffer, sizeof buffer), "1970-01-01T00:00:00Z");
	CU_ASSERT_STRING_EQUAL(
		ckt_ctl_time_text(1795236900, buffer, sizeof buffer), "2026-11-21T04:55:00Z");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_state_name(1), "running");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_state_name(99), "unknown");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("a\x1b[2J\n\x7f", buffer, sizeof buffer), "a?[2J??");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("abcdef", buffer, 4), "abc");
	/* Controls of 0x80 to 0x9f, as UTF-8, as single bytes, and in a form that is too long. */
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("\xc2\x9b"
					     "2J",
				       buffer, sizeof buffer),
		"??2J");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("\x9b"
					     "2J",
				       buffer, sizeof buffer),
		"?2J");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("\xe0\x82\x9b", buffer, sizeof buffer), "???");
	/* Names are shown as they are; a character that has no room is left out. */
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("gr\xc3\xbc\xc3\x9f"
					     "e",
				       buffer, sizeof buffer),
		"gr\xc3\xbc\xc3\x9f"
		"e");
	CU_ASSERT_STRING_EQUAL(
		ckt_ctl_clean("\xe2\x82\xac\xf0\x9f\x90\x9e", buffer, 7), "\xe2\x82\xac");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_clean("a\xe2\x82", buffer, sizeof buffer), "a??");
}

static void test_json(void)
{
	json_t *text = ckt_ctl_json_text("caf\xc3\xa9");
	CU_ASSERT_STRING_EQUAL(json_string_value(text), "caf\xc3\xa9");
	json_decref(text);
	text = ckt_ctl_json_text("bad \xff\xfe");
	CU_ASSERT_STRING_EQUAL(json_string_value(text), "bad ??");
	json_decref(text);
}

static void test_results(void)
{
	char message[] = "said on purpose by the test";
	ckt_control_result result = {CKT_CONTROL_OK, message};
	CU_ASSERT_EQUAL(ckt_ctl_result(&result), CKT_EXIT_DONE);
	result.status = CKT_CONTROL_REFUSED;
	CU_ASSERT_EQUAL(ckt_ctl_result(&result), CKT_EXIT_REFUSED);
	result.status = CKT_CONTROL_NO_SESSION;
	CU_ASSERT_EQUAL(ckt_ctl_result(&result), CKT_EXIT_NO_SESSION);
	result.status = CKT_CONTROL_AMBIGUOUS;
	CU_ASSERT_EQUAL(ckt_ctl_result(&result), CKT_EXIT_NO_SESSION);
	CU_ASSERT_EQUAL(ckt_ctl_check_session("0123456789ab"), CKT_EXIT_DONE);
	CU_ASSERT_EQUAL(ckt_ctl_check_session("0"), CKT_EXIT_DONE);
	CU_ASSERT_EQUAL(ckt_ctl_check_session(""), CKT_EXIT_NO_SESSION);
	CU_ASSERT_EQUAL(ckt_ctl_check_session("0123456789abc"), CKT_EXIT_NO_SESSION);
	CU_ASSERT_EQUAL(ckt_ctl_check_session("ABC"), CKT_EXIT_NO_SESSION);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("print", NULL, NULL);
	CU_add_test(suite, "texts", test_texts);
	CU_add_test(suite, "json", test_json);
	CU_add_test(suite, "results", test_results);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
