/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/session/space_end.c: exits at once, after its server was asked, or without one; each in a child. */
#include "server/worker/session/space_end.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/lease.h"
#include "server/worker/driver.h"
#include "server/worker/memory/lease.h"
#include "server/worker/worker.h"
#include "tests/unit/suite.h"

enum { RETURNED = 7, STATUS = 80 };

static bool stuck;

static CUresult CUDAAPI set_current(CUcontext context)
{
	return context == (CUcontext)1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult CUDAAPI synchronize(void)
{
	while (stuck)
		pause();
	return CUDA_ERROR_LAUNCH_FAILED;
}

/* channel: of leases; -1: there is no server. */
static pid_t ends(bool space, int channel)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	static struct ckt_worker worker;
	ckt_worker_lease list[CKT_DEVICES_MAX];
	ckt_worker_lease_res res;
	worker.space = space;
	ckt_space_begin((CUcontext)1);
	ckt_driver.cuCtxSetCurrent = set_current;
	ckt_driver.cuCtxSynchronize = synchronize;
	if (channel >= 0 && ckt_lease_join(channel, true, list, &res))
		_exit(1);
	ckt_space_end(&worker, STATUS);
	_exit(RETURNED);
}

static int status_of(pid_t pid)
{
	int status = 0;
	YES(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_exits(void)
{
	int pair[2];
	char byte;
	stuck = false;
	YES(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	IS(status_of(ends(true, pair[1])), RETURNED);
	stuck = true;
	IS(status_of(ends(false, pair[1])), RETURNED);
	/* Nobody was asked. */
	YES(recv(pair[0], &byte, 1, MSG_DONTWAIT) < 0);
	/* Nobody can be asked. */
	IS(status_of(ends(true, -1)), RETURNED);
	close(pair[0]);
	close(pair[1]);
}

static void test_asks(void)
{
	int pair[2];
	struct ckt_lease_message message = {0};
	stuck = true;
	YES(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	pid_t pid = ends(true, pair[1]);
	IS(recv(pair[0], &message, sizeof message, 0), sizeof message);
	IS(message.kind, CKT_LEASE_END);
	IS(message.number, STATUS);
	/* It waits for the end that its server makes. */
	IS(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	IS(status_of(pid), -SIGKILL);
	close(pair[0]);
	close(pair[1]);
}

UNIT_SUITE(space_end, {"exits", test_exits}, {"asks", test_asks})
