/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/compiler_cage.c: what neither a compiler nor who starts it may do. */
#include "server/worker/cage/compiler_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage_child.h"
#include "server/worker/cage/landlock.h"
#include "tests/unit/suite.h"

static char place[64];

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int enter_both(void)
{
	return ckt_compiler_cage_enter(place, CKT_COMPILER_CAGE_OUTER) ||
			ckt_compiler_cage_enter(place, CKT_COMPILER_CAGE_INNER)
		? 90
		: 0;
}

static int files(void)
{
	static const char *const closed[] = {"/etc/shadow", "/etc/passwd", "/etc/hostname", "/root",
		"/home", "/run", "/tmp", "/dev/shm", "/proc/self/status", "/proc/1/cmdline",
		"/usr/share", "/var"};
	char path[96];
	if (enter_both())
		return 90;
	for (unsigned i = 0; i < COUNT(closed); i++)
		if (opens(closed[i], O_RDONLY))
			return (int)i + 1;
	snprintf(path, sizeof path, "%s/new", place);
	if (!opens(path, O_RDWR | O_CREAT) || unlink(path))
		return 50;
	if (opens("/usr/lib/ckt-cage", O_RDWR | O_CREAT) || opens("/tmp/ckt-x", O_RDWR | O_CREAT))
		return 51;
	execl("/bin/sh", "sh", "-c", "true", (char *)NULL);
	return errno == EACCES ? 0 : 52;
}

static int calls(void)
{
	if (enter_both())
		return 90;
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return 1;
	if (kill(getppid(), 0) == 0 || setsid() >= 0 || setpgid(0, 0) == 0)
		return 2;
	if (ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0)
		return 3;
	if (fork() >= 0)
		return 4;
	return 0;
}

/* The outer cage starts and ends compilations, and has no sockets of its own to open either. */
static int outer(void)
{
	if (ckt_compiler_cage_enter(place, CKT_COMPILER_CAGE_OUTER))
		return 90;
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (pid < 0 || setpgid(pid, pid) || kill(-pid, SIGKILL) || waitpid(pid, NULL, 0) != pid)
		return 1;
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : 2;
}

static void test_cages(void)
{
	struct ckt_landlock landlock;
	MUST(ckt_landlock_begin(&landlock, true), 0);
	ckt_landlock_drop(&landlock);
	strcpy(place, "/var/tmp/ckt-compiler-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(place));
	if (landlock.abi)
		IS(cage_child(files), 0);
	else
		puts("skipped: the kernel has no Landlock");
	IS(cage_child(calls), 0);
	IS(cage_child(outer), 0);
	IS(rmdir(place), 0);
}

UNIT_SUITE(compiler_cage, {"cages", test_cages})
