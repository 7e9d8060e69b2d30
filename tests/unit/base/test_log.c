/* SPDX-License-Identifier: Apache-2.0 */
/* Logging: levels, a file, whole lines, errno kept. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static void test_levels(void)
{
	static const char *const names[] = {"quiet", "error", "warning", "info", "debug"};
	enum ckt_log_level level;
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(ckt_log_level_parse(names[i], &level), 0);
		CU_ASSERT_EQUAL((int)level, i);
	}
	level = CKT_LOG_INFO;
	CU_ASSERT_EQUAL(ckt_log_level_parse("Debug", &level), -EINVAL);
	CU_ASSERT_EQUAL(ckt_log_level_parse("", &level), -EINVAL);
	CU_ASSERT_EQUAL(level, CKT_LOG_INFO);
}

static void test_file(void)
{
	char path[] = "/tmp/ckt-log-XXXXXX", text[8192], longer[4000];
	close(mkstemp(path));
	CU_ASSERT_EQUAL(ckt_log_init("name", CKT_LOG_DEBUG, "/no/such/directory/file"), -ENOENT);
	CU_ASSERT_EQUAL_FATAL(ckt_log_init("name", CKT_LOG_INFO, path), 0);
	errno = EXDEV;
	ckt_info("number %d", 7);
	ckt_debug("not written");
	ckt_warning("name '%s'", "a\nerror: b\033[2J\177\tü");
	CU_ASSERT_EQUAL(errno, EXDEV);
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	ckt_error("%s", longer);
	CU_ASSERT_EQUAL(ckt_log_init("name", CKT_LOG_WARNING, NULL), 0);
	FILE *file = fopen(path, "r");
	size_t size = fread(text, 1, sizeof text - 1, file);
	text[size] = 0;
	fclose(file);
	unlink(path);
	char *end = strchr(text, '\n');
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "] info: number 7\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "] warning: name 'a?error: b?[2J??ü'\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " name["));
	CU_ASSERT_PTR_NULL(strstr(text, "not written"));
	/* Cut, but still one line. */
	end = strchr(end + 1, '\n');
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	CU_ASSERT_PTR_NOT_NULL(strstr(end + 1, "] error: xxx"));
	CU_ASSERT_PTR_EQUAL(strchr(end + 1, '\n'), text + size - 1);
}

static char taken[4096];
static unsigned lines;

static bool take(enum ckt_log_level level, const char *name, const char *line)
{
	snprintf(taken, sizeof taken, "%d %s %s", (int)level, name, line);
	errno = ERANGE;
	lines++;
	return strstr(line, "refuse") == NULL;
}

/* Lines go to the sink without their ends, and to the file if it does not take them. */
static void test_sink(void)
{
	char path[] = "/tmp/ckt-log-XXXXXX", text[4096];
	close(mkstemp(path));
	CU_ASSERT_EQUAL_FATAL(ckt_log_init("name", CKT_LOG_INFO, path), 0);
	ckt_log_set_sink(take);
	errno = EXDEV;
	ckt_warning("a\n%d", 7);
	CU_ASSERT_EQUAL(errno, EXDEV);
	CU_ASSERT_STRING_EQUAL(taken, "2 name a?7");
	ckt_debug("no");
	CU_ASSERT_EQUAL(lines, 1);
	ckt_info("refuse it");
	CU_ASSERT_EQUAL(lines, 2);
	ckt_log_set_sink(NULL);
	ckt_info("no sink");
	CU_ASSERT_EQUAL(lines, 2);
	CU_ASSERT_EQUAL(ckt_log_init("name", CKT_LOG_WARNING, NULL), 0);
	FILE *file = fopen(path, "r");
	text[fread(text, 1, sizeof text - 1, file)] = 0;
	fclose(file);
	unlink(path);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "info: refuse it\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "info: no sink\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "a?7"));
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("log", NULL, NULL);
	CU_add_test(suite, "levels", test_levels);
	CU_add_test(suite, "a file", test_file);
	CU_add_test(suite, "a sink", test_sink);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
