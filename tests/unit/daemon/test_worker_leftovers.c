/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/worker_leftovers.c: what lies in /dev/shm and whose worker is gone: pages
 * of events, notices of sessions that share memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/worker_leftovers.h"

static const char *name_of(const char *what)
{
	static char name[128];
	snprintf(name, sizeof name, "/cricket-shared-event-test-%d-%s", (int)getpid(), what);
	return name;
}

static int page(const char *what)
{
	return shm_open(name_of(what), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static bool is_there(const char *what)
{
	int fd = shm_open(name_of(what), O_RDWR | O_CLOEXEC, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_sweep(void)
{
	int left = page("left"), live = page("live");
	MUST(left < 0 || live < 0, 0);
	IS(flock(left, LOCK_SH), 0);
	IS(flock(live, LOCK_SH), 0);
	ckt_leftovers_sweep(&server);
	YES(is_there("left") && is_there("live"));
	/* Its worker ends. */
	close(left);
	/* A driver of NVIDIA's leaves none there. */
	ckt_leftovers_sweep(&server);
	YES(is_there("left"));
	server.driver.soft = true;
	ckt_leftovers_sweep(&server);
	NO(is_there("left"));
	YES(is_there("live"));
	/* Another user's is not ours to remove. */
	close(live);
	server.user.change = true;
	server.user.uid = geteuid() + 1;
	ckt_leftovers_sweep(&server);
	YES(is_there("live"));
	server.user.change = false;
	ckt_leftovers_sweep(&server);
	NO(is_there("live"));
	server.driver.soft = false;
}

UNIT_SUITE(leftovers, {"sweep", test_sweep})
