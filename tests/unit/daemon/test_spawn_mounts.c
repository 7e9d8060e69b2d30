/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/spawn_mounts.c: what a worker has of /dev/shm, /tmp and /var/tmp. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/spawn_user.h"

enum { WORKERS = 4246 };

static int run(int (*child)(void))
{
	struct ckt_spawn_mounts mounts;
	int status = -1;
	ckt_spawn_mounts_init(&mounts, &server, &server.user, false, "");
	pid_t pid = fork();
	if (pid == 0)
		_exit(ckt_spawn_mounts_enter(&mounts)                 ? 90
				: ckt_spawn_become_user(&server.user) ? 91
								      : child());
	ckt_spawn_mounts_fini(&mounts);
	MUST(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool makes(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int leave(void)
{
	return makes("/tmp/ckt-private") && makes("/var/tmp/ckt-private") &&
			makes("/dev/shm/ckt-private")
		? 0
		: 1;
}

/* Another process that is in no group. */
static int find(void)
{
	if (access("/tmp/ckt-private", F_OK) == 0 || access("/var/tmp/ckt-private", F_OK) == 0 ||
		access("/dev/shm/ckt-private", F_OK) == 0)
		return 1;
	if (access(server.worker_path, R_OK))
		return 2;
	/* Nothing else of the host's /tmp is there. */
	if (access(path_in("beside"), F_OK) == 0)
		return 3;
	return 0;
}

/* More than the private /tmp holds. */
static int fill(void)
{
	static char block[1 << 20];
	int fd = open("/tmp/big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < 1024; i++)
		if (write(fd, block, sizeof block) != sizeof block)
			return errno == ENOSPC || i > 200 ? 0 : 1;
	return 2;
}

static int mount_more(void)
{
	if (mount("x", "/tmp", "tmpfs", 0, NULL) == 0 || umount("/tmp") == 0 ||
		umount("/dev/shm") == 0)
		return 1;
	return setuid(0) ? 0 : 2;
}

/* What lies beside the server's socket; what a worker needs there is there. */
static int find_socket(void)
{
	if (access(server.socket_path, F_OK) == 0)
		return 1;
	return access(server.driver.path, R_OK) ? 2 : 0;
}

static bool begin(const char *test)
{
	server.user =
		(struct ckt_worker_user){.change = geteuid() == 0, .uid = WORKERS, .gid = WORKERS};
	server.options.cage = (char *)"on";
	mkdir(path_in("bin"), 0755);
	snprintf(server.worker_path, sizeof server.worker_path, "%s", path_in("bin/worker"));
	write_file(server.worker_path, "x", 0755);
	write_file(path_in("beside"), "x", 0644);
	chmod(directory, 0755);
	chmod(path_in("bin"), 0755);
	ckt_spawn_mounts_probe(&server);
	if (!server.mounts)
		printf("skipped %s: %s\n", test,
			geteuid() ? "not root" : "this host refuses mount namespaces");
	return server.mounts;
}

static void end(void)
{
	unlink(server.worker_path);
	rmdir(path_in("bin"));
	unlink(path_in("beside"));
	chmod(directory, 0700);
	server.user.change = server.mounts = false;
	server.options.cage = NULL;
}

static void test_private(void)
{
	if (begin("private")) {
		IS(run(leave), 0);
		IS(run(find), 0);
		IS(run(fill), 0);
		IS(run(mount_more), 0);
		NO(access("/tmp/ckt-private", F_OK) == 0);
		NO(access("/dev/shm/ckt-private", F_OK) == 0);
	}
	end();
}

/* In a directory that is not below /tmp. */
static void test_socket(void)
{
	char command[128];
	if (begin("socket")) {
		IS(mkdir("/run/ckt-4246", 0755), 0);
		IS(mkdir("/run/ckt-4246/soft", 0755), 0);
		snprintf(server.socket_path, sizeof server.socket_path, "/run/ckt-4246/socket");
		snprintf(server.driver.path, sizeof server.driver.path,
			"/run/ckt-4246/soft/libcuda.so.1");
		write_file(server.socket_path, "x", 0666);
		write_file(server.driver.path, "x", 0644);
		IS(run(find_socket), 0);
		/* A directory of the root's own stays. */
		snprintf(server.socket_path, sizeof server.socket_path, "/run/ckt-socket");
		IS(run(find_socket), 0);
		snprintf(command, sizeof command, "rm -rf /run/ckt-4246");
		IS(system(command), 0);
		server.socket_path[0] = server.driver.path[0] = 0;
	}
	end();
}

/* What the environment names stays the host's. */
static void test_kept(void)
{
	struct ckt_spawn_mounts mounts;
	begin("kept");
	server.mounts = server.user.change = true;
	bool found = false;
	/* Builds for coverage and for a sanitizer have their own. */
	char counters[256], options[1024];
	snprintf(counters, sizeof counters, "%s",
		getenv("GCOV_PREFIX") ? getenv("GCOV_PREFIX") : "");
	snprintf(options, sizeof options, "%s",
		getenv("UBSAN_OPTIONS") ? getenv("UBSAN_OPTIONS") : "");
	setenv("GCOV_PREFIX", "/tmp/ckt-counters", 1);
	setenv("UBSAN_OPTIONS", "log_path=/var/tmp/ckt-reports/report", 1);
	snprintf(server.driver.path, sizeof server.driver.path, "/usr/lib/libcuda.so.1");
	server.user.uid = geteuid();
	server.user.gid = getegid();
	ckt_spawn_mounts_init(&mounts, &server, &server.user, true, "");
	for (unsigned i = 0; i < mounts.kept_count; i++)
		found |= strcmp(mounts.kept[i], "/tmp/ckt-counters") == 0;
	YES(found);
	NO(mounts.shared[0] || mounts.shared[1]);
	ckt_spawn_mounts_fini(&mounts);
	setenv("GCOV_PREFIX", "/tmp/", 1);
	ckt_spawn_mounts_init(&mounts, &server, &server.user, true, "");
	YES(mounts.shared[0]);
	NO(mounts.shared[1]);
	ckt_spawn_mounts_fini(&mounts);
	if (!*counters || setenv("GCOV_PREFIX", counters, 1))
		unsetenv("GCOV_PREFIX");
	if (!*options || setenv("UBSAN_OPTIONS", options, 1))
		unsetenv("UBSAN_OPTIONS");
	server.mounts = false;
	ckt_spawn_mounts_init(&mounts, &server, &server.user, true, "");
	NO(mounts.wanted);
	IS(ckt_spawn_mounts_enter(&mounts), 0);
	end();
}

UNIT_SUITE(spawn_mounts, {"private", test_private}, {"socket", test_socket}, {"kept", test_kept})
