/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/top/top_table.c: which columns fit, how they read, how they sort. */
#include "ctl/top/top_table.h"

#include <string.h>

#include "inside.h"

static void size_is(double bytes, const char *wanted)
{
	char text[32];
	ckt_ctl_top_size(bytes, text, sizeof text);
	TEXT(text, wanted);
	YES(strlen(text) <= 5);
}

static void test_sizes(void)
{
	size_is(0, "0");
	size_is(1023, "1023");
	size_is(1023.6, "1.0K");
	size_is(1536, "1.5K");
	size_is(10 * 1024.0 - 1, "10K");
	size_is(1023.9 * 1024, "1.0M");
	size_is(80.0 * (1 << 30), "80G");
	size_is(18446744073709551615.0, "16E");
}

static bool has(int width, const char *name)
{
	int widths[CKT_TOP_COLUMNS];
	ckt_ctl_top_layout(width, widths);
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++)
		if (strcmp(ckt_top_columns[i].name, name) == 0)
			return widths[i];
	return false;
}

static void test_layout(void)
{
	static const char *const first[] = {"SESSION", "PROGRAM", "OWNER", "STATE", "SHARE",
		"MEMORY", "IN/s", "OUT/s", "CALLS/s", "WAITS/s"};
	struct ckt_top_session session = {.session = "0123456789ab", .program = "a-long-program"};
	int widths[CKT_TOP_COLUMNS];
	char line[CKT_TOP_WIDTH_MAX + 1];
	for (size_t i = 0; i < COUNT(first); i++)
		YES(has(80, first[i]));
	NO(has(80, "WAITING"));
	NO(has(40, "WAITS/s"));
	YES(has(40, "SESSION"));
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++)
		YES(has(CKT_TOP_WIDTH_MAX, ckt_top_columns[i].name));
	for (int width = 40; width <= CKT_TOP_WIDTH_MAX; width++) {
		ckt_ctl_top_layout(width, widths);
		ckt_ctl_top_line(widths, NULL, line, sizeof line);
		YES((int)strlen(line) <= width);
		ckt_ctl_top_line(widths, &session, line, sizeof line);
		YES((int)strlen(line) <= width);
		YES(strncmp(line, "01234567", 8) == 0);
	}
	ckt_ctl_top_layout(80, widths);
	ckt_ctl_top_line(widths, &session, line, sizeof line);
	HAS(line, "01234567 a-long-pro ");
	/* A line that does not fit is cut at a column. */
	ckt_ctl_top_line(widths, &session, line, 12);
	TEXT(line, "01234567");
}

static void order_is(struct ckt_top_sample *sample, int key, bool reverse, const char *wanted)
{
	char order[8] = "";
	ckt_ctl_top_sort(sample, (unsigned)ckt_ctl_top_column(key), reverse);
	for (size_t i = 0; i < sample->count; i++)
		strcat(order, sample->list[i].session);
	TEXT(order, wanted);
}

static void test_sort(void)
{
	struct ckt_top_session list[3] = {
		{.session = "a", .program = "z", .memory_bytes = 5, .share_permille = -1},
		{.session = "b",
			.program = "y",
			.memory_bytes = 7,
			.rated = true,
			.calls_rate = 3,
			.share_permille = 0},
		{.session = "c",
			.program = "y",
			.memory_bytes = 6,
			.rated = true,
			.calls_rate = 4,
			.transport = "tcp",
			.share_permille = 10},
	};
	struct ckt_top_sample sample = {.list = list, .count = 3};
	order_is(&sample, 's', false, "abc");
	order_is(&sample, 's', true, "cba");
	order_is(&sample, 'p', false, "bca");
	order_is(&sample, 'm', false, "bca");
	order_is(&sample, 'm', true, "acb");
	order_is(&sample, 'c', false, "cba");
	order_is(&sample, 'r', false, "cba");
	order_is(&sample, 'v', false, "abc");
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++) {
		IS(ckt_ctl_top_column(ckt_top_columns[i].key), (int)i);
		/* Keys of the screen itself. */
		YES(strchr("qhR ?", ckt_top_columns[i].key) == NULL);
		ckt_ctl_top_sort(&sample, i, false);
	}
	IS(ckt_ctl_top_column('x'), -1);
	ckt_ctl_top_sort(&(struct ckt_top_sample){0}, 0, false);
}

UNIT_SUITE(top_table, {"sizes", test_sizes}, {"layout", test_layout}, {"sort", test_sort})
