/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/compiler/compile_job.c: one compilation, and one that is ended. */
#include "server/worker/compiler/compile_job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cage_child.h"
#include "cudacommon/kernel_compiler.h"
#include "server/worker/cage/landlock.h"
#include "tests/unit/suite.h"

static char scratch[64];
static pid_t latest;

static int text_new(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? fd : -1;
}

/* In a child: cages are for good.  The object's descriptor, or the error. */
static int run(const char *text, int wait_ms)
{
	struct ckt_compile_job job;
	char directory[96];
	int fd = text_new(text), object = -1;
	ckt_compile_job_init(&job);
	snprintf(directory, sizeof directory, "%s/one", scratch);
	int result = ckt_compile_job_start(&job, fd, directory);
	if (result)
		return result;
	latest = job.pid;
	struct pollfd ended = {.fd = job.pidfd, .events = POLLIN};
	poll(&ended, 1, wait_ms);
	result = ckt_compile_job_finish(&job, &object);
	/* Nothing is left of it. */
	if (job.pidfd != -1 || access(directory, F_OK) == 0)
		return -EEXIST;
	return result ? result : object;
}

static int good(void)
{
	int object = run("int x;\n", -1);
	return object >= 0 && ckt_kernel_file_is_sealed(object) ? 0 : 1;
}

static int bad(void)
{
	return run("int\n", -1) == -EIO ? 0 : 1;
}

/* Another compilation's directory lies beside its own. */
static int neighbour(void)
{
	char path[96];
	snprintf(path, sizeof path, "%s/text", scratch);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	close(fd);
	int own = run("__asm__(\".incbin \\\"../text\\\"\");\n", -1);
	unlink(path);
	return own == -EIO ? 0 : 1;
}

/* 2 to the 60th calls of a macro: its assembler is ended, too, and not only the compiler. */
static int endless(void)
{
	int result = run("__asm__(\".macro f n\\n.if \\\\n\\nf (\\\\n-1)\\nf (\\\\n-1)\\n"
			 ".endif\\n.endm\\nf 60\\n\");\n",
		300);
	/* Who inherits the killed processes waits for them in its own time. */
	for (int i = 0; i < 6000 && kill(-latest, 0) == 0; i++)
		usleep(10000);
	return result == -EIO && kill(-latest, 0) == -1 && errno == ESRCH ? 0 : 1;
}

static int taken_name(void)
{
	char path[96];
	snprintf(path, sizeof path, "%s/..", scratch);
	struct ckt_compile_job job;
	ckt_compile_job_init(&job);
	int fd = text_new("int x;\n");
	if (ckt_compile_job_start(&job, fd, path) != -EEXIST || job.pidfd != -1)
		return 1;
	char longer[CKT_COMPILE_DIRECTORY_MAX + 2];
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	return ckt_compile_job_start(&job, fd, longer) == -ENAMETOOLONG ? 0 : 2;
}

static bool has_landlock(void)
{
	struct ckt_landlock landlock;
	MUST(ckt_landlock_begin(&landlock, true), 0);
	ckt_landlock_drop(&landlock);
	return landlock.abi > 0;
}

static void test_job(void)
{
	char path[4096];
	if (!ckt_kernel_compiler_find(path, sizeof path)) {
		puts("skipped: no C compiler");
		return;
	}
	strcpy(scratch, "/tmp/ckt-job-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(scratch));
	IS(cage_child(good), 0);
	IS(cage_child(bad), 0);
	IS(cage_child(endless), 0);
	if (has_landlock())
		IS(cage_child(neighbour), 0);
	IS(cage_child(taken_name), 0);
	IS(rmdir(scratch), 0);
}

UNIT_SUITE(compile_job, {"job", test_job})
