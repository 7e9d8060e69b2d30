/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/client_container.c: the cgroup of the process that connected. */
#include "server/daemon/peer/client_container.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

static char cgroup[64];

static const char *read_lines(const char *lines)
{
	write_file(path_in("cgroup"), lines, 0600);
	strcpy(cgroup, "before");
	ckt_client_container_read(path_in("cgroup"), cgroup, sizeof cgroup);
	return cgroup;
}

static void test_read(void)
{
	TEXT(read_lines("0::/system.slice/docker-1.scope\n"), "/system.slice/docker-1.scope");
	/* Version 1: where memory is counted, whatever comes beside. */
	TEXT(read_lines(
		     "12:cpu,cpuacct:/a\n9:hugetlb,memory:/docker/1\n1:name=systemd:/b\n0::/c\n"),
		"/docker/1");
	TEXT(read_lines("9:memory_other:/a\n0::/c\n"), "/c");
	TEXT(read_lines("nothing\n1:x\n"), "");
	TEXT(read_lines(""), "");
	/* Too long for the place: none rather than a part. */
	TEXT(read_lines(
		     "0::/0123456789012345678901234567890123456789012345678901234567890123456789\n"),
		"");
	ckt_client_container_read("/nowhere/cgroup", cgroup, sizeof cgroup);
	TEXT(cgroup, "");
}

static void test_peer(void)
{
	int ends[2];
	char own[512];
	struct ckt_auth_peer who;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	MUST(ckt_auth_peer_get(ends[0], &who), 0);
	ckt_client_container_read("/proc/self/cgroup", own, sizeof own);
	char found[512];
	ckt_client_container(ends[0], &who, found, sizeof found);
	TEXT(found, own);
	who.kind = CKT_PEER_LOOPBACK;
	ckt_client_container(ends[0], &who, found, sizeof found);
	TEXT(found, "");
	who.kind = CKT_PEER_UNIX;
	who.pid = 0;
	ckt_client_container(ends[0], &who, found, sizeof found);
	TEXT(found, "");
	close(ends[0]);
	close(ends[1]);
}

/* A process that has ended is in no container, whoever has its number next. */
static void test_gone(void)
{
	int listener, fd, ready[2];
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char message[128], found[512];
	snprintf(address.host, sizeof address.host, "%s", path_in("container"));
	MUST(ckt_net_listen(&address, 0600, &listener, message, sizeof message), 0);
	MUST(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		char text[128];
		int own;
		ckt_net_connect(&address, 1000, &own, text, sizeof text);
		_exit(0);
	}
	close(ready[1]);
	waitpid(child, NULL, 0);
	close(ready[0]);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	MUST(fd >= 0, true);
	struct ckt_auth_peer who;
	MUST(ckt_auth_peer_get(fd, &who), 0);
	/* The number of a process that lives, as if it had come again. */
	who.pid = getpid();
	ckt_client_container(fd, &who, found, sizeof found);
	int pidfd = -1;
	socklen_t size = sizeof pidfd;
	if (getsockopt(fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &size) == 0 ||
		errno != ENOPROTOOPT)
		TEXT(found, "");
	if (pidfd >= 0)
		close(pidfd);
	who.pid = child;
	ckt_client_container(fd, &who, found, sizeof found);
	TEXT(found, "");
	close(fd);
	close(listener);
	unlink(address.host);
}

UNIT_SUITE(client_container, {"read", test_read}, {"peer", test_peer}, {"gone", test_gone})
