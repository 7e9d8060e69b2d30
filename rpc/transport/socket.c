/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP and UNIX stream sockets as a transport; see transport.h.
 *
 * Every call says MSG_DONTWAIT, so that the mode of a descriptor that two processes share does not
 * matter.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/transport/transport.h"

/* ---- Descriptors beside a message */

void ckt_net_fd_put(struct msghdr *message, union ckt_net_fd_room *room, int fd)
{
	if (fd < 0)
		return;
	*room = (union ckt_net_fd_room){.bytes = {0}};
	message->msg_control = room;
	message->msg_controllen = sizeof *room;
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

ssize_t ckt_net_receive_message(int fd, struct msghdr *message, int flags)
{
	ssize_t n;
	do
		n = recvmsg(fd, message, flags);
	while (n < 0 && errno == EINTR);
	return n;
}

ssize_t ckt_net_receive(int fd, void *data, size_t size, int flags)
{
	struct iovec part = {.iov_base = data, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	return ckt_net_receive_message(fd, &message, flags);
}

void ckt_net_fd_expect(struct msghdr *message, union ckt_net_fd_room *room)
{
	message->msg_control = room;
	message->msg_controllen = sizeof *room;
}

int ckt_net_fd_take(struct msghdr *message)
{
	int taken = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			int fd;
			memcpy(&fd, (const char *)c + at, sizeof fd);
			if (taken < 0)
				taken = fd;
			else
				close(fd);
		}
	}
	return taken;
}

/* ---- The operations */

static ssize_t received(ssize_t n)
{
	return n > 0 ? n : n ? -errno : -ECONNRESET;
}

static ssize_t socket_read(struct ckt_transport *t, void *data, size_t size)
{
	ssize_t n;
	do
		n = recv(t->fd, data, size, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return received(n);
}

static ssize_t socket_write(struct ckt_transport *t, const void *data, size_t size)
{
	ssize_t n;
	do
		n = send(t->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t socket_read_fd(struct ckt_transport *t, void *data, size_t size, int *ret_fd)
{
	union ckt_net_fd_room room;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ckt_net_fd_expect(&message, &room);
	ssize_t n;
	do
		n = recvmsg(t->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*ret_fd = n < 0 ? -1 : ckt_net_fd_take(&message);
	return received(n);
}

static ssize_t socket_write_fd(
	struct ckt_transport *t, const struct iovec *parts, size_t count, int pass_fd)
{
	struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, pass_fd);
	ssize_t n;
	do
		n = sendmsg(t->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static short socket_events(struct ckt_transport *t, unsigned want)
{
	(void)t;
	return (short)((want & CKT_TRANSPORT_READ ? POLLIN : 0) |
		(want & CKT_TRANSPORT_WRITE ? POLLOUT : 0) |
		(want & CKT_TRANSPORT_ENDED ? POLLRDHUP : 0));
}

static bool socket_vanished(struct ckt_transport *t, unsigned after_ms)
{
	return ckt_net_vanished(t->fd, after_ms);
}

static int socket_peer_process(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	if (!ckt_net_is_local(t->fd))
		return -EOPNOTSUPP;
	if (getsockopt(t->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	*ret_pid = peer.pid;
	*ret_uid = peer.uid;
	return 0;
}

static bool socket_undelivered(struct ckt_transport *t)
{
	int unacknowledged = 0;
	/* Over a UNIX socket it lies in the peer's queue already. */
	return !ckt_net_is_local(t->fd) && ioctl(t->fd, SIOCOUTQ, &unacknowledged) == 0 &&
		unacknowledged;
}

static void socket_finish(struct ckt_transport *t)
{
	shutdown(t->fd, SHUT_WR);
}

static void socket_shutdown(struct ckt_transport *t)
{
	shutdown(t->fd, SHUT_RDWR);
}

static void socket_close(struct ckt_transport *t)
{
	close(t->fd);
}

const struct ckt_transport_operations ckt_transport_socket_operations = {
	.name = "socket",
	.read = socket_read,
	.write = socket_write,
	.read_fd = socket_read_fd,
	.write_fd = socket_write_fd,
	.events = socket_events,
	.vanished = socket_vanished,
	.peer_process = socket_peer_process,
	.undelivered = socket_undelivered,
	.finish = socket_finish,
	.shutdown = socket_shutdown,
	.close = socket_close,
};

void ckt_transport_init_socket(struct ckt_transport *t, int fd)
{
	t->operations = &ckt_transport_socket_operations;
	t->state = NULL;
	t->fd = fd;
}

bool ckt_net_is_packet_socket(int fd)
{
	int type = 0, domain = 0;
	socklen_t type_size = sizeof type, domain_size = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) == 0 &&
		type == SOCK_SEQPACKET && domain == AF_UNIX;
}
