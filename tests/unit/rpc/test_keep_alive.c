/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/transport/keep_alive.c: what connections are set to, and a peer that vanishes: a network of the test's
 * own whose loopback goes down.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/suite.h"

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof value;
	return getsockopt(fd, IPPROTO_TCP, name, &value, &size) ? -1 : value;
}

/* Connected over TCP; ret[0] by ckt_net_connect. */
static bool connected(int ret[2])
{
	struct ckt_address address;
	char message[256];
	int listener;
	if (ckt_address_parse("127.0.0.1:0", &address, message, sizeof message) ||
		ckt_net_listen(&address, 0, &listener, message, sizeof message))
		return false;
	bool good = !ckt_net_local_address(listener, &address) &&
		!ckt_net_connect(&address, 10000, &ret[0], message, sizeof message);
	/* The listener does not block, but the connection is there. */
	ret[1] = good ? accept(listener, NULL, NULL) : -1;
	close(listener);
	return ret[1] >= 0;
}

static void test_options(void)
{
	int fds[2];
	YES(connected(fds));
	YES(option(fds[0], TCP_KEEPIDLE) +
			option(fds[0], TCP_KEEPINTVL) * option(fds[0], TCP_KEEPCNT) <=
		30);
	/* A worker that is busy may leave the client's data unread for as long as it likes. */
	IS(option(fds[0], TCP_USER_TIMEOUT), 0);
	ckt_net_must_read(fds[0], CKT_NET_VANISHED_MS);
	IS(option(fds[0], TCP_USER_TIMEOUT), CKT_NET_VANISHED_MS);
	YES(CKT_NET_VANISHED_MS <= 30000);
	close(fds[0]);
	close(fds[1]);
	/* Nothing of it hurts a UNIX socket. */
	IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ckt_net_keep_alive(fds[0]);
	ckt_net_must_read(fds[0], 1);
	errno = EAGAIN;
	NO(ckt_net_vanished(fds[0], 0));
	IS(errno, EAGAIN);
	close(fds[0]);
	close(fds[1]);
}

/* A peer that is there but does not read owes nothing, though data wait for it. */
static void test_unread(void)
{
	char bytes[65536] = {0};
	int fds[2];
	YES(connected(fds));
	while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		continue;
	for (int i = 0; i < 50; i++) {
		usleep(20000);
		NO(ckt_net_vanished(fds[0], 500));
	}
	close(fds[0]);
	close(fds[1]);
}

static bool loopback(bool up)
{
	struct ifreq request = {
		.ifr_name = "lo", .ifr_flags = up ? IFF_UP | IFF_RUNNING | IFF_LOOPBACK : 0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool good = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
	close(fd);
	return good;
}

/* In a process of its own: 0 good, 77 not possible here, else the step that failed. */
static int vanish(void)
{
	int fds[2];
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET))
		return 77;
	if (!loopback(true) || !connected(fds))
		return 77;
	if (write(fds[0], "x", 1) != 1 || ckt_net_vanished(fds[0], 100))
		return 1;
	if (!loopback(false))
		return 77;
	ssize_t written = write(fds[0], "y", 1);
	(void)written;
	for (int i = 0; i < 3000 && !ckt_net_vanished(fds[0], 300); i++)
		usleep(20000);
	if (!ckt_net_vanished(fds[0], 300))
		return 2;
	/* And is there again. */
	loopback(true);
	for (int i = 0; i < 3000 && ckt_net_vanished(fds[0], 300); i++)
		usleep(20000);
	return ckt_net_vanished(fds[0], 300) ? 3 : 0;
}

static void test_vanish(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(vanish());
	IS(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) != 77)
		IS(status, 0);
}

UNIT_SUITE(keep_alive, {"options", test_options}, {"unread", test_unread}, {"vanish", test_vanish})
