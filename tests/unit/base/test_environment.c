/* SPDX-License-Identifier: Apache-2.0 */
/* The table of variables: complete descriptions, in order, and misspellings found. */
#include <CUnit/Basic.h>
#include <string.h>

#include "base/environment.h"

static void table_is_sorted_and_described(void)
{
	for (size_t i = 0; i < ckt_environment_variables_count; i++) {
		const struct ckt_environment_variable *variable = &ckt_environment_variables[i];

		CU_ASSERT(strncmp(variable->name, "CRICKET_", 8) == 0);
		CU_ASSERT(
			strlen(variable->description) > 10 && !strchr(variable->description, '\n'));
		CU_ASSERT(i == 0 ||
			strcmp(ckt_environment_variables[i - 1].name, variable->name) < 0);
	}
}

static void unknown_are_found(void)
{
	char *environment[] = {"PATH=/bin", "CRICKET_LOG=debug", "CRICKET_LOGS=debug",
		"CRICKET_LO=1", "CRICKET_SYNC", "CRICKET_=", "XCRICKET_A=1", NULL};
	size_t cursor = 0;

	CU_ASSERT_PTR_EQUAL(ckt_environment_unknown(environment, &cursor), environment[2]);
	CU_ASSERT_PTR_EQUAL(ckt_environment_unknown(environment, &cursor), environment[3]);
	CU_ASSERT_PTR_EQUAL(ckt_environment_unknown(environment, &cursor), environment[5]);
	CU_ASSERT_PTR_NULL(ckt_environment_unknown(environment, &cursor));
	cursor = 0;
	CU_ASSERT_PTR_NULL(ckt_environment_unknown(NULL, &cursor));
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("environment", NULL, NULL);
	CU_add_test(suite, "table", table_is_sorted_and_described);
	CU_add_test(suite, "unknown", unknown_are_found);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
