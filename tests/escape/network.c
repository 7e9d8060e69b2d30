/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to open the network: each got in only if somebody outside of the own network is reached or
 * seen.  escape.py and another owner's worker are outside.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/escape/agent.h"
#include "tests/escape/attempts.h"

enum { LOOK_MS = 20, LOOKS = 500, ECHO_MS = 1000, LOOPBACK_INDEX = 1 };

static int connect_tcp(void)
{
	return ckt_escape_call((int)ckt_escape_told_number("port"));
}

int ckt_escape_call(int port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = connect(fd, (const struct sockaddr *)&address, sizeof address) ? -errno : 0;
	close(fd);
	return result;
}

/* ---- Whether others reach a socket of this worker */

static bool is_called(int fd, int wait_ms)
{
	struct pollfd called = {.fd = fd, .events = POLLIN};
	return poll(&called, 1, wait_ms) > 0 && called.revents & POLLIN;
}

/* Says which port it is, and waits until those outside say that they have tried. */
static int listen_tcp(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;
	bool called = false, tried = false;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), result = 0;
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16) ||
		getsockname(fd, (struct sockaddr *)&address, &size))
		result = -errno;
	if (!result)
		ckt_warning("escape: listening at %d", (int)ntohs(address.sin_port));
	for (int i = 0; i < LOOKS && !result && !called && !tried; i++) {
		tried = ckt_escape_is_there("escape-knocked");
		called = is_called(fd, LOOK_MS);
	}
	close(fd);
	/* Nobody tried: the test fails. */
	return result ? result : called ? 0 : tried ? -EHOSTUNREACH : -ETIMEDOUT;
}

/* ---- Whether this worker reaches others */

/* Who hears it answers. */
static int send_to(int fd, const char *host)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)ckt_escape_told_number("udp"))};
	char answer[16];
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return -EINVAL;
	if (sendto(fd, "knock", 5, 0, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	if (!is_called(fd, ECHO_MS))
		return -EHOSTUNREACH;
	return recv(fd, answer, sizeof answer, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int send_udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = send_to(fd, "127.0.0.1");
	if (result)
		result = send_to(fd, ckt_escape_told("host"));
	close(fd);
	return result;
}

/* ---- What netlink shows */

static bool has_attribute(const struct rtattr *attribute, int left, unsigned short type, int not )
{
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		int value = 0;
		if (RTA_PAYLOAD(attribute) >= sizeof value)
			memcpy(&value, RTA_DATA(attribute), sizeof value);
		if (attribute->rta_type == type && value != not )
			return true;
	}
	return false;
}

/*
 * More than the own loopback.  A new network may also have tunnels that the kernel makes in each one:
 * they are down, and lead nowhere.
 */
static bool is_foreign(const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);
	const struct ifaddrmsg *address = NLMSG_DATA(message);
	const struct rtmsg *route = NLMSG_DATA(message);
	const struct ndmsg *neighbour = NLMSG_DATA(message);
	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
		return (!(link->ifi_flags & IFF_LOOPBACK) && link->ifi_flags & IFF_UP) ||
			has_attribute(
				IFLA_RTA(link), (int)IFLA_PAYLOAD(message), IFLA_LINK_NETNSID, -1);
	case RTM_NEWADDR:
		return address->ifa_index != LOOPBACK_INDEX;
	case RTM_NEWROUTE:
		return has_attribute(RTM_RTA(route), (int)RTM_PAYLOAD(message), RTA_OIF,
			       LOOPBACK_INDEX) ||
			has_attribute(RTM_RTA(route), (int)RTM_PAYLOAD(message), RTA_MULTIPATH, -1);
	case RTM_NEWNEIGH:
		return neighbour->ndm_ifindex != LOOPBACK_INDEX;
	default:
		return false;
	}
}

/* 1: it shows something foreign.  0 or -errno. */
static int look_at(int fd, unsigned short type)
{
	static char answer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct {
		struct nlmsghdr header;
		struct rtgenmsg what;
	} request = {.header = {.nlmsg_len = sizeof request,
			     .nlmsg_type = type,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int foreign = 0;
	if (send(fd, &request, sizeof request, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(fd, answer, sizeof answer, 0);
		if (n <= 0)
			return n ? -errno : -EPIPE;
		unsigned left = (unsigned)n;
		for (const struct nlmsghdr *m = (const void *)answer; NLMSG_OK(m, left);
			m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
				return foreign;
			foreign |= is_foreign(m);
		}
	}
}

/* A host may have nothing but a loopback: the host's network is got in by itself. */
static bool is_hosts_network(void)
{
	char own[64];
	ssize_t n = readlink("/proc/self/ns/net", own, sizeof own - 1);
	own[n > 0 ? n : 0] = 0;
	return n > 0 && strcmp(own, ckt_escape_told("host-network")) == 0;
}

static int open_netlink(void)
{
	static const unsigned short dumps[] = {
		RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, RTM_GETNEIGH};
	const struct timeval limit = {.tv_sec = 2};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), result = 0;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	for (size_t i = 0; i < sizeof dumps / sizeof *dumps && result <= 0; i++) {
		int seen = look_at(fd, dumps[i]);
		result = seen ? seen : result;
	}
	close(fd);
	return result > 0 || is_hosts_network() ? 0 : result ? result : -EHOSTUNREACH;
}

const struct ckt_escape_attempt ckt_escape_network[] = {
	{"inet-connect", connect_tcp},
	{"inet-bind", listen_tcp},
	{"inet-udp", send_udp},
	{"netlink", open_netlink},
	{NULL, NULL},
};
