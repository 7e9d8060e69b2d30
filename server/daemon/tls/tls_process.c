/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of the process with the key; see tls_process.h. */
#include "server/daemon/tls/tls_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/server.h"

enum {
	START_MS = 10000,
	FIRST_DELAY_MS = 100,
	LAST_DELAY_MS = 60000,
	/* One that lived this long starts again at once. */
	SOUND_MS = 60000,
};

struct ckt_tls_process {
	struct ckt_server *server;
	struct ckt_source pidfd; /* fd -1: no process */
	int control;             /* -1: no process */
	struct ckt_timer again;
	int64_t started_ms, delay_ms;
	char certificate[CKT_PATH_MAX], key[CKT_PATH_MAX], ca[CKT_PATH_MAX]; /* ca empty: none */
};

/* ---- The process */

static void launch_later(struct ckt_tls_process *process);

static void process_ended(struct ckt_source *source, uint32_t events)
{
	struct ckt_tls_process *process = CKT_CONTAINER(source, struct ckt_tls_process, pidfd);
	siginfo_t info = {0};
	(void)events;
	waitid((idtype_t)P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG);
	ckt_warning("the process with the TLS key ended (%s %d); starting another one",
		info.si_code == CLD_EXITED ? "exit code" : "signal", info.si_status);
	close(ckt_loop_remove(&process->server->loop, source));
	close(process->control);
	process->control = -1;
	if (ckt_net_now_ms() - process->started_ms > SOUND_MS)
		process->delay_ms = 0;
	launch_later(process);
}

/* In the child: allocates nothing. */
static _Noreturn void execute(int control, char *const *arguments)
{
	sigset_t no_signals;
	int high = fcntl(control, F_DUPFD_CLOEXEC, CKT_TLS_PROCESS_FD + 1);
	/* A signal to the server's group or terminal is not meant for connections. */
	setsid();
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&no_signals);
	sigprocmask(SIG_SETMASK, &no_signals, NULL);
	syscall(SYS_close_range, CKT_TLS_PROCESS_FD, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
	if (high >= 0 && dup2(high, CKT_TLS_PROCESS_FD) >= 0)
		execv("/proc/self/exe", arguments);
	_exit(127);
}

/* Empty, or why it could not start. */
static int read_start(int control, char *ret_message, size_t message_size)
{
	struct pollfd p = {.fd = control, .events = POLLIN};
	int ready;
	do
		ready = poll(&p, 1, START_MS);
	while (ready < 0 && errno == EINTR);
	ssize_t n = ready > 0 ? recv(control, ret_message, message_size - 1, MSG_DONTWAIT) : -1;
	if (n < 1) {
		snprintf(ret_message, message_size, "the process with the TLS key does not start");
		return -EIO;
	}
	ret_message[n] = 0;
	/* One byte of zero: good. */
	return *ret_message ? -EINVAL : 0;
}

static int watch(struct ckt_tls_process *process, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	process->pidfd = (struct ckt_source){.fd = fd, .ready = process_ended};
	int result = ckt_loop_add(&process->server->loop, &process->pidfd, EPOLLIN);
	if (result) {
		close(fd);
		process->pidfd.fd = -1;
	}
	return result;
}

static int launch(struct ckt_tls_process *process, char *ret_message, size_t message_size)
{
	const struct ckt_worker_user *user = &process->server->compiler_user;
	char uid[16], gid[16];
	int pair[2];
	snprintf(uid, sizeof uid, "%u", user->change ? (unsigned)user->uid : 0);
	snprintf(gid, sizeof gid, "%u", user->change ? (unsigned)user->gid : 0);
	char *const arguments[] = {"cricket-server", CKT_TLS_PROCESS_OPTION, process->certificate,
		process->key, process->ca, uid, gid, process->server->options.log_level, NULL};
	snprintf(ret_message, message_size, "no process");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		execute(pair[1], arguments);
	int result = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (!result)
		result = read_start(pair[0], ret_message, message_size);
	if (!result)
		result = watch(process, pid);
	if (result) {
		/* Without us it ends by itself. */
		close(pair[0]);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return result;
	}
	process->control = pair[0];
	process->started_ms = ckt_net_now_ms();
	return 0;
}

static void try_launch(struct ckt_timer *timer)
{
	struct ckt_tls_process *process = CKT_CONTAINER(timer, struct ckt_tls_process, again);
	char message[CKT_TLS_WHY_MAX];
	if (launch(process, message, sizeof message) == 0)
		return;
	ckt_warning("no TLS connections: %s; trying again", message);
	launch_later(process);
}

static void launch_later(struct ckt_tls_process *process)
{
	process->again.fire = try_launch;
	ckt_timer_set(&process->server->loop, &process->again, process->delay_ms);
	process->delay_ms = process->delay_ms ? process->delay_ms * 2 : FIRST_DELAY_MS;
	if (process->delay_ms > LAST_DELAY_MS)
		process->delay_ms = LAST_DELAY_MS;
}

/* ---- What the server calls */

static bool find_default(char ret_path[CKT_PATH_MAX], const char *name)
{
	snprintf(ret_path, CKT_PATH_MAX, CKT_TLS_DIRECTORY "/%s", name);
	if (access(ret_path, R_OK) == 0)
		return true;
	*ret_path = 0;
	return false;
}

/* The paths; false: there is no certificate. */
static int find_files(
	struct ckt_tls_process *process, bool *ret_found, char *ret_message, size_t message_size)
{
	const struct ckt_options *options = &process->server->options;
	*ret_found = true;
	if (!options->tls_certificate && !options->tls_key && !options->tls_ca) {
		*ret_found = find_default(process->certificate, "cert.pem") &&
			find_default(process->key, "key.pem");
		find_default(process->ca, "ca.pem");
		return 0;
	}
	if (!options->tls_certificate || !options->tls_key) {
		snprintf(ret_message, message_size,
			"%s without %s: give --tls-certificate FILE and --tls-key FILE",
			options->tls_certificate   ? "--tls-certificate"
				: options->tls_key ? "--tls-key"
						   : "--tls-ca",
			options->tls_certificate ? "--tls-key" : "--tls-certificate");
		return -EINVAL;
	}
	snprintf(process->certificate, CKT_PATH_MAX, "%s", options->tls_certificate);
	snprintf(process->key, CKT_PATH_MAX, "%s", options->tls_key);
	snprintf(process->ca, CKT_PATH_MAX, "%s", options->tls_ca ? options->tls_ca : "");
	return 0;
}

int ckt_tls_process_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_tls_process *process = calloc(1, sizeof *process);
	char why[CKT_TLS_WHY_MAX];
	bool found;
	if (!process) {
		snprintf(ret_message, message_size, "cannot start: no memory");
		return -ENOMEM;
	}
	process->server = server;
	process->pidfd.fd = process->control = -1;
	int result = find_files(process, &found, ret_message, message_size);
	if (!result && found) {
		result = launch(process, why, sizeof why);
		if (result)
			snprintf(ret_message, message_size,
				"--tls-certificate, --tls-key, --tls-ca: %s", why);
	}
	if (!result && found)
		result = ckt_certificates_open(server, process->certificate,
			*process->ca ? process->ca : NULL, ret_message, message_size);
	if (result || !found)
		free(process);
	else
		server->tls = process;
	return result;
}

void ckt_tls_process_fini(struct ckt_server *server)
{
	struct ckt_tls_process *process = server->tls;
	if (!process)
		return;
	ckt_timer_clear(&process->again);
	if (process->control >= 0) {
		close(ckt_loop_remove(&server->loop, &process->pidfd));
		close(process->control);
	}
	free(process);
	server->tls = NULL;
}

bool ckt_tls_is_on(const struct ckt_server *server)
{
	return server->tls;
}

/* Both descriptors go with one byte, or neither does. */
static int send_two(int control, int tcp_fd, int plain_fd)
{
	const int fds[2] = {tcp_fd, plain_fd};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof fds)];
	} room = {.bytes = {0}};
	char byte = 0;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof room};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fds);
	memcpy(CMSG_DATA(c), fds, sizeof fds);
	return sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

int ckt_tls_process_take(struct ckt_server *server, int tcp_fd, int *ret_fd)
{
	struct ckt_tls_process *process = server->tls;
	int pair[2];
	if (!process || process->control < 0)
		return -EAGAIN;
	int result = ckt_net_pair(pair);
	if (result)
		return result;
	result = send_two(process->control, tcp_fd, pair[1]);
	close(pair[1]);
	if (result)
		close(pair[0]);
	else
		*ret_fd = pair[0];
	return result;
}
