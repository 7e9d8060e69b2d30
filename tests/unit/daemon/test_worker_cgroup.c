/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/worker_cgroup.c: which cgroup counts as delegated, the limits that are
 * written, and, with a kernel's own cgroups, that a worker's children end with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/worker_cgroup.h"

static char mounts[96], own[96], text[1024];

/* A cgroup2 at that place, with the server in that cgroup. */
static void look(const char *root, const char *point, const char *group)
{
	char content[1024];
	snprintf(mounts, sizeof mounts, "%s", path_in("mountinfo"));
	snprintf(own, sizeof own, "%s", path_in("cgroup"));
	snprintf(content, sizeof content,
		"21 1 0:20 / /proc rw - proc proc rw\n"
		"30 1 0:26 %s %s rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
		root, point);
	write_file(mounts, content, 0600);
	snprintf(content, sizeof content, "4:memory:/other\n0::%s\n", group);
	write_file(own, content, 0600);
	ckt_worker_cgroups_init(&server, mounts, own, text, sizeof text);
	unlink(mounts);
	unlink(own);
}

static bool can_mark(const char *directory_path)
{
	return setxattr(directory_path, "trusted.delegate", "1", 1, 0) == 0 ||
		setxattr(directory_path, "user.delegate", "1", 1, 0) == 0;
}

static void test_found(void)
{
	char parent[128];
	snprintf(parent, sizeof parent, "%s", path_in("unit"));
	MUST(mkdir(parent, 0755), 0);
	write_file(path_in("unit/cgroup.procs"), "", 0644);
	look("/", directory, "/unit/server");
	/* What root may write need not be root's to change. */
	IS(*server.cgroup_dir != 0, geteuid() != 0);
	if (geteuid() == 0)
		HAS(text, "the server is not in a cgroup of its own in a delegated one");
	if (geteuid() != 0 || can_mark(parent)) {
		look("/", directory, "/unit/server");
		IS(strcmp(server.cgroup_dir, parent), 0);
		HAS(text, "with limits of nothing: no controller is there");
		write_file(path_in("unit/cgroup.subtree_control"), "", 0644);
		/* A container's mount has another cgroup as its root. */
		look("/box", directory, "/box/unit/server");
		IS(strcmp(server.cgroup_dir, parent), 0);
		HAS(text, "with limits of memory pids cpu");
		unlink(path_in("unit/cgroup.subtree_control"));
	} else {
		printf("skipped marks: this file system has none\n");
	}
	/* In the delegated one itself: only where one was made for the server, which moves there. */
	look("/", directory, "/unit");
	IS(*server.cgroup_dir, 0);
	if (geteuid() != 0 || can_mark(parent)) {
		MUST(mkdir(path_in("unit/server"), 0755), 0);
		look("/", directory, "/unit");
		IS(*server.cgroup_dir, 0);
		write_file(path_in("unit/server/cgroup.procs"), "", 0644);
		look("/", directory, "/unit");
		IS(strcmp(server.cgroup_dir, parent), 0);
		TEXT(read_file(path_in("unit/server/cgroup.procs")), "0");
		unlink(path_in("unit/server/cgroup.procs"));
		rmdir(path_in("unit/server"));
	}
	/* In the host's first one, or nowhere. */
	look("/", directory, "/");
	IS(*server.cgroup_dir, 0);
	look("/", "/nowhere", "/unit/server");
	IS(*server.cgroup_dir, 0);
	ckt_worker_cgroups_init(&server, "/dev/null", "/dev/null", text, sizeof text);
	IS(*server.cgroup_dir, 0);
	HAS(text, "no version 2");
	unlink(path_in("unit/cgroup.procs"));
	rmdir(parent);
}

static void test_limits(void)
{
	const uint64_t gib = UINT64_C(1) << 30;
	unsigned gpus = server.driver.gpu_count;
	server.driver.soft = false;
	server.driver.gpu_count = 1;
	struct ckt_cgroup_limits limits = ckt_worker_cgroup_limits(&server, 0, gib);
	IS(limits.memory_bytes, 0);
	YES(limits.tasks >= 1024);
	IS(ckt_worker_cgroup_limits(&server, 8 * gib, gib).memory_bytes, 10 * gib);
	/* The soft GPU's memory is the host's. */
	server.driver.soft = true;
	IS(ckt_worker_cgroup_limits(&server, 8 * gib, gib).memory_bytes, 11 * gib);
	IS(ckt_worker_cgroup_limits(&server, 8 * gib, 0).memory_bytes,
		10 * gib + server.driver.gpus[0].memory_bytes);
	server.driver.soft = false;
	server.driver.gpu_count = gpus;
}

/* Of a worker that an earlier server left: as of a new one, but for memory that it has already. */
static void test_again(void)
{
	const struct ckt_cgroup_limits limits = {.tasks = 10, .memory_bytes = 1000};
	MUST(mkdir(path_in("w"), 0755), 0);
	snprintf(server.cgroup_dir, sizeof server.cgroup_dir, "%s", directory);
	/* A controller that is missing has no files. */
	IS(ckt_worker_cgroup_limit(&server, "w", &limits), 0);
	write_file(path_in("w/pids.max"), "", 0644);
	write_file(path_in("w/memory.max"), "", 0644);
	write_file(path_in("w/memory.current"), "1000", 0644);
	IS(ckt_worker_cgroup_limit(&server, "w", &limits), 0);
	TEXT(read_file(path_in("w/pids.max")), "10");
	TEXT(read_file(path_in("w/memory.max")), "");
	write_file(path_in("w/memory.current"), "999", 0644);
	IS(ckt_worker_cgroup_limit(&server, "w", &limits), 0);
	TEXT(read_file(path_in("w/memory.max")), "1000");
	/* Nothing of a worker that has none. */
	IS(ckt_worker_cgroup_limit(&server, "", &limits), 0);
	unlink(path_in("w/pids.max"));
	unlink(path_in("w/memory.max"));
	unlink(path_in("w/memory.current"));
	rmdir(path_in("w"));
	server.cgroup_dir[0] = 0;
}

static void test_none(void)
{
	char name[CKT_CGROUP_NAME] = "x";
	const struct ckt_cgroup_limits limits = {.tasks = 10};
	server.cgroup_dir[0] = 0;
	IS(ckt_worker_cgroup_create(&server, 1, &limits, name), 0);
	IS(*name, 0);
	IS(ckt_worker_cgroup_enter(&server, name), 0);
	ckt_worker_cgroup_remove(&server, name);
	ckt_worker_cgroup_adopt(&server, getpid(), name);
	IS(*name, 0);
	ckt_worker_cgroups_sweep(&server);
	snprintf(server.cgroup_dir, sizeof server.cgroup_dir, "/nowhere");
	IS(ckt_worker_cgroup_create(&server, 1, &limits, name), -ENOENT);
	IS(*name, 0);
	IS(ckt_worker_cgroup_enter(&server, "worker-1-1"), -1);
	server.cgroup_dir[0] = 0;
}

/* The kernel's: a cgroup of ours below the first one, removed at the end. */
static bool begin(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char file[128];
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(file, sizeof file, "%s/cgroup.procs", places[i]);
		snprintf(server.cgroup_dir, sizeof server.cgroup_dir, "%s/cricket-test-%d",
			places[i], (int)getpid());
		if (access(file, W_OK) == 0 && mkdir(server.cgroup_dir, 0755) == 0)
			return true;
	}
	server.cgroup_dir[0] = 0;
	printf("skipped kernel: no cgroup of version 2 that may be written\n");
	return false;
}

static void end(void)
{
	IS(rmdir(server.cgroup_dir), 0);
	server.cgroup_dir[0] = 0;
}

static void test_kernel(void)
{
	char name[CKT_CGROUP_NAME], found[CKT_CGROUP_NAME], path[CKT_PATH_MAX], byte;
	const struct ckt_cgroup_limits limits = {.tasks = 100, .memory_bytes = 1 << 28};
	int pipe_fds[2];
	if (!begin())
		return;
	MUST(ckt_worker_cgroup_create(&server, 7, &limits, name), 0);
	/* An empty one of that name is nobody's. */
	IS(ckt_worker_cgroup_create(&server, 7, &limits, found), 0);
	IS(strcmp(found, name), 0);
	MUST(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (ckt_worker_cgroup_enter(&server, name))
			_exit(1);
		if (fork() == 0) {
			setsid();
			if (write(pipe_fds[1], "x", 1) == 1)
				pause();
			_exit(0);
		}
		pause();
	}
	close(pipe_fds[1]);
	MUST(read(pipe_fds[0], &byte, 1), 1);
	ckt_worker_cgroup_adopt(&server, pid, found);
	IS(strcmp(found, name), 0);
	ckt_worker_cgroup_adopt(&server, getpid(), found);
	IS(*found, 0);
	/* It is not swept while it is in use. */
	snprintf(path, sizeof path, "%.200s/%s", server.cgroup_dir, name);
	ckt_worker_cgroups_sweep(&server);
	IS(access(path, F_OK), 0);
	kill(pid, SIGKILL);
	IS(waitpid(pid, NULL, 0), pid);
	ckt_worker_cgroup_remove(&server, name);
	/* The child has ended, too. */
	IS(read(pipe_fds[0], &byte, 1), 0);
	close(pipe_fds[0]);
	IS(access(path, F_OK), -1);
	/* A server that is gone left one. */
	snprintf(path, sizeof path, "%.200s/worker-999999999-1", server.cgroup_dir);
	IS(mkdir(path, 0755), 0);
	ckt_worker_cgroups_sweep(&server);
	IS(access(path, F_OK), -1);
	end();
}

UNIT_SUITE(worker_cgroup, {"found", test_found}, {"limits", test_limits}, {"none", test_none},
	{"again", test_again}, {"kernel", test_kernel})
