/* SPDX-License-Identifier: Apache-2.0 */
/* base/refusal_log.h: which lines of a peer reach the file, in whatever pieces they come. */
#include "base/refusal_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char path[64];

static void begin(void)
{
	snprintf(path, sizeof path, "/tmp/ckt-refusals-XXXXXX");
	close(mkstemp(path));
	setenv("CRICKET_REFUSALS", path, 1);
}

/* What the file holds; it is gone then. */
static const char *end(void)
{
	static char text[8192];
	FILE *file = fopen(path, "r");
	size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;

	text[size] = 0;
	if (file)
		fclose(file);
	unlink(path);
	unsetenv("CRICKET_REFUSALS");
	return text;
}

static const char some[] = "kernel text\n"
			   "cricket soft GPU: kernel k cannot run: ptx:4: 'x' is not supported\n"
			   "cricket soft GPU: kernel fault: at 4\n"
			   "\n\n"
			   "cricket soft GPU: cuThing is not supported\n"
			   "cricket soft GPU: cuThing is fine\n"
			   " cricket soft GPU: kernel k\n"
			   "cricket: soft GPU: cublasThing is not supported\n"
			   "cricket soft GPU: link: no\033[2J\n"
			   "cricket soft GPU: module not loaded: why\n"
			   "cricket soft GPU: kernel without an end";
static const char noted[] = "cricket soft GPU: kernel k cannot run: ptx:4: 'x' is not supported\n"
			    "cricket soft GPU: cuThing is not supported\n"
			    "cricket: soft GPU: cublasThing is not supported\n"
			    "cricket soft GPU: link: no?[2J\n"
			    "cricket soft GPU: module not loaded: why\n";

static void test_lines(void)
{
	for (size_t step = 1; step <= sizeof some; step = step < 8 ? step + 1 : 3 * step) {
		struct ckt_refusal_scan scan = {0};
		begin();
		errno = EXDEV;
		for (size_t i = 0; i < sizeof some - 1; i += step)
			ckt_refusal_scan(&scan, some + i,
				step < sizeof some - 1 - i ? step : sizeof some - 1 - i);
		IS(errno, EXDEV);
		TEXT(end(), noted);
	}
}

static void test_long_line(void)
{
	char text[3000];
	struct ckt_refusal_scan scan = {0};

	memset(text, 'x', sizeof text);
	memcpy(text, "cricket: soft GPU: ", 19);
	begin();
	ckt_refusal_scan(&scan, text, sizeof text);
	ckt_refusal_scan(&scan, text, sizeof text);
	ckt_refusal_scan(&scan, "\ncricket: soft GPU: y\n", 22);
	const char *file = end();
	/* Cut, one line, and the next one is whole. */
	IS(strchr(file, '\n') - file, sizeof scan.line);
	TEXT(strchr(file, '\n') + 1, "cricket: soft GPU: y\n");
}

static void test_say(void)
{
	begin();
	ckt_refusal_say("%s is not supported", "cuA\nB");
	ckt_refusal_say("%s is not supported", "cuC");
	TEXT(end(), "cuA?B is not supported\ncuC is not supported\n");
}

static void test_hostile_file(void)
{
	struct stat status;
	static const char *const files[] = {"/nonexistent/file", "/tmp", "/dev/full", ""};

	/* Nothing is said of them and nothing stops; the line is on stderr already. */
	for (size_t i = 0; i < COUNT(files); i++) {
		setenv("CRICKET_REFUSALS", files[i], 1);
		errno = EXDEV;
		ckt_refusal_say("x is not supported");
		IS(errno, EXDEV);
	}
	/* A FIFO that nobody reads, and one that somebody reads. */
	snprintf(path, sizeof path, "/tmp/ckt-refusals-%d", (int)getpid());
	unlink(path);
	MUST(mkfifo(path, 0600), 0);
	setenv("CRICKET_REFUSALS", path, 1);
	ckt_refusal_say("x is not supported");
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	char byte;
	ckt_refusal_say("x is not supported");
	IS(read(reader, &byte, 1), 0);
	close(reader);
	unlink(path);
	/* A new file is the user's alone. */
	umask(0);
	ckt_refusal_say("x is not supported");
	IS(stat(path, &status), 0);
	IS(status.st_mode & 0777, 0600);
	TEXT(end(), "x is not supported\n");
	umask(022);
}

static void test_off(void)
{
	struct ckt_refusal_scan scan = {0};

	ckt_refusal_scan(&scan, NULL, 0);
	unsetenv("CRICKET_REFUSALS");
	ckt_refusal_scan(&scan, some, sizeof some - 1);
	ckt_refusal_say("x is not supported");
	NO(access(path, F_OK) == 0);
}

UNIT_SUITE(refusal_log, {"lines", test_lines}, {"long line", test_long_line}, {"say", test_say},
	{"hostile file", test_hostile_file}, {"off", test_off})
