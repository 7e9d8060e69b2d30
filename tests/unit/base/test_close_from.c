/* SPDX-License-Identifier: Apache-2.0 */
/* base/close_from.h: nothing of the parent's stays open, with and without the kernel's call. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/close_from.h"
#include "tests/unit/suite.h"

enum { HIGH = 700, NO_FILTER = 3 };

/* As on a kernel before 5.9. */
static bool take_call_away(void)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = COUNT(instructions), .filter = instructions};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
		syscall(SYS_close_range, ~0u, ~0u, 0) == -1 && errno == ENOSYS;
}

/* What the child found wrong, as bits. */
static int child(const int fds[3], bool without)
{
	if (without && !take_call_away())
		return 1 << NO_FILTER;
	ckt_close_from((unsigned)fds[1]);
	return (fcntl(fds[0], F_GETFD) < 0) | (fcntl(fds[1], F_GETFD) >= 0) << 1 |
		(fcntl(fds[2], F_GETFD) >= 0) << 2;
}

static void test_closes(void)
{
	for (int without = 0; without < 2; without++) {
		int fds[3], ends[2], status = -1;
		char byte;
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		fds[0] = fcntl(ends[1], F_DUPFD_CLOEXEC, 200);
		fds[1] = fcntl(ends[0], F_DUPFD_CLOEXEC, 300);
		fds[2] = fcntl(ends[0], F_DUPFD_CLOEXEC, HIGH);
		YES(fds[0] >= 200 && fds[1] > fds[0] && fds[2] > fds[1]);
		pid_t pid = fork();
		if (pid == 0)
			_exit(child(fds, without));
		MUST(waitpid(pid, &status, 0), pid);
		IS(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
		/* The parent keeps its own. */
		IS(recv(ends[1], &byte, 1, MSG_DONTWAIT), -1);
		IS(errno, EAGAIN);
		for (unsigned i = 0; i < COUNT(fds); i++)
			close(fds[i]);
		close(ends[0]);
		close(ends[1]);
	}
}

UNIT_SUITE(close_from, {"closes", test_closes})
