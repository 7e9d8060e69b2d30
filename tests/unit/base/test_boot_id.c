/* SPDX-License-Identifier: Apache-2.0 */
/* base/boot_id.h: the kernel's word, and none without a descriptor. */
#include "base/boot_id.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/unit/suite.h"

static void test_kernels(void)
{
	char line[128] = "", first[CKT_BOOT_ID_SIZE], second[CKT_BOOT_ID_SIZE];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	MUST(file != NULL, 1);
	MUST(fgets(line, sizeof line, file) != NULL, 1);
	fclose(file);
	YES(ckt_boot_id(first));
	YES(ckt_boot_id(second));
	TEXT(first, second);
	IS(strlen(line), strlen(first) + 1);
	IS(line[strlen(first)], '\n');
	IS(strncmp(line, first, strlen(first)), 0);
}

static void test_unreadable(void)
{
	char text[CKT_BOOT_ID_SIZE] = "old";
	struct rlimit limit, none;
	MUST(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	MUST(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool known = ckt_boot_id(text);
	MUST(setrlimit(RLIMIT_NOFILE, &limit), 0);
	NO(known);
	TEXT(text, "");
}

UNIT_SUITE(boot_id, {"kernel's", test_kernels}, {"unreadable", test_unreadable})
