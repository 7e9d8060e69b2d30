/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc_notice.h: sessions are found by their id for as long as their worker lives.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/worker/ipc/ipc.h"
#include "server/worker/ipc/ipc_notice.h"
#include "tests/unit/worker/inside.h"

static const char session[CKT_IPC_SESSION + 1] = "a0b1c2d3e4f5",
					    other[CKT_IPC_SESSION + 1] = "a0b1c2d3e4f6";

static void test_notice(void)
{
	char sockets[CKT_IPC_NOTICES_MAX][CKT_IPC_SOCKET], own[CKT_IPC_SOCKET];
	int ready[2], go[2], status;
	char byte = 0;
	ckt_ipc_socket_name(own);
	IS(ckt_ipc_notice_find(&ckt_worker, session, sockets), 0);
	MUST(pipe(ready), 0);
	MUST(pipe(go), 0);
	pid_t child = fork();
	if (!child) {
		close(go[1]);
		byte = (char)ckt_ipc_notice_leave(&ckt_worker, session);
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(go[0]);
	MUST(read(ready[0], &byte, 1), 1);
	IS(byte, 0);
	IS(ckt_ipc_notice_find(&ckt_worker, session, sockets), 1);
	IS(memcmp(sockets[0], own, sizeof own), 0);
	IS(ckt_ipc_notice_find(&ckt_worker, other, sockets), 0);
	/* Of another server's directory. */
	char before[sizeof ckt_worker.socket];
	memcpy(before, ckt_worker.socket, sizeof before);
	snprintf(ckt_worker.socket, sizeof ckt_worker.socket, "/elsewhere/worker");
	IS(ckt_ipc_notice_find(&ckt_worker, session, sockets), 0);
	memcpy(ckt_worker.socket, before, sizeof before);
	/* A second one may claim the id: both are found. */
	MUST(ckt_ipc_notice_leave(&ckt_worker, session), 0);
	IS(ckt_ipc_notice_find(&ckt_worker, session, sockets), 2);
	/*
	 * What a dead one left is none, and the next who looks around removes it:
	 * server/daemon/session/worker_leftovers.c.
	 */
	close(go[1]);
	MUST(waitpid(child, &status, 0), child);
	IS(status, 0);
	IS(ckt_ipc_notice_find(&ckt_worker, session, sockets), 1);
	close(ready[0]);
	close(ready[1]);
}

UNIT_SUITE(ipc_notice, {"notice", test_notice})
