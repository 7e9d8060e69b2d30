/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/options.c: options: lists of GPUs, command line, INI file. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/options.h"

static void test_library_path(void)
{
	static const struct {
		const char *value;
		int result;
	} cases[] = {{"/opt/cuda/lib64", 0}, {"/a:/b", 0}, {"/a:", 0}, {"", -EINVAL},
		{"relative", -EINVAL}, {"/a:b", -EINVAL}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ckt_options options = {0};
		char message[CKT_OPTION_MESSAGE_MAX] = "";
		char *arguments[] = {"cricket-server", "--library-path", (char *)cases[i].value};
		CU_ASSERT_EQUAL(ckt_options_parse(&options, 3, arguments, message, sizeof message),
			cases[i].result);
		if (cases[i].result) {
			CU_ASSERT_PTR_NOT_NULL(strstr(message, "--library-path: '"));
		} else {
			CU_ASSERT_STRING_EQUAL(options.library_path, cases[i].value);
		}
		ckt_options_fini(&options);
	}
}

static void test_gpus(void)
{
	static const char *const bad[] = {"", ",", "1,", ",1", "a", "1-", "-1", "3-1", "64", "1-64",
		"1 2", "0-1-2", "99999999999999999999", "ALL"};
	unsigned gpus[CKT_DEVICES_MAX], count = 9;
	CU_ASSERT_EQUAL(ckt_options_gpus_parse("all", gpus, &count), 0);
	CU_ASSERT_EQUAL(count, 0);
	CU_ASSERT_EQUAL(ckt_options_gpus_parse("5,0,2-3,3", gpus, &count), 0);
	CU_ASSERT_EQUAL_FATAL(count, 4);
	CU_ASSERT(gpus[0] == 0 && gpus[1] == 2 && gpus[2] == 3 && gpus[3] == 5);
	CU_ASSERT_EQUAL(ckt_options_gpus_parse("0-63", gpus, &count), 0);
	CU_ASSERT_EQUAL(count, 64);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_NOT_EQUAL(ckt_options_gpus_parse(bad[i], gpus, &count), 0);
}

static int parse(struct ckt_options *options, char *message, char *const *arguments)
{
	int argc = 0;
	while (arguments[argc])
		argc++;
	return ckt_options_parse(options, argc, arguments, message, CKT_OPTION_MESSAGE_MAX);
}

#define PARSE(...)               \
	parse(&options, message, \
		(char *const[]){(char *)"cricket-server", __VA_ARGS__ __VA_OPT__(, ) NULL})

static void test_command_line(void)
{
	struct ckt_options options;
	char message[CKT_OPTION_MESSAGE_MAX] = "";
	CU_ASSERT_EQUAL(PARSE(), 0);
	/* Who wants TCP says so. */
	CU_ASSERT_EQUAL(options.listen.count, 0);
	CU_ASSERT(options.socket == NULL && options.max_sessions == 256 &&
		options.session_memory == 0 && !options.insecure);
	ckt_options_fini(&options);
	CU_ASSERT_EQUAL(PARSE("--listen", "a:1", "--listen=b:2", "--insecure",
				"--session-memory=1G", "--max-sessions", "0"),
		0);
	CU_ASSERT_EQUAL_FATAL(options.listen.count, 2);
	CU_ASSERT_STRING_EQUAL(options.listen.items[0], "a:1");
	CU_ASSERT_STRING_EQUAL(options.listen.items[1], "b:2");
	CU_ASSERT(options.insecure && options.session_memory == 1u << 30 &&
		options.max_sessions == 0);
	ckt_options_fini(&options);
	CU_ASSERT_EQUAL(PARSE("--max-sessions", "12x"), -22);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "--max-sessions"));
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "'12x'"));
	ckt_options_fini(&options);
	CU_ASSERT_EQUAL(PARSE("--max-sessions"), -22);
	ckt_options_fini(&options);
	CU_ASSERT_EQUAL(PARSE("--help=yes"), -22);
	ckt_options_fini(&options);
	CU_ASSERT_EQUAL(PARSE("--listen", "file:/x"), -22);
	ckt_options_fini(&options);
	/* Longer than any option: must not be cut to one that exists. */
	CU_ASSERT_EQUAL(
		PARSE("--insecurexxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
		-22);
	ckt_options_fini(&options);
}

static void test_too_many_listeners(void)
{
	struct ckt_options options;
	char message[CKT_OPTION_MESSAGE_MAX] = "";
	char *arguments[2 + CKT_LISTEN_MAX + 1] = {(char *)"cricket-server"};
	for (int i = 1; i <= CKT_LISTEN_MAX + 1; i++)
		arguments[i] = (char *)"--listen=:0";
	CU_ASSERT_NOT_EQUAL(parse(&options, message, arguments), 0);
	CU_ASSERT_EQUAL(options.listen.count, CKT_LISTEN_MAX);
	ckt_options_fini(&options);
}

static void test_round_trip(void)
{
	char path[] = "/tmp/ckt-options-XXXXXX", message[CKT_OPTION_MESSAGE_MAX] = "",
	     *first = NULL, *second = NULL;
	size_t size;
	struct ckt_options options, loaded;
	CU_ASSERT_EQUAL_FATAL(
		PARSE("--listen=:0", "--listen=h:1", "--gpus=1-2", "--session-memory=1536M",
			"--token-file=t t", "--insecure", "--grace=1"),
		0);
	FILE *file = open_memstream(&first, &size);
	ckt_options_print(&options, file);
	fclose(file);
	int fd = mkstemp(path);
	CU_ASSERT_EQUAL(write(fd, first, size), (ssize_t)size);
	close(fd);
	ckt_options_init(&loaded);
	CU_ASSERT_EQUAL(ckt_options_load(&loaded, path, message, sizeof message), 0);
	file = open_memstream(&second, &size);
	ckt_options_print(&loaded, file);
	fclose(file);
	CU_ASSERT_STRING_EQUAL(first, second);
	unlink(path);
	free(first);
	free(second);
	ckt_options_fini(&options);
	ckt_options_fini(&loaded);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("options", NULL, NULL);
	CU_add_test(suite, "gpus", test_gpus);
	CU_add_test(suite, "library path", test_library_path);
	CU_add_test(suite, "command line", test_command_line);
	CU_add_test(suite, "too many listeners", test_too_many_listeners);
	CU_add_test(suite, "round trip", test_round_trip);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
