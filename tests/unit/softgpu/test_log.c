/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/log.c: whole lines on stderr, errno kept, debug lines only where they are asked
 * for, a refusal once.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "files.h"
#include "softgpu/context/log.h"

static void test_lines(void)
{
	files_catch(2);
	errno = EDOM;
	ckt_soft_say("%s %d", "number", 7);
	IS(errno, EDOM);
	TEXT(files_caught(), "cricket soft GPU: number 7\n");
	/* Too long: cut, and still a line. */
	static char text[5000];
	memset(text, 'x', sizeof(text) - 1);
	files_catch(2);
	ckt_soft_say("%s", text);
	ckt_soft_say("next");
	const char *said = files_caught();
	IS(strlen(said), 2048 + strlen("cricket soft GPU: next\n") - 1);
	IS(strcspn(said, "\n"), 2046);
	HAS(said, "x\ncricket soft GPU: next\n");
}

static void test_debug(void)
{
	char program[256], command[512], line[128] = "";
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	static const struct {
		const char *level, *want;
	} table[] = {{"debug", "cricket soft GPU: told 5\n"},
		{"debug:file", "cricket soft GPU: told 5\n"}, {"info", ""}, {"", ""}, {"deb", ""}};
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(command, sizeof(command), "CRICKET_LOG=%s '%s' debug 2>&1", table[i].level,
			program);
		FILE *pipe = popen(command, "r");
		line[fread(line, 1, sizeof(line) - 1, pipe)] = '\0';
		IS(pclose(pipe), 0);
		TEXT(line, table[i].want);
	}
}

static void test_unsupported(void)
{
	atomic_bool said = false;
	files_catch(2);
	IS(ckt_soft_unsupported(&said, "flying"), CUDA_ERROR_NOT_SUPPORTED);
	IS(ckt_soft_unsupported(&said, "flying"), CUDA_ERROR_NOT_SUPPORTED);
	TEXT(files_caught(), "cricket soft GPU: flying is not supported\n");
	/* Once a process, whichever call of it says so. */
	atomic_bool elsewhere = false;
	files_catch(2);
	IS(ckt_soft_unsupported(&elsewhere, "flying"), CUDA_ERROR_NOT_SUPPORTED);
	TEXT(files_caught(), "");
	/* As a function that nothing implements does. */
	CUgreenCtx green;
	OK(cuInit(0));
	CHECK_RESULT(cuGreenCtxCreate(&green, NULL, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

static void *say_many(void *unused)
{
	for (int i = 0; i < 1000; i++)
		ckt_soft_say_once("thing %d is refused", i % 10);
	return unused;
}

static void test_once(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	files_catch(2);
	for (int i = 0; i < THREADS; i++)
		IS(pthread_create(&threads[i], NULL, say_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		IS(pthread_join(threads[i], NULL), 0);
	const char *said = files_caught();
	IS(strlen(said), 10 * strlen("cricket soft GPU: thing 0 is refused\n"));
	for (int i = 0; i < 10; i++) {
		char line[64];
		snprintf(line, sizeof(line), "cricket soft GPU: thing %d is refused\n", i);
		HAS(said, line);
	}
}

UNIT_SUITE(softgpu / context / log, {"lines", test_lines}, {"debug", test_debug},
	{"unsupported", test_unsupported}, {"once", test_once})
