/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records which system calls a worker makes.  It stands in the place of cricket-worker, with the
 * worker beside it as cricket-worker.real, and becomes that worker with a filter that asks about
 * each call.  A child says yes to all, counts them, and writes the counts to calls/PID beside the
 * program when the worker and its children are gone: NAME COUNT a line.
 *
 * tests/gpu/syscalls sets this up.  The worker runs without its cage, which would refuse calls
 * before they are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALLS = 1024 };

static uint64_t counts[CALLS];

static int send_fd(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} room = {0};
	struct iovec part = {.iov_base = "x", .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof room.bytes};
	room.head = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&room.head), &fd, sizeof fd);
	return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_fd(int socket)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} room;
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof room.bytes};
	int fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 &&
		message.msg_controllen >= sizeof room.head)
		memcpy(&fd, CMSG_DATA(&room.head), sizeof fd);
	return fd;
}

static void write_counts(const char *directory)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/calls/%d", directory, (int)getpid());
	FILE *file = fopen(path, "we");
	for (int i = 0; file && i < CALLS; i++) {
		char *name =
			counts[i] ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i) : NULL;
		if (counts[i])
			fprintf(file, "%s %llu\n", name ? name : "unknown",
				(unsigned long long)counts[i]);
		free(name);
	}
	if (file)
		fclose(file);
}

static void supervise(int socket, const char *directory)
{
	int fd = receive_fd(socket);
	close(socket);
	while (fd >= 0) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		struct seccomp_notif question = {0};
		if ((poll(&wait, 1, -1) < 0 && errno != EINTR) || wait.revents & POLLHUP)
			break;
		/* Its thread may have been killed meanwhile. */
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &question))
			continue;
		if (question.data.nr >= 0 && question.data.nr < CALLS)
			counts[question.data.nr]++;
		struct seccomp_notif_resp answer = {
			.id = question.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	write_counts(directory);
	_exit(0);
}

/* Nobody answers before the descriptor has been sent. */
static int enter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
}

int main(int argc, char **argv)
{
	char directory[4096], real[4200];
	int pair[2];
	ssize_t n = readlink("/proc/self/exe", directory, sizeof directory - 1);
	char *slash = n > 0 ? memrchr(directory, '/', (size_t)n) : NULL;
	if (!slash || argc < 1)
		return 1;
	*slash = 0;
	snprintf(real, sizeof real, "%s/cricket-worker.real", directory);
	setenv("CRICKET_CAGE", "off", 1);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		/* The worker's control socket must not outlive it. */
		close(3);
		close(pair[1]);
		supervise(pair[0], directory);
	}
	close(pair[0]);
	int fd = enter();
	if (pid < 0 || fd < 0 || send_fd(pair[1], fd)) {
		perror("record_syscalls");
		return 1;
	}
	close(fd);
	close(pair[1]);
	execv(real, argv);
	perror(real);
	return 127;
}
