/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/stream/event_shared.h: records counted in a page that another process opens, and what is
 * no handle.
 */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "softgpu/stream/event_shared.h"

static void test_counts(void)
{
	struct ckt_soft_shared_event *own = ckt_soft_shared_event_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	IS(ckt_soft_shared_event_latest(own), 0);
	YES(ckt_soft_shared_event_reached(own, 0));
	IS(ckt_soft_shared_event_begin(own), 1);
	IS(ckt_soft_shared_event_begin(own), 2);
	NO(ckt_soft_shared_event_reached(own, 1));
	ckt_soft_shared_event_finish(own, 2);
	/* An earlier one that comes late takes nothing back. */
	ckt_soft_shared_event_finish(own, 1);
	YES(ckt_soft_shared_event_reached(own, 2));
	ckt_soft_shared_event_wait(own, 2);
	ckt_soft_shared_event_ref(own);
	ckt_soft_shared_event_put(own);
	IS(ckt_soft_shared_event_latest(own), 2);
	ckt_soft_shared_event_put(own);
	ckt_soft_shared_event_put(NULL);
}

/*
 * In another process: what it records is seen here, and where it ends in the middle nobody waits
 * for ever.
 */
static void test_processes(void)
{
	CUipcEventHandle handle;
	int status = -1;
	struct ckt_soft_shared_event *own = ckt_soft_shared_event_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	YES(ckt_soft_shared_event_handle(own, &handle));
	pid_t child = fork();
	if (child == 0) {
		struct ckt_soft_shared_event *theirs = ckt_soft_shared_event_open(&handle);
		CUipcEventHandle none;
		if (!theirs || ckt_soft_shared_event_handle(theirs, &none))
			_exit(1);
		ckt_soft_shared_event_finish(theirs, ckt_soft_shared_event_begin(theirs));
		ckt_soft_shared_event_begin(theirs);
		_exit(0);
	}
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	YES(ckt_soft_shared_event_reached(own, 1));
	IS(ckt_soft_shared_event_latest(own), 2);
	NO(ckt_soft_shared_event_reached(own, 2));
	ckt_soft_shared_event_wait(own, 2);
	ckt_soft_shared_event_put(own);
}

static unsigned pages(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/dev/shm");
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		n += strncmp(entry->d_name, "cricket-shared-event-", 21) == 0;
	if (dir)
		closedir(dir);
	return n;
}

/*
 * A process that is killed leaves its page; it goes with the next process that makes one, and what
 * is alive stays.
 */
static void test_killed(void)
{
	CUipcEventHandle handle;
	int pipe_fds[2], status;
	char byte;
	struct ckt_soft_shared_event *own = ckt_soft_shared_event_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	YES(ckt_soft_shared_event_handle(own, &handle));
	unsigned before = pages();
	IS(pipe(pipe_fds), 0);
	pid_t child = fork();
	if (child == 0) {
		if (ckt_soft_shared_event_new() && write(pipe_fds[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	IS(read(pipe_fds[0], &byte, 1), 1);
	IS(pages(), before + 1);
	kill(child, SIGKILL);
	IS(waitpid(child, &status, 0), child);
	IS(pages(), before + 1);
	/* Once in a process: this one has looked already. */
	child = fork();
	if (child == 0) {
		ckt_soft_shared_event_sweep();
		_exit(0);
	}
	IS(waitpid(child, &status, 0), child);
	IS(pages(), before);
	struct ckt_soft_shared_event *again = ckt_soft_shared_event_open(&handle);
	CU_ASSERT_PTR_NOT_NULL(again);
	ckt_soft_shared_event_put(again);
	ckt_soft_shared_event_put(own);
	IS(pages(), before - 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void test_wrong(void)
{
	CUipcEventHandle handle, wrong;
	struct ckt_soft_shared_event *own = ckt_soft_shared_event_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	YES(ckt_soft_shared_event_handle(own, &handle));
	for (size_t i = 0; i < 24; i++) {
		wrong = handle;
		wrong.reserved[i] = (char)(wrong.reserved[i] ^ 0x55);
		CU_ASSERT_PTR_NULL(ckt_soft_shared_event_open(&wrong));
	}
	struct ckt_soft_shared_event *again = ckt_soft_shared_event_open(&handle);
	CU_ASSERT_PTR_NOT_NULL(again);
	ckt_soft_shared_event_put(again);
	ckt_soft_shared_event_withdraw(own);
	CU_ASSERT_PTR_NULL(ckt_soft_shared_event_open(&handle));
	ckt_soft_shared_event_put(own);
	CU_ASSERT_PTR_NULL(ckt_soft_shared_event_open(&handle));
}

UNIT_SUITE(softgpu / stream / event_shared, {"counts", test_counts}, {"processes", test_processes},
	{"killed", test_killed}, {"wrong", test_wrong})
