/* SPDX-License-Identifier: Apache-2.0 */
/* What all transports have in common; see transport.h. */
#include "rpc/transport/transport.h"

#include <errno.h>

#include "rpc/net.h"

int ckt_transport_wait(struct ckt_transport *t, unsigned want, int timeout_ms)
{
	if (want & CKT_TRANSPORT_READ && ckt_transport_pending(t))
		return CKT_TRANSPORT_READ;
	struct pollfd p = ckt_transport_pollfd(t, want);
	int n = poll(&p, 1, timeout_ms);
	if (n <= 0)
		return n ? -errno : 0;
	return (p.revents & POLLIN ? CKT_TRANSPORT_READ : 0) |
		(p.revents & POLLOUT ? CKT_TRANSPORT_WRITE : 0) |
		(p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL) ? CKT_TRANSPORT_ENDED : 0);
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
