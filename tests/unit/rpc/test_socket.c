/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/socket.c: TCP and UNIX sockets as a transport. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/transport/transport.h"
#include "tests/unit/suite.h"

static struct ckt_transport ends[2];

static void open_unix(void)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		ckt_transport_init_socket(&ends[i], fds[i]);
}

static void close_both(void)
{
	ckt_transport_close(&ends[0]);
	ckt_transport_close(&ends[1]);
}

static void test_bytes(void)
{
	char data[8];
	open_unix();
	/* Blocking sockets, yet nothing waits. */
	IS(ckt_transport_read(&ends[0], data, sizeof data), -EAGAIN);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, 0), 0);
	IS(ckt_transport_write(&ends[1], "abc", 3), 3);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_READ);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 3);
	IS(memcmp(data, "abc", 3), 0);
	static char large[1 << 20];
	ssize_t n = ckt_transport_write(&ends[1], large, sizeof large), all = n;
	while (n > 0 && (n = ckt_transport_write(&ends[1], large, sizeof large)) > 0)
		all += n;
	YES(all > 0);
	IS(n, -EAGAIN);
	close_both();
}

static void test_end_of_stream(void)
{
	char data[8];
	open_unix();
	ckt_transport_write(&ends[1], "x", 1);
	ckt_transport_shutdown(&ends[1]);
	YES(ckt_transport_wait(&ends[0], CKT_TRANSPORT_ENDED, 0) & CKT_TRANSPORT_ENDED);
	/* What came before the end is still there. */
	IS(ckt_transport_read(&ends[0], data, sizeof data), 1);
	IS(ckt_transport_read(&ends[0], data, sizeof data), -ECONNRESET);
	IS(ckt_transport_write(&ends[0], "x", 1), -EPIPE);
	NO(ckt_transport_vanished(&ends[0], 0));
	close_both();
	IS(ckt_transport_read(&ends[0], data, sizeof data), -EBADF);
}

static void test_finish(void)
{
	char data[8];
	open_unix();
	IS(ckt_transport_write(&ends[0], "x", 1), 1);
	ckt_transport_finish(&ends[0]);
	IS(ckt_transport_read(&ends[1], data, sizeof data), 1);
	IS(ckt_transport_read(&ends[1], data, sizeof data), -ECONNRESET);
	/* The other direction goes on. */
	IS(ckt_transport_write(&ends[1], "y", 1), 1);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 1);
	IS(ckt_transport_write(&ends[0], "x", 1), -EPIPE);
	close_both();
}

static void test_descriptor(void)
{
	char data[8];
	struct stat sent, got;
	int pipe_fds[2], fd = -1;
	struct iovec parts[2] = {{(void *)"ab", 2}, {(void *)"cd", 2}};
	open_unix();
	MUST(pipe(pipe_fds), 0);
	IS(ckt_transport_write_fd(&ends[0], parts, 2, pipe_fds[0]), 4);
	IS(ckt_transport_read_fd(&ends[1], data, sizeof data, &fd), 4);
	IS(memcmp(data, "abcd", 4), 0);
	MUST(fstat(pipe_fds[0], &sent), 0);
	MUST(fstat(fd, &got), 0);
	IS(got.st_ino, sent.st_ino);
	YES(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	IS(ckt_transport_read_fd(&ends[1], data, sizeof data, &fd), -EAGAIN);
	IS(fd, -1);
	/* A plain read drops one: none is left in the process. */
	int next = dup(0);
	close(next);
	IS(ckt_transport_write_fd(&ends[0], parts, 1, pipe_fds[0]), 2);
	IS(ckt_transport_read(&ends[1], data, sizeof data), 2);
	IS(dup(0), next);
	close(next);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close_both();
}

static void test_peer(void)
{
	pid_t pid = 0;
	uid_t uid = 12345;
	open_unix();
	IS(ckt_transport_peer_process(&ends[0], &pid, &uid), 0);
	IS(pid, getpid());
	IS(uid, getuid());
	YES(ckt_net_is_local(ends[0].fd));
	close_both();
	struct ckt_address address = {.type = CKT_ADDRESS_TCP, .host = "127.0.0.1"};
	char message[256];
	int listener, fd;
	MUST(ckt_net_listen(&address, 0, &listener, message, sizeof message), 0);
	MUST(ckt_net_local_address(listener, &address), 0);
	MUST(ckt_net_connect(&address, 60000, &fd, message, sizeof message), 0);
	ckt_transport_init_socket(&ends[0], fd);
	IS(ckt_transport_peer_process(&ends[0], &pid, &uid), -EOPNOTSUPP);
	NO(ckt_net_is_local(fd));
	/* Until its peer's kernel acknowledges it, which it does at once here. */
	IS(ckt_transport_write(&ends[0], "x", 1), 1);
	for (int i = 0; i < 10000 && ckt_transport_undelivered(&ends[0]); i++)
		usleep(1000);
	NO(ckt_transport_undelivered(&ends[0]));
	close(listener);
	ckt_transport_close(&ends[0]);
}

UNIT_SUITE(socket, {"bytes", test_bytes}, {"end of stream", test_end_of_stream},
	{"finish", test_finish}, {"descriptor", test_descriptor}, {"peer", test_peer})
