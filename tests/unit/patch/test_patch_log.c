/* SPDX-License-Identifier: Apache-2.0 */
/* client/patch/patch_log.h: the patcher's lines. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/patch/patch_log.h"
#include "image.h"
#include "tests/unit/suite.h"

static void test_line(void)
{
	image_stderr_begin();
	errno = 5;
	ckt_patch_log("%s and %d", "one", 2);
	IS(errno, 5);
	TEXT(image_stderr_end(), "cricket: one and 2\n");
}

/* A line is one line, however long its text. */
static void test_long_line(void)
{
	static const int lengths[] = {1012, 1013, 1014, 1015, 5000};
	for (size_t i = 0; i < COUNT(lengths); i++) {
		image_stderr_begin();
		ckt_patch_log("%*s", lengths[i], "end");
		const char *line = image_stderr_end();
		size_t size = strlen(line), whole = 9 + (size_t)lengths[i] + 1;
		IS(size, whole < 1023 ? whole : 1023);
		IS(line[size - 1], '\n');
		IS(strcspn(line, "\n"), size - 1);
	}
}

static void test_debug(void)
{
	char path[64], file_setting[96], text[64] = "";
	snprintf(path, sizeof path, "/tmp/ckt-say-%d", (int)getpid());
	snprintf(file_setting, sizeof file_setting, "CRICKET_LOG=debug:%s", path);
	const struct {
		const char *setting, *said;
	} rows[] = {
		{"CRICKET_LOG=debugging", ""},
		{"CRICKET_LOG=debug", "cricket: word\n"},
		{file_setting, ""},
		{"CRICKET_LOG=debug:", "cricket: word\n"},
		{"CRICKET_LOG=debugging", ""},
		{"XCRICKET_LOG=debug", ""},
		{"CRICKET_LOG=info", ""},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *environment[] = {(char *)"A=1", (char *)rows[i].setting, NULL};
		ckt_patch_log_init(environment);
		image_stderr_begin();
		ckt_patch_log_debug("%s", "word");
		TEXT(image_stderr_end(), rows[i].said);
	}
	ckt_patch_log_init(NULL);
	int fd = open(path, O_RDONLY);
	MUST(fd >= 0, 1);
	IS(read(fd, text, sizeof text - 1), 14);
	TEXT(text, "cricket: word\n");
	close(fd);
	unlink(path);
	/* Where it cannot be written nothing is said, least of all into a file of the program's. */
	char *environment[] = {(char *)"CRICKET_LOG=debug:/nonexistent/file", NULL},
	     *off[] = {(char *)"CRICKET_LOG=debugging", NULL};
	ckt_patch_log_init(environment);
	image_stderr_begin();
	ckt_patch_log_debug("word");
	TEXT(image_stderr_end(), "");
	ckt_patch_log_init(off);
}

static void test_refusal(void)
{
	char path[] = "/tmp/ckt-refusal-XXXXXX", setting[96], text[64] = "";
	int fd = mkstemp(path);
	snprintf(setting, sizeof setting, "CRICKET_REFUSALS=%s", path);
	char *rows[] = {
		setting, (char *)"CRICKET_REFUSALS=", (char *)"CRICKET_REFUSALS=/nowhere/x"};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *environment[] = {rows[i], NULL};
		ckt_patch_log_init(environment);
		image_stderr_begin();
		errno = 5;
		ckt_patch_log_refusal("cudaThing", " is not");
		IS(errno, 5);
		TEXT(image_stderr_end(), "cricket: cudaThing is not\n");
	}
	ckt_patch_log_init(NULL);
	IS(read(fd, text, sizeof text - 1), 17);
	TEXT(text, "cudaThing is not\n");
	close(fd);
	unlink(path);
}

UNIT_SUITE(say, {"line", test_line}, {"long line", test_long_line}, {"debug", test_debug},
	{"refusal", test_refusal})
