/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that a worker's cage refuses; see refused_calls.h. */
#include "server/daemon/session/refused_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/daemon/server.h"

/* Calls that are answered before others get their turn: some ten microseconds each. */
enum { AT_A_TIME = 16 };

void ckt_refused_calls_init(
	struct ckt_refused_calls *calls, struct ckt_server *server, const char *session)
{
	*calls = (struct ckt_refused_calls){
		.server = server, .session = session, .source = {.fd = -1}};
}

void ckt_refused_calls_close(struct ckt_refused_calls *calls)
{
	int fd = calls->server && calls->source.fd >= 0
		? ckt_loop_remove(&calls->server->loop, &calls->source)
		: -1;
	if (fd >= 0)
		close(fd);
}

/* fd becomes ours if this succeeds. */
static int watch(struct ckt_refused_calls *calls, int fd,
	void (*ready)(struct ckt_source *source, uint32_t events))
{
	calls->source = (struct ckt_source){.fd = fd, .ready = ready};
	int result = ckt_loop_add(&calls->server->loop, &calls->source, EPOLLIN);
	if (result)
		calls->source.fd = -1;
	return result;
}

/* ---- Calls */

static bool is_first(struct ckt_refused_calls *calls, int number)
{
	unsigned at = number >= 0 && number < CKT_REFUSED_CALLS ? (unsigned)number
								: CKT_REFUSED_CALLS - 1;
	bool seen = calls->seen[at / 8] >> at % 8 & 1;
	calls->seen[at / 8] |= (uint8_t)(1u << at % 8);
	return !seen;
}

static void name_call(struct ckt_refused_calls *calls, const struct seccomp_data *data)
{
	if (!is_first(calls, data->nr) || calls->named >= CKT_REFUSED_CALLS_NAMED)
		return;
	calls->named++;
	char *name = seccomp_syscall_resolve_num_arch(data->arch, data->nr);
	ckt_daemon_log_limited(calls->server, CKT_LIMIT_CALLS,
		"session %s: the cage refused its worker's system call %s (%d) with EPERM; if a "
		"program fails because of it, report it, and start the server with --cage off%s",
		calls->session, name ? name : "without a known name", data->nr,
		calls->named == CKT_REFUSED_CALLS_NAMED ? "; not naming further ones" : "");
	free(name);
}

/*
 * The kernel's own record, so nothing in it is the worker's word.  The kernel wants it zeroed, and
 * libseccomp alone knows its size.
 */
static int answer_call(struct ckt_refused_calls *calls)
{
	struct seccomp_notif *call = NULL;
	struct seccomp_notif_resp *answer = NULL;
	if (seccomp_notify_alloc(&call, &answer))
		return -ENOMEM;
	/* An error: the thread is gone, or a signal took it away. */
	if (seccomp_notify_receive(calls->source.fd, call) == 0) {
		*answer = (struct seccomp_notif_resp){.id = call->id, .error = -EPERM};
		seccomp_notify_respond(calls->source.fd, answer);
		name_call(calls, &call->data);
	}
	seccomp_notify_free(call, answer);
	return 0;
}

static void calls_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_refused_calls *calls = CKT_CONTAINER(source, struct ckt_refused_calls, source);
	/* Without EPOLLIN nobody has that filter any more. */
	int result = events & EPOLLIN ? 0 : -EPIPE;
	for (int i = 0; i < AT_A_TIME && !result; i++) {
		/* Receiving would wait for a call. */
		struct pollfd next = {.fd = source->fd, .events = POLLIN};
		if (poll(&next, 1, 0) != 1 || !(next.revents & POLLIN))
			return;
		result = answer_call(calls);
	}
	if (result)
		ckt_refused_calls_close(calls);
}

/* ---- The descriptor */

/* Whatever else came could make a later call wait, or keep something open. */
static bool is_listener(int fd)
{
	static const char kind[] = "anon_inode:seccomp notify";
	char path[64], target[sizeof kind + 1];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t size = readlink(path, target, sizeof target);
	return size == (ssize_t)sizeof kind - 1 && memcmp(target, kind, sizeof kind - 1) == 0;
}

/* The worker's descriptor, now ours; -1 where anything else came. */
static int receive_listener(int socket)
{
	char bytes[2];
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_expect(&message, &room);
	ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size < 0)
		return -1;
	int fd = ckt_net_fd_take(&message);
	if (fd < 0 || (size == 1 && *bytes == CKT_WORKER_REFUSED_BYTE && is_listener(fd)))
		return fd;
	close(fd);
	return -1;
}

/* One message, and then the socket is closed. */
static void socket_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_refused_calls *calls = CKT_CONTAINER(source, struct ckt_refused_calls, source);
	(void)events;
	int fd = receive_listener(source->fd);
	ckt_refused_calls_close(calls);
	if (fd < 0)
		return;
	int result = watch(calls, fd, calls_ready);
	if (!result)
		return;
	close(fd);
	ckt_warning("session %s: cannot name the system calls that its cage refuses: %s",
		calls->session, strerror(-result));
}

int ckt_refused_calls_open(struct ckt_refused_calls *calls, int *ret_fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	int result = watch(calls, pair[0], socket_ready);
	if (result) {
		close(pair[0]);
		close(pair[1]);
		return result;
	}
	*ret_fd = pair[1];
	return 0;
}
