/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/syscall_filter.c: what both profiles refuse, and what still works. */
#include "server/worker/cage/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage_child.h"
#include "tests/unit/suite.h"

static bool soft;
static long number;

/* As root, so that only the filter can refuse. */
static int one_call(void)
{
	if (ckt_syscall_filter_enter(soft))
		return 90;
	return syscall(number, -1, 0, 0, 0, 0, 0) == -1 && errno == EPERM ? 0 : 1;
}

static int clones(void)
{
	if (ckt_syscall_filter_enter(soft))
		return 90;
	/* glibc then uses clone, whose flags a filter can see. */
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 1;
	if (syscall(SYS_clone, (long)(CLONE_NEWUSER | SIGCHLD), 0, 0, 0, 0) != -1 || errno != EPERM)
		return 2;
	return 0;
}

static int forks(void)
{
	if (ckt_syscall_filter_enter(soft))
		return 90;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (soft)
		return pid < 0 && errno == EPERM ? 0 : 1;
	return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : 2;
}

static void *nothing(void *opaque)
{
	return opaque;
}

static int works(void)
{
	char *const arguments[] = {"true", NULL};
	char *const environment[] = {NULL};
	pthread_t thread;
	void *result = NULL;
	int status = -1, pair[2];
	pid_t pid;
	if (ckt_syscall_filter_enter(soft))
		return 90;
	if (pthread_create(&thread, NULL, nothing, pair) || pthread_join(thread, &result) ||
		result != pair)
		return 1;
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) ||
		waitpid(pid, &status, 0) != pid || status)
		return 2;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], "x", 1) != 1)
		return 3;
	char *memory = malloc(64 << 20);
	if (!memory)
		return 4;
	free(memory);
	return open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : 5;
}

static int networks(void)
{
	if (ckt_syscall_filter_enter(soft))
		return 90;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!soft)
		return fd >= 0 ? 0 : 1;
	if (fd >= 0 || errno != EPERM)
		return 2;
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) < 0 && errno == EPERM ? 0 : 3;
}

static int enters(void)
{
	int result = ckt_syscall_filter_enter(true);
	return result == -EOPNOTSUPP ? 77 : result ? 1 : 0;
}

static void test_profiles(void)
{
	static const long denied[] = {SYS_ptrace, SYS_process_vm_readv, SYS_mount, SYS_unshare,
		SYS_setns, SYS_bpf, SYS_setuid, SYS_setresuid, SYS_keyctl, SYS_init_module,
		SYS_kexec_load, SYS_reboot, SYS_io_uring_setup, SYS_userfaultfd,
		SYS_perf_event_open, SYS_pidfd_getfd, SYS_personality};
	int status = cage_child(enters);
	if (status == 77) {
		puts("skipped: the kernel, or this container, has no filters of system calls");
		return;
	}
	IS(status, 0);
	for (int i = 0; i < 2; i++) {
		soft = i;
		for (unsigned k = 0; k < COUNT(denied); k++) {
			number = denied[k];
			IS(cage_child(one_call), 0);
		}
		IS(cage_child(clones), 0);
		IS(cage_child(forks), 0);
		IS(cage_child(works), 0);
		IS(cage_child(networks), 0);
	}
	/* What is in no table: refused with the soft GPU alone. */
	number = SYS_mq_open;
	soft = true;
	IS(cage_child(one_call), 0);
	soft = false;
	IS(cage_child(one_call), 1);
}

UNIT_SUITE(syscall_filter, {"profiles", test_profiles})
