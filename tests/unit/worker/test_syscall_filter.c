/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/syscall_filter.c: what both profiles refuse, and what still works. */
#include "server/worker/cage/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage_child.h"
#include "rpc/net.h"
#include "tests/unit/suite.h"

static bool network;
static long number;

/* As root, so that only the filter can refuse. */
static int one_call(void)
{
	if (ckt_syscall_filter_enter(network, NULL))
		return 90;
	return syscall(number, -1, 0, 0, 0, 0, 0) == -1 && errno == EPERM ? 0 : 1;
}

static int clones(void)
{
	if (ckt_syscall_filter_enter(network, NULL))
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
	if (ckt_syscall_filter_enter(network, NULL))
		return 90;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid < 0 && errno == EPERM ? 0 : 1;
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
	int pair[2];
	pid_t pid;
	if (ckt_syscall_filter_enter(network, NULL))
		return 90;
	if (pthread_create(&thread, NULL, nothing, pair) || pthread_join(thread, &result) ||
		result != pair)
		return 1;
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) != EPERM ||
		execve("/bin/true", arguments, environment) != -1 || errno != EPERM)
		return 2;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], "x", 1) != 1)
		return 3;
	char *memory = malloc(64 << 20);
	if (!memory)
		return 4;
	free(memory);
	return open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : 5;
}

/* Its own, and those of another process of its user. */
static int limits(void)
{
	struct rlimit limit;
	cpu_set_t set;
	pid_t other = getppid();
	if (ckt_syscall_filter_enter(network, NULL))
		return 90;
	if (getrlimit(RLIMIT_NOFILE, &limit) || setrlimit(RLIMIT_NOFILE, &limit) ||
		sched_getaffinity(0, sizeof set, &set) || sched_setaffinity(0, sizeof set, &set))
		return 1;
	if (prlimit(other, RLIMIT_NOFILE, NULL, &limit) == 0 || errno != EPERM)
		return 2;
	return sched_setaffinity(other, sizeof set, &set) == 0 ? 3 : 0;
}

static int networks(void)
{
	if (ckt_syscall_filter_enter(network, NULL))
		return 90;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!network ? fd >= 0 || errno != EPERM : fd < 0)
		return 1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (!network ? fd >= 0 || errno != EPERM : fd < 0)
		return 2;
	/* Those that nobody needs, with either driver. */
	return socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) < 0 && errno == EPERM ? 0 : 3;
}

static int enters(void)
{
	int result = ckt_syscall_filter_enter(true, NULL);
	return result == -EOPNOTSUPP ? 77 : result ? 1 : 0;
}

/* Answers what comes from the filter, in the place of the server: 0 once both calls have come. */
static int answer(int socket)
{
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_expect(&message, &room);
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return 1;
	int fd = ckt_net_fd_take(&message);
	for (int i = 0; i < 2; i++) {
		struct seccomp_notif *call = NULL;
		struct seccomp_notif_resp *reply = NULL;
		if (fd < 0 || seccomp_notify_alloc(&call, &reply))
			return 2;
		if (seccomp_notify_receive(fd, call) || call->data.nr != number)
			return 3;
		*reply = (struct seccomp_notif_resp){.id = call->id, .error = -ENOTNAM};
		seccomp_notify_respond(fd, reply);
		seccomp_notify_free(call, reply);
	}
	close(fd);
	return send(socket, &byte, sizeof byte, 0) == sizeof byte ? 0 : 4;
}

/* Who has the descriptor hears of refused calls and says what they return; nobody: ENOSYS. */
static int listened(void)
{
	int pair[2], listener = -1;
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return 91;
	pid_t pid = fork();
	if (pid == 0)
		_exit(answer(pair[0]));
	close(pair[0]);
	if (ckt_syscall_filter_enter(network, &listener) || listener < 0)
		return 90;
	ckt_net_fd_put(&message, &room, listener);
	if (sendmsg(pair[1], &message, 0) != 1 || close(listener))
		return 1;
	for (int i = 0; i < 2; i++)
		if (syscall(number, -1, 0, 0, 0, 0, 0) != -1 || errno != ENOTNAM)
			return 2;
	/* An allowed call needs nobody. */
	if (recv(pair[1], &byte, sizeof byte, 0) != sizeof byte)
		return 3;
	return syscall(number, -1, 0, 0, 0, 0, 0) == -1 && errno == ENOSYS ? 0 : 4;
}

/* Only one filter of a process may have a listener, and a container's may be that. */
static int listened_twice(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = {.len = 1, .filter = &allow};
	int listener = 5;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		    &program) < 0)
		return 90;
	if (ckt_syscall_filter_enter(true, &listener) || listener != -1)
		return 1;
	return syscall(SYS_ptrace, -1, 0, 0, 0) == -1 && errno == EPERM ? 0 : 2;
}

static void test_listener(void)
{
	if (cage_child(enters) == 77) {
		puts("skipped: the kernel, or this container, has no filters of system calls");
		return;
	}
	number = SYS_ptrace;
	for (int i = 0; i < 2; i++) {
		network = i;
		IS(cage_child(listened), 0);
	}
	IS(cage_child(listened_twice), 0);
}

static void test_profiles(void)
{
	static const long denied[] = {SYS_ptrace, SYS_process_vm_readv, SYS_mount, SYS_unshare,
		SYS_setns, SYS_bpf, SYS_setuid, SYS_setresuid, SYS_keyctl, SYS_init_module,
		SYS_kexec_load, SYS_reboot, SYS_io_uring_setup, SYS_userfaultfd,
		SYS_perf_event_open, SYS_pidfd_getfd, SYS_personality, SYS_mq_open};
	int status = cage_child(enters);
	if (status == 77) {
		puts("skipped: the kernel, or this container, has no filters of system calls");
		return;
	}
	IS(status, 0);
	for (int i = 0; i < 2; i++) {
		network = i;
		for (unsigned k = 0; k < COUNT(denied); k++) {
			number = denied[k];
			IS(cage_child(one_call), 0);
		}
		IS(cage_child(clones), 0);
		IS(cage_child(forks), 0);
		IS(cage_child(works), 0);
		IS(cage_child(networks), 0);
		IS(cage_child(limits), 0);
	}
}

UNIT_SUITE(syscall_filter, {"profiles", test_profiles}, {"listener", test_listener})
