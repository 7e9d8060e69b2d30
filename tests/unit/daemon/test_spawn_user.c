/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/spawn_user.c: who the workers run as, and that this user can run them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/spawn_user.h"

static void test_user(void)
{
	char message[512] = "";
	struct ckt_worker_user kept = server.user;
	server.options.user = (char *)"no-such-user-here";
	YES(ckt_spawn_find_user(&server, message, sizeof message) < 0);
	HAS(message, "no-such-user-here");
	if (geteuid() == 0) {
		server.options.user = (char *)"root";
		IS(ckt_spawn_find_user(&server, message, sizeof message), -EINVAL);
		HAS(message, "workers never run as root");
		server.options.user = (char *)"nobody";
		IS(ckt_spawn_find_user(&server, message, sizeof message), 0);
		YES(server.user.change && server.user.uid != 0 && server.user.group_count > 0);
		/*
		 * Who may not enter the directory, may not execute what is in it; the file is
		 * copied where it can be reached.
		 */
		snprintf(server.worker_path, sizeof server.worker_path, "%s",
			path_in("spawn-worker"));
		write_file(server.worker_path, "#!/bin/sh\nexit 0 # spawn test\n", 0755);
		snprintf(server.driver.path, sizeof server.driver.path, "%s", path_in("driver"));
		write_file(server.driver.path, "x", 0600);
		IS(ckt_spawn_check(&server, message, sizeof message), -EACCES);
		HAS(message, "user 'nobody' may not read");
		IS(strncmp(server.worker_path, "/run/cricket/libexec/", 21), 0);
		unlink(server.worker_path);
		*strrchr(server.worker_path, '/') = 0;
		rmdir(server.worker_path);
	}
	server.options.user = NULL;
	server.user = kept;
	snprintf(server.worker_path, sizeof server.worker_path, "/bin/sh");
	snprintf(server.driver.path, sizeof server.driver.path, "/bin/sh");
	IS(ckt_spawn_check(&server, message, sizeof message), 0);
	snprintf(server.driver.path, sizeof server.driver.path, "/nowhere/libcuda.so.1");
	IS(ckt_spawn_check(&server, message, sizeof message), -EACCES);
	HAS(message, "read /nowhere/libcuda.so.1");
}

static void test_become(void)
{
	struct ckt_worker_user nobody = {.change = true, .uid = 65534, .gid = 65533};
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(ckt_spawn_become_user(&nobody)                                   ? 1
				: getuid() == 65534 && getegid() == 65533 && setuid(0) ? 0
										       : 2);
	IS(waitpid(pid, &status, 0), pid);
	/* Who is not root may become nobody else. */
	IS(WEXITSTATUS(status), geteuid() == 0 ? 0 : 1);
}

static void test_reads(void)
{
	const char *const files[] = {"/bin/sh", "/nowhere"};
	YES(ckt_spawn_user_reads(&server, files, 1));
	NO(ckt_spawn_user_reads(&server, files, 2));
}

UNIT_SUITE(spawn_user, {"user", test_user}, {"become", test_become}, {"reads", test_reads})
