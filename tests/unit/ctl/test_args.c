/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/args.c: the command line of cricketctl. */
#include <CUnit/Basic.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/command.h"

static int none(const struct ckt_ctl_args *args)
{
	return args->word_count;
}

static const struct ckt_ctl_command commands[] = {
	{"ps", 0, 0, false, "", "ps", "", none},
	{"save", 2, 2, false, "stop deadline", "save A B", "", none},
	{"doctor", 0, 1, true, "", "doctor [CMD]", "", none},
	{0},
};

static struct ckt_ctl_args args;
static const struct ckt_ctl_command *command;

#define PARSE(...) parse((char *[]){(char *)"cricketctl", __VA_ARGS__ __VA_OPT__(, ) NULL})

static int parse(char **argv)
{
	/* The words stay in argv, which must live as long as they do. */
	static char *kept[32];
	int argc = 0;
	for (; argv[argc]; argc++)
		kept[argc] = argv[argc];
	kept[argc] = NULL;
	args = (struct ckt_ctl_args){0};
	command = NULL;
	return ckt_ctl_parse(commands, argc, kept, &args, &command);
}

static void test_good(void)
{
	CU_ASSERT_EQUAL(PARSE("ps"), 0);
	CU_ASSERT_PTR_EQUAL(command, &commands[0]);
	CU_ASSERT(!args.server && !args.json && args.word_count == 0);
	CU_ASSERT_EQUAL(PARSE("--server", "a", "ps", "--json"), 0);
	CU_ASSERT_STRING_EQUAL(args.server, "a");
	CU_ASSERT(args.json);
	CU_ASSERT_EQUAL(PARSE("--json", "ps", "--server=b"), 0);
	CU_ASSERT_STRING_EQUAL(args.server, "b");
	CU_ASSERT_EQUAL(PARSE("save", "x", "--stop", "y", "--deadline", "5"), 0);
	CU_ASSERT(args.stop && args.word_count == 2);
	CU_ASSERT_STRING_EQUAL(args.words[0], "x");
	CU_ASSERT_STRING_EQUAL(args.words[1], "y");
	CU_ASSERT_STRING_EQUAL(args.deadline, "5");
	CU_ASSERT_EQUAL(PARSE("save", "--", "--x", "--stop"), 0);
	CU_ASSERT(!args.stop && args.word_count == 2);
	CU_ASSERT_STRING_EQUAL(args.words[1], "--stop");
	/* What follows the program's name is the program's. */
	CU_ASSERT_EQUAL(PARSE("doctor", "--json", "app", "--server", "z", "-x"), 0);
	CU_ASSERT(args.json && !args.server && args.word_count == 4);
	CU_ASSERT_STRING_EQUAL(args.words[0], "app");
	CU_ASSERT_EQUAL(PARSE("--help"), 0);
	CU_ASSERT(args.help && !command);
	CU_ASSERT_EQUAL(PARSE("save", "--help"), 0);
	CU_ASSERT(args.help && command == &commands[1]);
	CU_ASSERT_EQUAL(PARSE("--version"), 0);
	CU_ASSERT(args.version);
}

static void test_bad(void)
{
	CU_ASSERT_EQUAL(PARSE(), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("nonsense"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "extra"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("save", "x"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--stop"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--nonsense"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "-j"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--json=yes"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--server"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--server="), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--serverx", "a"), CKT_EXIT_USAGE);
	CU_ASSERT_EQUAL(PARSE("ps", "--serve", "a"), CKT_EXIT_USAGE);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("args", NULL, NULL);
	CU_add_test(suite, "good", test_good);
	CU_add_test(suite, "bad", test_bad);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
