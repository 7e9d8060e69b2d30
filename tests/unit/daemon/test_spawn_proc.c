/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/spawn_proc.c: what a worker sees of /proc. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/spawn_proc.h"

enum { OTHER = 4247 };

static int read_text(struct ckt_spawn_proc *proc, const char *text)
{
	const char *path = path_in("mountinfo");
	write_file(path, text, 0600);
	int result = ckt_spawn_proc_read(proc, path);
	unlink(path);
	return result;
}

static void test_read(void)
{
	static struct ckt_spawn_proc proc;
	IS(read_text(&proc,
		   "22 27 0:21 / / rw,relatime - ext4 /dev/vda rw\n"
		   "23 22 0:22 / /proc rw,relatime shared:5 - proc proc rw\n"
		   "24 23 0:23 / /proc/driver/nvidia ro master:1 shared:6 - tmpfs tmpfs rw\n"
		   "25 24 0:24 / /proc/driver/nvidia/gpus/0000:01:00.0 ro - proc proc rw\n"
		   "26 23 0:25 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n"
		   "27 23 0:26 / /proc/driver/nvidia-caps rw - tmpfs tmpfs rw\n"
		   "28 22 0:27 / /process rw - tmpfs tmpfs rw\n"
		   "29 23 0:28 /null /proc/kcore rw - tmpfs tmpfs rw\n"
		   "malformed\n"),
		0);
	IS(proc.kept_count, 3);
	YES(strcmp(proc.kept[0], "/proc/driver/nvidia") == 0);
	YES(strcmp(proc.kept[1], "/proc/driver/nvidia-caps") == 0);
	YES(strcmp(proc.kept[2], "/proc/kcore") == 0);
	IS(ckt_spawn_proc_read(&proc, path_in("none")), -ENOENT);
	/* What cannot be given back keeps the host's /proc. */
	IS(read_text(&proc, "1 2 0:1 / /proc/a\\040b rw - tmpfs tmpfs rw\n"), -ENAMETOOLONG);
	char text[8192] = "";
	for (int i = 0; i <= CKT_SPAWN_PROC_KEPT_MAX; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text),
			"1 2 0:1 / /proc/%d rw - tmpfs tmpfs rw\n", i);
	IS(read_text(&proc, text), -E2BIG);
	snprintf(text, sizeof text, "1 2 0:1 / /proc/%0200d rw - tmpfs tmpfs rw\n", 1);
	IS(read_text(&proc, text), -ENAMETOOLONG);
}

/* As another user: not the parent, but itself and what is mounted below /proc. */
static int look(pid_t parent)
{
	char path[64], line[8];
	if (setgid(OTHER) || setuid(OTHER))
		return 10;
	snprintf(path, sizeof path, "/proc/%d/net/unix", (int)parent);
	if (access(path, R_OK) == 0 || errno != ENOENT)
		return 11;
	if (access("/proc/self/net/unix", R_OK) || access("/proc/self/task", R_OK))
		return 12;
	int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof line) : -1;
	return n == 6 && memcmp(line, "masked", 6) == 0 ? 0 : 13;
}

static int enter(const struct ckt_spawn_proc *proc, pid_t parent)
{
	return ckt_spawn_proc_enter(proc) ? 2 : look(parent);
}

/* A host's mount below /proc, here a mask, is in the new one as well. */
static int in_namespace(void)
{
	static struct ckt_spawn_proc proc;
	const char *mask = path_in("mask");
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount(mask, "/proc/version", NULL, MS_BIND, NULL))
		return 77;
	ckt_spawn_proc_probe(&proc, true);
	return proc.hidden ? enter(&proc, getppid()) : 77;
}

static void test_enter(void)
{
	struct ckt_spawn_proc proc;
	int status = -1;
	ckt_spawn_proc_probe(&proc, false);
	NO(proc.hidden);
	IS(ckt_spawn_proc_enter(&proc), 0);
	write_file(path_in("mask"), "masked", 0644);
	pid_t pid = fork();
	if (pid == 0)
		_exit(in_namespace());
	MUST(waitpid(pid, &status, 0), pid);
	unlink(path_in("mask"));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("skipped enter: this host refuses a procfs of one's own\n");
	else
		IS(status, 0);
}

UNIT_SUITE(spawn_proc, {"read", test_read}, {"enter", test_enter})
