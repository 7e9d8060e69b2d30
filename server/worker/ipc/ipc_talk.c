/* SPDX-License-Identifier: Apache-2.0 */
/* Questions between workers about what they share; see ipc_talk.h. */
#include "server/worker/ipc/ipc_talk.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "server/worker/session/group.h"
#include "server/worker/worker.h"

/* More sessions than these do not claim one id. */
enum { CLAIMANTS_MAX = 16 };

struct ckt_ipc_question ckt_ipc_question(
	struct ckt_worker *worker, enum ckt_ipc_want want, uint32_t kind, const uint8_t *secret)
{
	struct ckt_ipc_question question = {.kind = kind, .want = want};
	memcpy(question.magic, CKT_IPC_TALK_MAGIC, sizeof question.magic);
	if (secret)
		memcpy(question.secret, secret, sizeof question.secret);
	memcpy(question.session, worker->session, sizeof question.session);
	return question;
}

/* -ENOENT: there is no such worker. */
static int receive(int connection, struct ckt_ipc_answer *ret, int *ret_fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_expect(&message, &room);
	ssize_t n = ckt_net_receive_message(connection, &message, MSG_CMSG_CLOEXEC);
	/* The question was not read; what was written before the end comes behind this error. */
	if (n < 0 && errno == ECONNRESET)
		n = ckt_net_receive_message(connection, &message, MSG_CMSG_CLOEXEC);
	int fd = n < 0 ? -1 : ckt_net_fd_take(&message);
	if (n == 1 && *(uint8_t *)ret == CKT_GROUP_NOBODY)
		n = -ENOENT;
	if (fd >= 0 && n != sizeof *ret) {
		close(fd);
		fd = -1;
	}
	*ret_fd = fd;
	ret->job[CKT_JOB_NAME_MAX] = 0;
	return n == sizeof *ret ? 0 : n == -ENOENT ? -ENOENT : -ESRCH;
}

/* -ENOENT: no further worker has that name. */
static int ask_nth(const char session[CKT_IPC_SESSION], unsigned nth,
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *ret_answer, int *ret_fd)
{
	const struct ckt_group_name name = ckt_group_session(session, CKT_IPC_SESSION);
	int result = -ESRCH, connection = ckt_group_ask(&name, nth);
	*ret_fd = -1;
	if (connection < 0)
		return connection;
	/* It waits there until the worker has the other end. */
	if (send(connection, question, sizeof *question, MSG_NOSIGNAL) == sizeof *question ||
		errno == EPIPE)
		result = receive(connection, ret_answer, ret_fd);
	close(connection);
	if (result || memcmp(ret_answer->session, session, CKT_IPC_SESSION) == 0)
		return result;
	if (*ret_fd >= 0)
		close(*ret_fd);
	*ret_fd = -1;
	return -ESRCH;
}

int ckt_ipc_ask_session(const char session[CKT_IPC_SESSION],
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *ret_answer, int *ret_fd)
{
	int result = -ENOENT;
	if (ret_fd)
		*ret_fd = -1;
	for (unsigned nth = 0; nth < CLAIMANTS_MAX; nth++) {
		struct ckt_ipc_answer answer;
		int fd, error = ask_nth(session, nth, question, &answer, &fd);
		if (error == -ENOENT)
			break;
		if (error == -ENOTCONN)
			return result ? error : result;
		if (error && result)
			result = -ESRCH;
		if (error || (!result && answer.found == CKT_IPC_NONE))
			continue;
		result = 0;
		*ret_answer = answer;
		if (ret_fd)
			*ret_fd = fd;
		else if (fd >= 0)
			close(fd);
		if (answer.found != CKT_IPC_NONE)
			break;
	}
	return result;
}

bool ckt_ipc_hear(int connection, struct ckt_ipc_question *ret)
{
	return ckt_net_receive(connection, ret, sizeof *ret, MSG_TRUNC) == sizeof *ret &&
		memcmp(ret->magic, CKT_IPC_TALK_MAGIC, sizeof ret->magic) == 0;
}

void ckt_ipc_reply(int connection, const struct ckt_ipc_answer *answer, int fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = (void *)answer, .iov_len = sizeof *answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_put(&message, &room, fd);
	sendmsg(connection, &message, MSG_NOSIGNAL);
}
