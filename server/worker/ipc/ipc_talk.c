/* SPDX-License-Identifier: Apache-2.0 */
/* Questions between workers about what they share; see ipc_talk.h. */
#include "server/worker/ipc/ipc_talk.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/ipc/ipc_notice.h"
#include "server/worker/ipc/ipc_state.h"

enum { TALK_S = 2 };

int ckt_ipc_listen(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(sa_family_t);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Binding to no name makes the kernel choose one that nobody else has. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16))
		goto none;
	size = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &size) ||
		size <= sizeof(sa_family_t) + 1 ||
		size - sizeof(sa_family_t) - 1 > sizeof ckt_ipc.name)
		goto none;
	memcpy(ckt_ipc.name, address.sun_path + 1, size - sizeof(sa_family_t) - 1);
	return ckt_ipc.fd = fd;
none:
	ckt_debug("no socket for shared memory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

void ckt_ipc_socket_name(char ret_socket[CKT_IPC_SOCKET])
{
	memcpy(ret_socket, ckt_ipc.name, CKT_IPC_SOCKET);
}

static bool same_user(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		peer.uid == getuid();
}

static void limit_wait(int connection)
{
	struct timeval limit = {.tv_sec = TALK_S};
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static uint32_t owner(struct ckt_worker *worker)
{
	pthread_mutex_lock(&worker->mail_lock);
	uint32_t uid = worker->uid;
	pthread_mutex_unlock(&worker->mail_lock);
	return uid;
}

struct ckt_ipc_question ckt_ipc_question(
	struct ckt_worker *worker, enum ckt_ipc_want want, uint32_t kind, const uint8_t *secret)
{
	struct ckt_ipc_question question = {.uid = owner(worker), .kind = kind, .want = want};
	memcpy(question.magic, CKT_IPC_TALK_MAGIC, sizeof question.magic);
	if (secret)
		memcpy(question.secret, secret, sizeof question.secret);
	memcpy(question.session, worker->session, sizeof question.session);
	ckt_ipc_socket_name(question.socket);
	return question;
}

static int receive(int connection, struct ckt_ipc_answer *ret, int *ret_fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_expect(&message, &room);
	ssize_t n = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	int fd = n < 0 ? -1 : ckt_net_fd_take(&message);
	if (fd >= 0 && (n != sizeof *ret || !ret_fd)) {
		close(fd);
		fd = -1;
	}
	if (ret_fd)
		*ret_fd = fd;
	ret->job[CKT_JOB_NAME_MAX] = 0;
	return n == sizeof *ret ? 0 : -ESRCH;
}

int ckt_ipc_ask(const char socket_name[CKT_IPC_SOCKET], const struct ckt_ipc_question *question,
	struct ckt_ipc_answer *ret_answer, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strnlen(socket_name, CKT_IPC_SOCKET);
	int result = -ESRCH,
	    connection = length ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
	if (ret_fd)
		*ret_fd = -1;
	if (connection < 0)
		return -ESRCH;
	limit_wait(connection);
	memcpy(address.sun_path + 1, socket_name, length);
	if (connect(connection, (struct sockaddr *)&address,
		    (socklen_t)(sizeof(sa_family_t) + 1 + length)) == 0 &&
		same_user(connection) &&
		send(connection, question, sizeof *question, MSG_NOSIGNAL) == sizeof *question)
		result = receive(connection, ret_answer, ret_fd);
	close(connection);
	return result;
}

/*
 * The same for a worker that may now be another session's: the kernel reuses the names of dead
 * workers' sockets.
 */
static int ask_one(const char socket_name[CKT_IPC_SOCKET], const char session[CKT_IPC_SESSION],
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *ret_answer, int *ret_fd)
{
	int error = ckt_ipc_ask(socket_name, question, ret_answer, ret_fd);
	if (error || memcmp(ret_answer->session, session, CKT_IPC_SESSION) == 0)
		return error;
	if (ret_fd && *ret_fd >= 0)
		close(*ret_fd);
	if (ret_fd)
		*ret_fd = -1;
	return -ESRCH;
}

int ckt_ipc_ask_session(struct ckt_worker *worker, const struct ckt_ipc_handle *handle,
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *ret_answer, int *ret_fd)
{
	char sockets[CKT_IPC_NOTICES_MAX][CKT_IPC_SOCKET];
	/*
	 * The worker from the time of the handle is not the one that is restored with this session.
	 */
	int result = question->restoring
		? -ESRCH
		: ask_one(handle->socket, handle->session, question, ret_answer, ret_fd);
	if (ret_fd && question->restoring)
		*ret_fd = -1;
	if (!result && ret_answer->found != CKT_IPC_NONE)
		return 0;
	unsigned count = ckt_ipc_notice_find(worker, handle->session, sockets);
	for (unsigned i = 0; i < count; i++) {
		struct ckt_ipc_answer answer;
		int fd = -1;
		/* A worker that has it takes precedence over one that has not. */
		if (ask_one(sockets[i], handle->session, question, &answer, ret_fd ? &fd : NULL))
			continue;
		if (result || answer.found != CKT_IPC_NONE) {
			*ret_answer = answer;
			if (ret_fd)
				*ret_fd = fd;
			result = 0;
			if (answer.found != CKT_IPC_NONE)
				break;
		}
	}
	return result;
}

bool ckt_ipc_hear(struct ckt_worker *worker, int connection, struct ckt_ipc_question *ret)
{
	limit_wait(connection);
	/* The asking worker speaks for its session's user; workers of one server run as one. */
	return same_user(connection) &&
		recv(connection, ret, sizeof *ret, MSG_TRUNC) == sizeof *ret &&
		memcmp(ret->magic, CKT_IPC_TALK_MAGIC, sizeof ret->magic) == 0 &&
		(ret->uid == owner(worker) || ckt_ipc_was_owner(ret->uid));
}

void ckt_ipc_reply(int connection, const struct ckt_ipc_answer *answer, int fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = (void *)answer, .iov_len = sizeof *answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_put(&message, &room, fd);
	sendmsg(connection, &message, MSG_NOSIGNAL);
}
