/* SPDX-License-Identifier: Apache-2.0 */
/* What all transports have in common; see transport.h. */
#include "rpc/transport/transport.h"

#include <errno.h>

#include "rpc/net.h"

unsigned ckt_transport_polled(struct ckt_transport *t, unsigned want, short revents)
{
	if (t->operations->polled)
		return t->operations->polled(t, want, revents);
	return (revents & POLLIN ? CKT_TRANSPORT_READ : 0) |
		(revents & POLLOUT ? CKT_TRANSPORT_WRITE : 0) |
		(revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL) ? CKT_TRANSPORT_ENDED : 0);
}

int ckt_transport_wait(struct ckt_transport *t, unsigned want, int timeout_ms)
{
	struct pollfd p = ckt_transport_pollfd(t, want);
	unsigned ready = ckt_transport_ready(t, want);
	if (ready)
		return (int)ready;
	int n = poll(&p, 1, timeout_ms);
	if (n <= 0)
		return n ? -errno : 0;
	return (int)ckt_transport_polled(t, want, p.revents);
}

int ckt_transport_wait_until(struct ckt_transport *t, unsigned want, int64_t deadline_ms)
{
	for (;;) {
		int timeout_ms = -1;
		if (deadline_ms >= 0) {
			int64_t left = deadline_ms - ckt_net_now_ms();
			if (left <= 0)
				return -ETIMEDOUT;
			timeout_ms = left > 1000000 ? 1000000 : (int)left;
		}
		int ready = ckt_transport_wait(t, want, timeout_ms);
		if (ready > 0)
			return 0;
		if (ready < 0 && ready != -EINTR)
			return ready;
	}
}

int ckt_transport_write_all(
	struct ckt_transport *t, const void *data, size_t size, int64_t deadline_ms)
{
	const uint8_t *p = data;
	while (size) {
		ssize_t n = ckt_transport_write(t, p, size);
		if (n == -EAGAIN) {
			int result = ckt_transport_wait_until(t, CKT_TRANSPORT_WRITE, deadline_ms);
			if (result)
				return result;
		} else if (n < 0) {
			return (int)n;
		} else {
			p += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int ckt_transport_read_all(struct ckt_transport *t, void *data, size_t size)
{
	uint8_t *p = data;
	while (size) {
		ssize_t n = ckt_transport_read(t, p, size);
		if (n == -EAGAIN) {
			int result = ckt_transport_wait_until(t, CKT_TRANSPORT_READ, -1);
			if (result)
				return result;
		} else if (n < 0) {
			return (int)n;
		} else {
			p += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int ckt_transport_peer_process(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid)
{
	return t->operations->peer_process(t, ret_pid, ret_uid);
}

void ckt_transport_finish(struct ckt_transport *t)
{
	if (ckt_transport_open(t))
		t->operations->finish(t);
}

void ckt_transport_shutdown(struct ckt_transport *t)
{
	if (ckt_transport_open(t))
		t->operations->shutdown(t);
}

void ckt_transport_close(struct ckt_transport *t)
{
	if (ckt_transport_open(t))
		t->operations->close(t);
	t->fd = -1;
}

int ckt_transport_release(struct ckt_transport *t)
{
	int fd = t->fd;
	t->fd = -1;
	return fd;
}

void ckt_transport_move(struct ckt_transport *to, struct ckt_transport *from)
{
	to->operations = from->operations;
	to->state = from->state;
	to->fd = from->fd;
	from->fd = -1;
	from->state = NULL;
}

const char *ckt_transport_name(const struct ckt_transport *t)
{
	if (!ckt_transport_open(t))
		return "none";
	if (t->operations != &ckt_transport_socket_operations)
		return t->operations->name;
	return ckt_net_is_local(t->fd) ? "unix" : ckt_net_is_pair(t->fd) ? "tls" : "tcp";
}
