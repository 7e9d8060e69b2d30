/* SPDX-License-Identifier: Apache-2.0 */
/* base/option_table.h: how an option is printed, and the names of the kinds. */
#include <stdlib.h>
#include <string.h>

#include "base/option_table.h"
#include "tests/unit/suite.h"

static void check_print(const struct ckt_option *option, bool with_letters, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ckt_option_print(option, with_letters, file);
	fclose(file);
	TEXT(text, expected);
	free(text);
}

static void test_print(void)
{
	const struct ckt_option flag = {"json", NULL, "print JSON"};
	const struct ckt_option lettered = {"server", "ADDRESS", "where", .letter = 's'};
	const struct ckt_option wide = {"max-connections-per-user", "NUMBER", "many"};
	const struct ckt_option wrapped = {"a", "B",
		"one two three four five six seven eight nine ten eleven twelve thirteen"};
	check_print(&flag, false, "  --json                   print JSON\n");
	check_print(&flag, true, "      --json               print JSON\n");
	check_print(&lettered, true, "  -s, --server ADDRESS     where\n");
	/* Without a table that has letters the letter is not told. */
	check_print(&lettered, false, "  --server ADDRESS         where\n");
	check_print(&wide, false, "  --max-connections-per-user NUMBER many\n");
	check_print(&wrapped, false,
		"  --a B                    one two three four five six seven eight nine ten eleven\n"
		"                           twelve thirteen\n");
}

static void test_kinds(void)
{
	for (int kind = 0; kind < CKT_VALUE_KINDS; kind++)
		for (int other = 0; other < kind; other++)
			NO(strcmp(ckt_value_kind_name(kind), ckt_value_kind_name(other)) == 0);
	TEXT(ckt_value_kind_name(CKT_VALUE_SESSION), "session");
	TEXT(ckt_value_kind_name(CKT_VALUE_KINDS), "text");
}

UNIT_SUITE(option_table, {"print", test_print}, {"kinds", test_kinds})
