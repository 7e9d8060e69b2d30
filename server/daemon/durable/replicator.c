/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of the process that sends replicas; see replicator.h. */
#include "server/daemon/durable/replicator.h"

#include <errno.h>
#include <fcntl.h>
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
#include "server/daemon/durable/automatic.h"
#include "server/daemon/paths.h"

#define TOKEN "CRICKET_TOKEN_FILE="

enum { PROCESS_FD = 3, AGAIN_MS = 1000 };

struct ckt_replicator_process {
	struct ckt_server *server;
	struct ckt_source source; /* the socket; fd -1: no process */
	pid_t pid;
	struct ckt_timer again;
	ckt_replicator_line line;
	ckt_replicator_again begun;
	char path[CKT_PATH_MAX], token[CKT_PATH_MAX + sizeof TOKEN];
};

/* In the child: allocates nothing. */
static _Noreturn void execute(int fd, const char *path, char *const *arguments, char *const *env)
{
	sigset_t none;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, PROCESS_FD + 1);
	/* A signal to the server's group or terminal is not meant for it. */
	setsid();
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	syscall(SYS_close_range, PROCESS_FD, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
	if (high >= 0 && dup2(high, PROCESS_FD) >= 0)
		execve(path, arguments, env);
	_exit(127);
}

/* Ours, with the token of its own; the caller frees the list. */
static char **make_environment(struct ckt_replicator_process *process)
{
	const char *token = process->server->options.replicate_token;
	size_t count = 0, kept = 0;
	while (environ[count])
		count++;
	char **list = calloc(count + 2, sizeof *list);
	for (size_t i = 0; list && i < count; i++)
		if (strncmp(environ[i], TOKEN, strlen(TOKEN)) != 0)
			list[kept++] = environ[i];
	snprintf(process->token, sizeof process->token, TOKEN "%s", token ? token : "");
	if (list && token)
		list[kept] = process->token;
	return list;
}

static void ready(struct ckt_source *source, uint32_t events);

static int launch(struct ckt_replicator_process *process)
{
	struct ckt_server *server = process->server;
	char lease[16];
	int pair[2];
	snprintf(lease, sizeof lease, "%u", server->options.replicate_lease * 1000);
	char *const arguments[] = {"cricket-replicator", server->options.replicate, lease,
		server->automatic->dir, NULL};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	char **list = make_environment(process);
	pid_t pid = list ? fork() : -1;
	if (pid == 0)
		execute(pair[1], process->path, arguments, list);
	int result = pid < 0 ? -errno : 0;
	free(list);
	close(pair[1]);
	process->source = (struct ckt_source){.fd = pair[0], .ready = ready};
	if (!result)
		result = ckt_loop_add(&server->loop, &process->source, EPOLLIN);
	if (result) {
		close(pair[0]);
		process->source.fd = -1;
	}
	process->pid = pid;
	return result;
}

static void end_process(struct ckt_replicator_process *process)
{
	if (process->source.fd >= 0)
		close(ckt_loop_remove(&process->server->loop, &process->source));
	process->source.fd = -1;
	if (process->pid > 0) {
		kill(process->pid, SIGKILL);
		waitpid(process->pid, NULL, 0);
	}
	process->pid = -1;
}

static void launch_again(struct ckt_timer *timer)
{
	struct ckt_replicator_process *process =
		CKT_CONTAINER(timer, struct ckt_replicator_process, again);
	if (launch(process))
		ckt_timer_set(&process->server->loop, timer, AGAIN_MS);
	else
		process->begun(process->server);
}

static void ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_replicator_process *process =
		CKT_CONTAINER(source, struct ckt_replicator_process, source);
	char text[CKT_REPLICATOR_LINE_MAX + 1], *words[4] = {"", "", "", ""}, *rest = text;
	(void)events;
	ssize_t n = recv(source->fd, text, CKT_REPLICATOR_LINE_MAX, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		ckt_warning("the process that sends replicas ended; starting another one");
		end_process(process);
		ckt_timer_set(&process->server->loop, &process->again, AGAIN_MS);
		return;
	}
	text[n] = 0;
	for (unsigned i = 0; i < 4 && rest; i++)
		words[i] = i < 3 ? strsep(&rest, " ") : rest;
	process->line(process->server, words);
}

int ckt_replicator_start(struct ckt_server *server, ckt_replicator_line line,
	ckt_replicator_again again, struct ckt_replicator_process **ret_process, char *ret_message,
	size_t message_size)
{
	struct ckt_replicator_process *process = calloc(1, sizeof *process);
	int result = process ? ckt_paths_find_replicator(process->path) : -ENOMEM;
	if (!result) {
		process->server = server;
		process->pid = -1;
		process->line = line;
		process->begun = again;
		process->again.fire = launch_again;
		result = launch(process);
	}
	if (result) {
		snprintf(ret_message, message_size,
			"--replicate: cannot start cricket-replicator: %s", strerror(-result));
		free(process);
		return result;
	}
	*ret_process = process;
	return 0;
}

void ckt_replicator_tell(
	struct ckt_replicator_process *process, const char *word, const char *session)
{
	char text[64];
	int size = snprintf(text, sizeof text, "%s %.12s", word, session);
	if (process->source.fd >= 0 &&
		send(process->source.fd, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		ckt_debug("the process that sends replicas does not read: %s", strerror(errno));
}

void ckt_replicator_stop(struct ckt_replicator_process *process)
{
	if (!process)
		return;
	ckt_timer_clear(&process->again);
	end_process(process);
	free(process);
}
