/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/trace_file.c: which file a process writes. */
#include "client/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "in_child.h"
#include "tests/unit/suite.h"

static void test_expand(void)
{
	char path[32];
	IS(ckt_trace_path_expand("a%p.b%p", 42, path, sizeof path), 0);
	TEXT(path, "a42.b42");
	IS(ckt_trace_path_expand("100%", 42, path, sizeof path), 0);
	TEXT(path, "100%");
	IS(ckt_trace_path_expand("0123456789012345678901234567890", 1, path, sizeof path), 0);
	IS(ckt_trace_path_expand("01234567890123456789012345678901", 1, path, sizeof path),
		-ENAMETOOLONG);
	IS(ckt_trace_path_expand("012345678901234567890123456789%p", 12, path, sizeof path),
		-ENAMETOOLONG);
}

static void test_living_process(void)
{
	char path[256], wanted[256];
	struct stat status;
	const char *name = own_path("file");
	int first = ckt_trace_file_open(name, 1, path, sizeof path);
	YES(first >= 0);
	TEXT(path, name);
	IS(write(first, "old", 3), 3);
	/* The first one lives: the second takes another name and empties nothing. */
	int second = ckt_trace_file_open(name, 2, path, sizeof path);
	YES(second >= 0);
	snprintf(wanted, sizeof wanted, "%s.2", name);
	TEXT(path, wanted);
	MUST(fstat(first, &status), 0);
	IS(status.st_size, 3);
	/* It is gone: its file is written again, from the start. */
	close(first);
	int third = ckt_trace_file_open(name, 3, path, sizeof path);
	YES(third >= 0);
	TEXT(path, name);
	MUST(fstat(third, &status), 0);
	IS(status.st_size, 0);
	close(second);
	close(third);
}

static void test_errors(void)
{
	char path[256];
	IS(ckt_trace_file_open(own_path("no/where"), 1, path, sizeof path), -ENOENT);
	IS(ckt_trace_file_open("/", 1, path, sizeof path), -EISDIR);
}

UNIT_SUITE(trace_file, {"names", test_expand}, {"a living process", test_living_process},
	{"errors", test_errors})
