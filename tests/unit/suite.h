/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suites of many source files in one executable: every test file adds its own before main()
 * (suite.c) runs them all.
 *
 * The environment variable UNIT_SUITE names the one to run alone.
 */
#pragma once

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>

struct unit_test {
	const char *name;
	void (*run)(void);
};

void unit_add(const char *suite, const struct unit_test *tests, size_t count);
/*
 * With main's arguments, before the first suite; not 0 ends the program with that status.
 * Executables that need none define none.
 */
int unit_setup(int argc, char **argv) __attribute__((weak));
/* After the last one; may end the process with that status itself. */
void unit_teardown(int status) __attribute__((weak));

/* UNIT_SUITE(name, {"what", test_what}, ...) at the end of a file. */
#define UNIT_SUITE(suite, ...)                                                        \
	static const struct unit_test unit_tests[] = {__VA_ARGS__};                   \
	__attribute__((constructor)) static void unit_add_here(void)                  \
	{                                                                             \
		unit_add(#suite, unit_tests, sizeof unit_tests / sizeof *unit_tests); \
	}

/* Equal numbers; says both where they are not. */
#define IS(actual, expected) \
	unit_is((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__, false)
/* The same, and the test ends where they are not. */
#define MUST(actual, expected) \
	unit_is((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__, true)
#define YES(condition) CU_ASSERT_TRUE(condition)
#define NO(condition) CU_ASSERT_FALSE(condition)
/* Equal texts. */
#define TEXT(actual, expected) unit_text(actual, expected, #actual, __FILE__, __LINE__, false)
/* The first contains the second. */
#define HAS(text, part) unit_text(text, part, #text, __FILE__, __LINE__, true)

bool unit_is(long long actual, long long expected, const char *what, const char *file,
	unsigned line, bool fatal);
bool unit_text(const char *actual, const char *expected, const char *what, const char *file,
	unsigned line, bool part);

#define COUNT(array) (sizeof(array) / sizeof *(array))
