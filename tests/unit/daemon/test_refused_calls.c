/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/refused_calls.c: a child's refused calls are answered and named once, and
 * what a worker may send in the place of its descriptor leads to nothing.
 */
#include "server/daemon/session/refused_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "inside.h"
#include "rpc/worker_descriptors.h"

static struct ckt_refused_calls calls;
static char *log_path;

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

static void begin(int *ret_fd)
{
	log_path = path_in("refused.log");
	int fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ckt_log_init_fd("test", CKT_LOG_INFO, fd);
	server.options.log_burst = 100;
	memset(server.log_buckets, 0, sizeof server.log_buckets);
	ckt_refused_calls_init(&calls, &server, "0123abcd");
	MUST(ckt_refused_calls_open(&calls, ret_fd), 0);
}

static void end(void)
{
	ckt_refused_calls_close(&calls);
	IS(calls.source.fd, -1);
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	server.options.log_burst = 10;
	memset(server.log_buckets, 0, sizeof server.log_buckets);
}

static void pass(int socket, const void *bytes, size_t size, int fd)
{
	struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, fd);
	if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		_exit(80);
}

/* Asks about everything from `from` to `to`; what else is allowed. */
static int filter(int from, int to)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	for (int number = from; number <= to; number++)
		seccomp_rule_add(filter, SCMP_ACT_NOTIFY, number, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || seccomp_load(filter))
		_exit(77);
	return seccomp_notify_fd(filter);
}

static bool is_gone(void *data)
{
	int status = -1;
	pid_t *pid = data;
	if (waitpid(*pid, &status, WNOHANG) != *pid)
		return false;
	*pid = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return true;
}

static bool is_closed(void *data)
{
	(void)data;
	return calls.source.fd < 0;
}

/* The child's exit status. */
static int run_worker(int (*work)(void), int from, int to)
{
	int socket;
	begin(&socket);
	pid_t pid = fork();
	if (pid == 0) {
		char byte = CKT_WORKER_REFUSED_BYTE;
		int listener = filter(from, to);
		pass(socket, &byte, 1, listener);
		close(listener);
		_exit(work());
	}
	close(socket);
	YES(run_until(is_gone, &pid));
	return pid;
}

static int same_call_twice(void)
{
	for (int i = 0; i < 2; i++)
		if (syscall(SYS_mq_open, NULL, 0, 0, NULL) != -1 || errno != EPERM)
			return 1 + i;
	return syscall(SYS_mq_unlink, NULL) == -1 && errno == EPERM ? 0 : 3;
}

static void test_names(void)
{
	int status = run_worker(same_call_twice, SYS_mq_open, SYS_mq_unlink);
	if (status == 77) {
		puts("skipped: the kernel has no user notification of system calls");
		end();
		return;
	}
	IS(status, 0);
	const char *text = read_file(log_path);
	IS(count(text, "refused"), 2);
	HAS(text, "session 0123abcd: the cage refused its worker's system call mq_open (");
	HAS(text, "system call mq_unlink (");
	HAS(text, "report it, and start the server with --cage off");
	/* With the last process of the filter goes the descriptor. */
	YES(run_until(is_closed, NULL));
	end();
}

/* No kernel has them, and the last one has no bit of its own. */
enum { FIRST = 900, LAST = 939, HUGE_NUMBER = 5000 };

static int many_calls(void)
{
	for (int turn = 0; turn < 50; turn++)
		for (int number = FIRST; number <= LAST; number++)
			if (syscall(number, -1) != -1 || errno != EPERM)
				return 1;
	return 0;
}

/* As often as it likes: it gets its answers, and the log some lines. */
static void test_flood(void)
{
	int status = run_worker(many_calls, FIRST, LAST);
	if (status != 77) {
		IS(status, 0);
		const char *text = read_file(log_path);
		IS(count(text, "\n"), CKT_REFUSED_CALLS_NAMED);
		IS(count(text, "; not naming further ones\n"), 1);
		HAS(text, "system call without a known name (900) with EPERM");
	}
	end();
}

static int huge_number(void)
{
	for (int turn = 0; turn < 2; turn++)
		if (syscall(HUGE_NUMBER, -1) != -1 || errno != EPERM)
			return 1;
	return 0;
}

static void test_huge_number(void)
{
	int status = run_worker(huge_number, HUGE_NUMBER, HUGE_NUMBER);
	if (status != 77) {
		IS(status, 0);
		IS(count(read_file(log_path), "(5000)"), 1);
	}
	end();
}

static int kinds_of_descriptors(unsigned kind)
{
	int pair[2];
	switch (kind) {
	case 0:
		return -1;
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ? -1 : pair[0];
	case 3:
		return pipe2(pair, O_CLOEXEC) ? -1 : pair[0];
	default:
		return memfd_create("anon_inode:seccomp notify", MFD_CLOEXEC);
	}
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each is closed at once, and so is the socket: a second message finds nobody. */
static void test_lies(void)
{
	static const char *const bytes[] = {"", "x", "r", "rr", "session 9: forged\n"};
	for (unsigned kind = 0; kind < 5; kind++)
		for (unsigned i = 0; i < COUNT(bytes); i++) {
			int socket, fd = kinds_of_descriptors(kind);
			begin(&socket);
			unsigned before = open_descriptors();
			pass(socket, bytes[i], strlen(bytes[i]), fd);
			YES(run_until(is_closed, NULL));
			IS(send(socket, "r", 1, MSG_NOSIGNAL), -1);
			IS(errno, EPIPE);
			IS(count(read_file(log_path), "\n"), 0);
			close(socket);
			end();
			/* Both ends of the socket are gone. */
			IS(open_descriptors(), before - 2);
			if (fd >= 0)
				close(fd);
		}
}

UNIT_SUITE(refused_calls, {"names", test_names}, {"flood", test_flood},
	{"huge number", test_huge_number}, {"lies", test_lies})
