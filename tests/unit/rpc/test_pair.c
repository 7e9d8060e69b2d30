/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/pair.c: pairs of sockets that stand for TCP. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/transport/transport.h"
#include "tests/unit/suite.h"

static void test_pair(void)
{
	struct ckt_transport t;
	pid_t pid;
	uid_t uid;
	int fds[2], others[2];
	char byte = 0;
	MUST(ckt_net_pair(fds), 0);
	IS(write(fds[0], "x", 1), 1);
	IS(read(fds[1], &byte, 1), 1);
	IS(byte, 'x');
	for (int i = 0; i < 2; i++) {
		/* The mark goes along with a copy. */
		int copy = dup(fds[i]);
		YES(ckt_net_is_pair(copy));
		NO(ckt_net_is_local(copy));
		ckt_transport_init_socket(&t, copy);
		TEXT(ckt_transport_name(&t), "tls");
		IS(ckt_transport_peer_process(&t, &pid, &uid), -EOPNOTSUPP);
		close(copy);
		close(fds[i]);
	}
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, others), 0);
	NO(ckt_net_is_pair(others[0]));
	YES(ckt_net_is_local(others[0]));
	close(others[0]);
	close(others[1]);
	NO(ckt_net_is_pair(-1));
	NO(ckt_net_is_local(-1));
}

UNIT_SUITE(pair, {"pair", test_pair})
