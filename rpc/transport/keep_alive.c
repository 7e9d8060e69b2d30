/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that vanish without a word: their host lost power, or the network between went away.
 *
 * An idle connection is probed by the kernel.  One with data under way is not; there the kernel
 * would send again for a quarter of an hour.  TCP_USER_TIMEOUT ends it earlier, but also ends the
 * connection to a peer that is there and has not read for that long: a worker behind a long kernel,
 * a program that was stopped.  So only connections whose peer must read in any case have it, and a
 * session's ends look for themselves.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "rpc/net.h"

enum { IDLE_S = 10, INTERVAL_S = 4, PROBES = 4 };
_Static_assert((IDLE_S + INTERVAL_S * PROBES) * 1000 == CKT_NET_VANISHED_MS,
	"both ways to notice take as long");

void ckt_net_keep_alive(int fd)
{
	int one = 1, idle = IDLE_S, interval = INTERVAL_S, probes = PROBES;
	/* A UNIX socket has none of these options and needs none: the peer's kernel is ours. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

void ckt_net_must_read(int fd, unsigned within_ms)
{
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &within_ms, sizeof within_ms);
}

/* Milliseconds since the last sign of a peer that owes one; 0 if it owes none. */
static unsigned owed_ms(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof info;
	/*
	 * Called between a system call and the check of its error, so errno is kept; on a UNIX
	 * socket this fails with an error of its own.
	 */
	int saved_errno = errno, failed = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	errno = saved_errno;
	if (failed)
		return 0;
	/*
	 * A peer that does not read answers each window probe at once; but two probes may be
	 * minutes apart.
	 */
	return info.tcpi_unacked || info.tcpi_probes >= 2 ? info.tcpi_last_ack_recv : 0;
}

bool ckt_net_vanished(int fd, unsigned after_ms)
{
	return owed_ms(fd) > after_ms;
}
