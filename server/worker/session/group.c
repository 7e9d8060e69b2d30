/* SPDX-License-Identifier: Apache-2.0 */
/* This worker's side of its group channel; see group.h. */
#include "server/worker/session/group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "rpc/net.h"

enum { TALK_S = 2, LOOK_NS = 2000000 };

unsigned ckt_group_away_ms = 5000;

struct claim {
	struct ckt_group_name name;
	ckt_group_answer answer;
};

static struct {
	pthread_mutex_t lock;
	int poller, channel;
	bool joined;
	struct claim *claims;
	size_t claim_count, claim_room;
} group = {.lock = PTHREAD_MUTEX_INITIALIZER, .poller = -1, .channel = -1};

int ckt_group_init(void)
{
	if (group.poller < 0)
		group.poller = epoll_create1(EPOLL_CLOEXEC);
	return group.poller < 0 ? -errno : group.poller;
}

/* Precondition: lock held. */
static void leave(void)
{
	if (group.channel < 0)
		return;
	epoll_ctl(group.poller, EPOLL_CTL_DEL, group.channel, NULL);
	close(group.channel);
	group.channel = -1;
}

/* Precondition: lock held.  fd -1: none goes along.  0 or -errno. */
static int tell(enum ckt_group_kind kind, const struct ckt_group_name *name, unsigned nth, int fd)
{
	struct ckt_group_message packet = {.kind = kind, .nth = nth, .name = *name};
	struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (group.channel < 0)
		return -ENOTCONN;
	ckt_net_fd_put(&message, &room, fd);
	if (sendmsg(group.channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	int error = errno;
	if (error != EAGAIN && error != ETOOMANYREFS)
		leave();
	return error == EAGAIN || error == ETOOMANYREFS ? -EAGAIN : -ENOTCONN;
}

int ckt_group_join(int channel)
{
	struct epoll_event event = {.events = EPOLLIN};
	if (!ckt_net_is_packet_socket(channel)) {
		close(channel);
		return -EINVAL;
	}
	pthread_mutex_lock(&group.lock);
	leave();
	int result = epoll_ctl(group.poller, EPOLL_CTL_ADD, channel, &event) ? -errno : 0;
	if (result) {
		close(channel);
	} else {
		group.channel = channel;
		group.joined = true;
		for (size_t i = 0; i < group.claim_count; i++)
			tell(CKT_GROUP_CLAIM, &group.claims[i].name, 0, -1);
	}
	pthread_mutex_unlock(&group.lock);
	return result;
}

bool ckt_group_joined(void)
{
	pthread_mutex_lock(&group.lock);
	bool result = group.joined;
	pthread_mutex_unlock(&group.lock);
	return result;
}

/* The next offer's end, the caller's; -1: none.  *ret_gone: a worker has ended instead. */
static int take_offer(struct ckt_group_name *ret_name, bool *ret_gone)
{
	struct ckt_group_message packet;
	struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	int fd = -1;
	ckt_net_fd_expect(&message, &room);
	pthread_mutex_lock(&group.lock);
	ssize_t n = group.channel < 0
		? -1
		: recvmsg(group.channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n > 0)
		fd = ckt_net_fd_take(&message);
	else if (n == 0 || (group.channel >= 0 && errno != EAGAIN && errno != EINTR))
		leave();
	pthread_mutex_unlock(&group.lock);
	/* The server passes on what another worker made. */
	if (fd >= 0 &&
		(n != sizeof packet || packet.kind != CKT_GROUP_OFFER ||
			!ckt_net_is_packet_socket(fd))) {
		close(fd);
		fd = -1;
	}
	*ret_gone = n == sizeof packet && packet.kind == CKT_GROUP_GONE;
	*ret_name = packet.name;
	return fd;
}

static void limit_wait(int connection)
{
	struct timeval limit = {.tv_sec = TALK_S};
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static ckt_group_answer find_answer(const struct ckt_group_name *name)
{
	ckt_group_answer result = NULL;
	pthread_mutex_lock(&group.lock);
	for (size_t i = 0; i < group.claim_count && !result; i++)
		if (ckt_group_same_name(&group.claims[i].name, name))
			result = group.claims[i].answer;
	pthread_mutex_unlock(&group.lock);
	return result;
}

void ckt_group_serve(struct ckt_worker *worker, ckt_group_answer answer, ckt_group_gone gone)
{
	struct ckt_group_name name;
	bool ended;
	int connection = take_offer(&name, &ended);
	if (ended)
		gone(worker, &name);
	if (connection < 0)
		return;
	ckt_group_answer claimed = find_answer(&name);
	if (claimed)
		answer = claimed;
	limit_wait(connection);
	answer(worker, &name, connection);
	close(connection);
}

/*
 * Waits while the server is busy and, if await_server, for the next server.  -ENODEV: there was
 * never a channel.
 */
static int tell_patiently(enum ckt_group_kind kind, const struct ckt_group_name *name, unsigned nth,
	int fd, bool await_server)
{
	int64_t deadline = ckt_net_now_ms() + ckt_group_away_ms;
	for (;;) {
		pthread_mutex_lock(&group.lock);
		int result = group.joined ? tell(kind, name, nth, fd) : -ENODEV;
		pthread_mutex_unlock(&group.lock);
		bool again = result == -EAGAIN || (result == -ENOTCONN && await_server);
		if (!again || ckt_net_now_ms() >= deadline)
			return result;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}

int ckt_group_claim(const struct ckt_group_name *name, ckt_group_answer answer)
{
	int result = 0;
	size_t at = 0;
	pthread_mutex_lock(&group.lock);
	while (at < group.claim_count && !ckt_group_same_name(&group.claims[at].name, name))
		at++;
	if (at < group.claim_count)
		group.claims[at].answer = answer;
	else if (group.claim_count >= CKT_GROUP_CLAIMS_MAX)
		result = -ENOSPC;
	else if (CKT_GROW(group.claims, group.claim_count, group.claim_room, 4))
		result = -ENOMEM;
	else
		group.claims[group.claim_count++] = (struct claim){.name = *name, .answer = answer};
	pthread_mutex_unlock(&group.lock);
	/* The next server is told with its channel. */
	if (!result)
		tell_patiently(CKT_GROUP_CLAIM, name, 0, -1, false);
	return result;
}

void ckt_group_drop(const struct ckt_group_name *name)
{
	bool found = false;
	pthread_mutex_lock(&group.lock);
	for (size_t i = 0; i < group.claim_count && !found; i++)
		if (ckt_group_same_name(&group.claims[i].name, name)) {
			group.claims[i] = group.claims[--group.claim_count];
			found = true;
		}
	pthread_mutex_unlock(&group.lock);
	if (found)
		tell_patiently(CKT_GROUP_DROP, name, 0, -1, false);
}

static int ask(const struct ckt_group_name *name, unsigned nth, bool await_server)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	int result = tell_patiently(CKT_GROUP_ASK, name, nth, ends[1], await_server);
	close(ends[1]);
	if (!result) {
		limit_wait(ends[0]);
		return ends[0];
	}
	close(ends[0]);
	return -ENOTCONN;
}

int ckt_group_ask(const struct ckt_group_name *name, unsigned nth)
{
	return ask(name, nth, true);
}

int ckt_group_ask_now(const struct ckt_group_name *name, unsigned nth)
{
	return ask(name, nth, false);
}
