/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of sockets that stand for a TCP connection; see net.h.
 *
 * The mark is the name of both ends, because it goes wherever the descriptor goes.  The names are
 * abstract and random.  A peer that gives its own end such a name only loses what a UNIX socket offers.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/net.h"

/* Behind the zero byte of an abstract name. */
#define PAIR_NAME "cricket-tls-"

static int name_end(int fd, uint64_t number, unsigned end)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int length = snprintf(un.sun_path + 1, sizeof un.sun_path - 1, PAIR_NAME "%016llx-%u",
		(unsigned long long)number, end);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return bind(fd, (struct sockaddr *)&un, size) ? -errno : 0;
}

int ckt_net_pair(int ret_fds[2])
{
	uint64_t number;
	int pair[2];
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -EIO;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	int result = name_end(pair[0], number, 0);
	if (!result)
		result = name_end(pair[1], number, 1);
	if (result) {
		close(pair[0]);
		close(pair[1]);
		return result;
	}
	ret_fds[0] = pair[0];
	ret_fds[1] = pair[1];
	return 0;
}

bool ckt_net_is_pair(int fd)
{
	struct sockaddr_un un = {.sun_family = AF_UNSPEC};
	socklen_t size = sizeof un;
	size_t named = offsetof(struct sockaddr_un, sun_path) + sizeof PAIR_NAME;
	return getsockname(fd, (struct sockaddr *)&un, &size) == 0 && un.sun_family == AF_UNIX &&
		size > named && !un.sun_path[0] &&
		memcmp(un.sun_path + 1, PAIR_NAME, sizeof PAIR_NAME - 1) == 0;
}

bool ckt_net_is_local(int fd)
{
	int domain = 0;
	socklen_t size = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
		!ckt_net_is_pair(fd);
}
