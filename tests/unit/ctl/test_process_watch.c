/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/client/process_watch.c: that work is seen, that none is seen, and that nothing is left of
 * those that are killed.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/client/process_watch.h"

enum { MIB = 1 << 20 };

static void test_idle(void)
{
	struct ckt_watch watch;
	pid_t child = fork();
	if (child == 0)
		for (;;)
			pause();
	ckt_ctl_watch_begin(&watch);
	ckt_ctl_watch_look(&watch);
	uint64_t work = watch.work;
	int64_t since_ms = watch.changed_ms;
	usleep(20000);
	CU_ASSERT_TRUE(ckt_ctl_watch_look(&watch) >= 20);
	CU_ASSERT_EQUAL(watch.work, work);
	CU_ASSERT_EQUAL(watch.changed_ms, since_ms);
	/* One more is a change. */
	pid_t second = fork();
	if (second == 0)
		for (;;)
			pause();
	ckt_ctl_watch_look(&watch);
	CU_ASSERT_NOT_EQUAL(watch.work, work);
	CU_ASSERT_TRUE(watch.changed_ms > since_ms);
	ckt_ctl_watch_kill();
	CU_ASSERT_EQUAL(waitpid(-1, NULL, 0), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
}

static void test_moved(void)
{
	struct ckt_watch watch;
	int done[2];
	char byte;
	CU_ASSERT_EQUAL_FATAL(pipe(done), 0);
	pid_t child = fork();
	if (child == 0) {
		char *buffer = calloc(1, MIB);
		int null = open("/dev/null", O_WRONLY), zero = open("/dev/zero", O_RDONLY);
		for (int i = 0; i < 4; i++)
			if (read(zero, buffer, MIB) != MIB || write(null, buffer, MIB) != MIB)
				_exit(1);
		if (write(done[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CU_ASSERT_EQUAL(read(done[0], &byte, 1), 1);
	ckt_ctl_watch_begin(&watch);
	ckt_ctl_watch_look(&watch);
	CU_ASSERT_TRUE(watch.read_bytes >= 4 * MIB && watch.read_bytes < 5 * MIB);
	CU_ASSERT_TRUE(watch.written_bytes >= 4 * MIB && watch.written_bytes < 5 * MIB);
	ckt_ctl_watch_kill();
	close(done[0]);
	close(done[1]);
}

/* Generations: none of them is left, and none has got away to another parent. */
static void test_kill(void)
{
	int alive[2];
	char byte;
	CU_ASSERT_EQUAL_FATAL(pipe(alive), 0);
	pid_t child = fork();
	if (child == 0) {
		for (int depth = 0; depth < 3 && fork() == 0;)
			depth++;
		signal(SIGTERM, SIG_IGN);
		if (write(alive[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(alive[1]);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(read(alive[0], &byte, 1), 1);
	ckt_ctl_watch_kill();
	/* All writing ends are closed. */
	CU_ASSERT_EQUAL(read(alive[0], &byte, 1), 0);
	close(alive[0]);
	ckt_ctl_watch_kill();
}

static void test_resident(void)
{
	int ready[2];
	char byte;
	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	uint64_t before = ckt_ctl_watch_resident(getpid());
	pid_t child = fork();
	if (child == 0) {
		char *memory = mmap(
			NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(1);
		memset(memory, 1, 64 * MIB);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
	CU_ASSERT_TRUE(ckt_ctl_watch_resident(getpid()) >= before + 64 * MIB);
	CU_ASSERT_TRUE(ckt_ctl_watch_resident(child) >= 64 * MIB);
	CU_ASSERT_EQUAL(ckt_ctl_watch_resident(1 << 22), 0);
	ckt_ctl_watch_kill();
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("watch", NULL, NULL);
	CU_add_test(suite, "idle", test_idle);
	CU_add_test(suite, "moved", test_moved);
	CU_add_test(suite, "kill", test_kill);
	CU_add_test(suite, "resident", test_resident);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
