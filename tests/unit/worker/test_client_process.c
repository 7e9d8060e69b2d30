/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/client_process.c: who connected a socket, whether that process is the
 * client, and whether it is dead.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/worker/session/client_process.h"
#include "tests/unit/suite.h"

/* A child that connects and lives until it is killed; *ret_fd: the socket's other end. */
static pid_t child_new(int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(sa_family_t);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* An abstract name of the kernel's choice. */
	MUST(bind(listener, (struct sockaddr *)&address, size), 0);
	size = sizeof address;
	MUST(getsockname(listener, (struct sockaddr *)&address, &size) || listen(listener, 1), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&address, size) == 0)
			pause();
		_exit(1);
	}
	*ret_fd = accept(listener, NULL, NULL);
	close(listener);
	return pid;
}

static void test_process(void)
{
	int fd;
	pid_t pid = child_new(&fd);
	int process = ckt_worker_client_process_open(fd, (uint32_t)pid);
	YES(process >= 0);
	NO(ckt_worker_client_process_is_dead(process));
	/* It need not have been waited for. */
	kill(pid, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	YES(ckt_worker_client_process_is_dead(process));
	waitpid(pid, NULL, 0);
	YES(ckt_worker_client_process_is_dead(process));
	close(process);
	/* Too late: it cannot be told from another one that has the number. */
	int late = ckt_worker_client_process_open(fd, (uint32_t)pid);
	YES(late < 0 || ckt_worker_client_process_is_dead(late));
	if (late >= 0)
		close(late);
	close(fd);
}

static void test_unknown(void)
{
	int fds[2], fd;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	/* A forwarder says another number than its own. */
	IS(ckt_worker_client_process_open(fds[0], (uint32_t)getpid() + 1), -1);
	fd = ckt_worker_client_process_open(fds[0], (uint32_t)getpid());
	YES(fd >= 0);
	close(fd);
	fd = ckt_worker_client_process_by_number(fds[0], getpid());
	YES(fd >= 0);
	close(fd);
	/* The other end is closed: whoever has that number now. */
	close(fds[1]);
	IS(ckt_worker_client_process_by_number(fds[0], getpid()), -1);
	close(fds[0]);
	/* A process that began after this one never connected before it did. */
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	usleep(50000); /* more than a clock tick, in which starts are counted */
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(1);
	}
	IS(ckt_worker_client_process_by_number(fds[0], pid), -1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	IS(ckt_worker_client_process_open(tcp, (uint32_t)getpid()), -1);
	close(tcp);
	NO(ckt_worker_client_process_is_dead(-1));
}

UNIT_SUITE(client_process, {"process", test_process}, {"unknown", test_unknown})
