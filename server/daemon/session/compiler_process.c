/* SPDX-License-Identifier: Apache-2.0 */
/* The process that compiles for workers; see compiler_process.h. */
#include "server/daemon/session/compiler_process.h"

#include <errno.h>
#include <fcntl.h>
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
#include "rpc/worker_descriptors.h"
#include "server/daemon/server.h"
#include "server/daemon/session/spawn.h"
#include "server/daemon/session/spawn_cage.h"

enum {
	FIRST_DELAY_MS = 100,
	/* One that cannot live costs a process a minute. */
	LAST_DELAY_MS = 60000,
	/* One that lived this long starts again at once. */
	SOUND_MS = 60000
};

struct ckt_compiler {
	struct ckt_server *server;
	struct ckt_source pidfd; /* fd -1: no process */
	int control;             /* -1: no process */
	struct ckt_timer again;
	int64_t started_ms;
	int64_t delay_ms; /* before the next start */
};

static void launch_later(struct ckt_compiler *compiler);

static void process_ended(struct ckt_source *source, uint32_t events)
{
	struct ckt_compiler *compiler = CKT_CONTAINER(source, struct ckt_compiler, pidfd);
	siginfo_t info = {0};
	(void)events;
	waitid((idtype_t)P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG);
	ckt_warning("the compiler's process ended (%s %d); starting another one",
		info.si_code == CLD_EXITED ? "exit code" : "signal", info.si_status);
	close(ckt_loop_remove(&compiler->server->loop, source));
	close(compiler->control);
	compiler->control = -1;
	if (ckt_net_now_ms() - compiler->started_ms > SOUND_MS)
		compiler->delay_ms = 0;
	launch_later(compiler);
}

static int watch(struct ckt_compiler *compiler, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	compiler->pidfd = (struct ckt_source){.fd = fd, .ready = process_ended};
	int result = ckt_loop_add(&compiler->server->loop, &compiler->pidfd, EPOLLIN);
	if (result) {
		close(fd);
		compiler->pidfd.fd = -1;
	}
	return result;
}

static int launch(struct ckt_compiler *compiler, char *ret_message, size_t message_size)
{
	int pair[2];
	pid_t pid;
	snprintf(ret_message, message_size, "no socket");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	int result = ckt_spawn_compiler(compiler->server, pair[1], &pid, ret_message, message_size);
	close(pair[1]);
	if (!result)
		result = watch(compiler, pid);
	if (result) {
		/* A process without us ends by itself. */
		close(pair[0]);
		return result;
	}
	compiler->control = pair[0];
	compiler->started_ms = ckt_net_now_ms();
	return 0;
}

static void try_launch(struct ckt_timer *timer)
{
	struct ckt_compiler *compiler = CKT_CONTAINER(timer, struct ckt_compiler, again);
	char message[512];
	if (launch(compiler, message, sizeof message) == 0)
		return;
	ckt_warning("kernels are not compiled: %s; trying again", message);
	launch_later(compiler);
}

static void launch_later(struct ckt_compiler *compiler)
{
	compiler->again.fire = try_launch;
	ckt_timer_set(&compiler->server->loop, &compiler->again, compiler->delay_ms);
	compiler->delay_ms = compiler->delay_ms ? compiler->delay_ms * 2 : FIRST_DELAY_MS;
	if (compiler->delay_ms > LAST_DELAY_MS)
		compiler->delay_ms = LAST_DELAY_MS;
}

void ckt_compiler_init(struct ckt_server *server)
{
	if (!server->driver.soft || !ckt_spawn_cage_is_on(server))
		return;
	struct ckt_compiler *compiler = calloc(1, sizeof *compiler);
	if (!compiler)
		return;
	compiler->server = server;
	compiler->pidfd.fd = compiler->control = -1;
	server->compiler = compiler;
	try_launch(&compiler->again);
}

void ckt_compiler_fini(struct ckt_server *server)
{
	struct ckt_compiler *compiler = server->compiler;
	if (!compiler)
		return;
	ckt_timer_clear(&compiler->again);
	if (compiler->control >= 0) {
		close(ckt_loop_remove(&server->loop, &compiler->pidfd));
		close(compiler->control);
	}
	free(compiler);
	server->compiler = NULL;
}

int ckt_compiler_connect(struct ckt_compiler *compiler)
{
	char byte = CKT_COMPILE_WORKER_BYTE;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	int pair[2];
	if (!compiler || compiler->control < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	ckt_net_fd_put(&message, &room, pair[0]);
	ssize_t n = sendmsg(compiler->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(pair[0]);
	if (n == sizeof byte)
		return pair[1];
	close(pair[1]);
	return -1;
}
