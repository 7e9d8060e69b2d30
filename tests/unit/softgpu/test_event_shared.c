/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/stream/event_shared.h: records counted in a page that another process opens, and what is
 * no handle.
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudacommon/event_handle.h"
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

/* A process that is killed leaves nothing behind, and its event is gone with it. */
static void test_killed(void)
{
	CUipcEventHandle handle;
	int pipe_fds[2], status;
	IS(pipe(pipe_fds), 0);
	pid_t child = fork();
	if (child == 0) {
		struct ckt_soft_shared_event *theirs = ckt_soft_shared_event_new();
		if (theirs && ckt_soft_shared_event_handle(theirs, &handle) &&
			write(pipe_fds[1], &handle, sizeof handle) == sizeof handle)
			pause();
		_exit(1);
	}
	IS(read(pipe_fds[0], &handle, sizeof handle), sizeof handle);
	struct ckt_soft_shared_event *opened = ckt_soft_shared_event_open(&handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(opened);
	kill(child, SIGKILL);
	IS(waitpid(child, &status, 0), child);
	IS(ckt_soft_shared_event_begin(opened), 1);
	ckt_soft_shared_event_put(opened);
	CU_ASSERT_PTR_NULL(ckt_soft_shared_event_open(&handle));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* A handle that names another file of the process: one that could shrink under the mapping. */
static void test_other_file(void)
{
	CUipcEventHandle handle;
	struct ckt_event_handle page;
	struct ckt_soft_shared_event *own = ckt_soft_shared_event_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	YES(ckt_soft_shared_event_handle(own, &handle));
	YES(ckt_event_handle_read(&handle, &page));
	int copy = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char bytes[64];
	struct stat status;
	IS(fstat(page.descriptor, &status), 0);
	MUST(status.st_size <= (off_t)sizeof bytes, true);
	IS(pread(page.descriptor, bytes, (size_t)status.st_size, 0), status.st_size);
	IS(pwrite(copy, bytes, (size_t)status.st_size, 0), status.st_size);
	page.descriptor = copy;
	ckt_event_handle_write(&page, &handle);
	CU_ASSERT_PTR_NULL(ckt_soft_shared_event_open(&handle));
	IS(fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	struct ckt_soft_shared_event *sealed = ckt_soft_shared_event_open(&handle);
	CU_ASSERT_PTR_NOT_NULL(sealed);
	ckt_soft_shared_event_put(sealed);
	ckt_soft_shared_event_put(own);
	close(copy);
}

static void test_wrong(void)
{
	CUipcEventHandle handle, wrong;
	struct ckt_soft_shared_event *own = ckt_soft_shared_event_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	YES(ckt_soft_shared_event_handle(own, &handle));
	/* All but the number of the process. */
	for (size_t i = 0; i < sizeof(struct ckt_event_handle); i++) {
		if (i >= offsetof(struct ckt_event_handle, process) &&
			i < offsetof(struct ckt_event_handle, descriptor))
			continue;
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
	{"killed", test_killed}, {"other_file", test_other_file}, {"wrong", test_wrong})
