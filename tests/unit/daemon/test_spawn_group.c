/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/spawn_group.c: what a process of a group has, and has not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/spawn_group.h"

static int status_of(pid_t pid)
{
	int status = 0;
	YES(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The number of what is wrong. */
static int look(const void *context)
{
	const int *fds = context;
	struct stat null, stream;
	if (stat("/dev/null", &null))
		return 1;
	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &stream) || stream.st_rdev != null.st_rdev)
			return 2;
	if ((fcntl(3, F_GETFD) >= 0) != (fds[0] >= 0))
		return 3;
	for (int fd = 4; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 4;
	return getsid(0) != getpid() ? 5 : prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ? 6 : 0;
}

static void test_child(void)
{
	static struct ckt_worker_user user;
	struct stat status;
	int fd = open("/dev/null", O_RDONLY), none = -1;
	struct ckt_group_process process = {.user = &user,
		.directory = path_in("group"),
		.program = "/bin/sh",
		.fd = fd,
		.run = look,
		.context = &fd};
	IS(status_of(ckt_group_process_start(&server, &process)), 0);
	IS(stat(path_in("group"), &status), 0);
	IS(status.st_mode & 07777, 0700);
	/* It is there already; and no descriptor. */
	process.fd = -1;
	process.context = &none;
	IS(status_of(ckt_group_process_start(&server, &process)), 0);
	close(fd);
	IS(rmdir(path_in("group")), 0);
	process.directory = "/nonexistent/group";
	IS(status_of(ckt_group_process_start(&server, &process)), CKT_GROUP_PROCESS_FAILED);
}

UNIT_SUITE(spawn_group, {"child", test_child})
