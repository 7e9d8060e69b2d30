/* SPDX-License-Identifier: Apache-2.0 */
/* main() of executables of many suites; see suite.h. */
#include "tests/unit/suite.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUITES_MAX = 256 };

static struct suite {
	const char *name;
	const struct unit_test *tests;
	size_t count;
} suites[SUITES_MAX];
static size_t suite_count;

void unit_add(const char *suite, const struct unit_test *tests, size_t count)
{
	if (suite_count == SUITES_MAX)
		abort();
	suites[suite_count++] = (struct suite){suite, tests, count};
}

bool unit_is(long long actual, long long expected, const char *what, const char *file,
	unsigned line, bool fatal)
{
	char text[1024] = "";
	if (actual != expected)
		snprintf(text, sizeof text, "%s is %lld (0x%llx), not %lld (0x%llx)", what, actual,
			(unsigned long long)actual, expected, (unsigned long long)expected);
	return CU_assertImplementation(actual == expected, line, text, file, "", fatal);
}

bool unit_text(const char *actual, const char *expected, const char *what, const char *file,
	unsigned line, bool part)
{
	char text[2048] = "";
	bool good = actual && (part ? strstr(actual, expected) != NULL : !strcmp(actual, expected));
	if (!good)
		snprintf(text, sizeof text, "%s is \"%.700s\", %s \"%.700s\"", what,
			actual ? actual : "(null)", part ? "without" : "not", expected);
	return CU_assertImplementation(good, line, text, file, "", false);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct suite *)a)->name, ((const struct suite *)b)->name);
}

int main(int argc, char **argv)
{
	const char *only = getenv("UNIT_SUITE");
	int status = unit_setup ? unit_setup(argc, argv) : 0;
	unsigned run = 0;
	if (status)
		return status;
	if (CU_initialize_registry())
		return 2;
	qsort(suites, suite_count, sizeof *suites, by_name);
	for (size_t i = 0; i < suite_count; i++) {
		if (only && strcmp(only, suites[i].name))
			continue;
		CU_pSuite suite = CU_add_suite(suites[i].name, NULL, NULL);
		for (size_t n = 0; n < suites[i].count; n++)
			run += CU_add_test(suite, suites[i].tests[n].name,
				       suites[i].tests[n].run) != NULL;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failed =
		CU_get_number_of_failures() + (CU_get_error() != CUE_SUCCESS) + (run == 0);
	CU_cleanup_registry();
	if (unit_teardown)
		unit_teardown(failed != 0);
	return failed != 0;
}
