/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/user_namespace.c: a namespace with ids of a range, and what a host says that has none.
 * newuidmap is a script of the test's, which writes the mapping as root.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/uid_clean.h"
#include "server/daemon/session/uid_processes.h"
#include "server/daemon/session/uid_range.h"
#include "server/daemon/session/user_namespace.h"

enum { FIRST = 1804400, OTHER = 1804401, LAST = 1804402 };

static const struct ckt_uid_range range = {FIRST, LAST};
static char message[1024];

/* What newuidmap and newgidmap do. */
static void write_programs(const char *script)
{
	write_file(path_in("newuidmap"), script, 0755);
	write_file(path_in("newgidmap"), script, 0755);
}

static const char mapping[] = "#!/bin/sh\n"
			      "[ \"${0##*/}\" = newuidmap ] && kind=uid || kind=gid\n"
			      "echo $2 $3 $4 >/proc/$1/${kind}_map\n";

static int open_with(const char *script, int *ret_fd)
{
	char *path = strdup(getenv("PATH")), with[512];
	write_programs(script);
	chmod(path_in("newuidmap"), *script ? 0755 : 0600);
	snprintf(with, sizeof with, "%s:/usr/bin:/bin", directory);
	setenv("PATH", *script ? with : directory, 1);
	if (!*script)
		unlink(path_in("newuidmap"));
	message[0] = 0;
	int result = ckt_user_namespace_open(&range, ret_fd, message, sizeof message);
	setenv("PATH", path, 1);
	free(path);
	unlink(path_in("newuidmap"));
	unlink(path_in("newgidmap"));
	return result;
}

/* 0: this host has none, or we may not write its mapping. */
static int namespace(const char *test)
{
	int fd = 0;
	if (geteuid() != 0 || open_with(mapping, &fd)) {
		printf("skipped %s: %s\n", test, geteuid() ? "not root" : message);
		return 0;
	}
	return fd;
}

static int make_file(void *path)
{
	FILE *file = fopen(path, "w");
	if (!file)
		return -errno;
	/* Capabilities are there: it may give the file to another id of the range, and to no other. */
	int result = chown(path, OTHER, OTHER) ? -errno : chown(path, 1, 1) == 0 ? -EPROTO : 0;
	fclose(file);
	return result;
}

static int fail(void *data)
{
	(void)data;
	return -ENOTEMPTY;
}

static void test_run(void)
{
	struct stat status;
	int fd = namespace("run");
	if (!fd)
		return;
	chmod(directory, 0777);
	IS(ckt_user_namespace_run(fd, FIRST, make_file, path_in("file")), 0);
	IS(stat(path_in("file"), &status), 0);
	IS(status.st_uid, OTHER);
	IS(ckt_user_namespace_run(fd, FIRST, fail, NULL), -ENOTEMPTY);
	/* An id that the namespace does not have. */
	IS(ckt_user_namespace_run(fd, LAST + 1, fail, NULL), -EINVAL);
	/* Without a namespace, in this process. */
	IS(ckt_user_namespace_run(0, FIRST, fail, NULL), -ENOTEMPTY);
	unlink(path_in("file"));
	chmod(directory, 0700);
	close(fd);
}

/* A process of that id in the namespace; told when it is. */
static pid_t begin(int fd, uid_t uid)
{
	int pipe_fds[2];
	char byte;
	MUST(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (ckt_user_namespace_enter(fd, uid) || setresgid(uid, uid, uid) ||
			setresuid(uid, uid, uid) || ckt_user_namespace_drop() ||
			write(pipe_fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	MUST(read(pipe_fds[0], &byte, 1), 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return pid;
}

/* The killer has capabilities over the whole namespace when it enters it, and must not use them. */
static void test_kill(void)
{
	int fd = namespace("kill"), status;
	if (!fd)
		return;
	pid_t one = begin(fd, FIRST), other = begin(fd, OTHER);
	IS(ckt_uid_processes_kill(FIRST, fd), 0);
	IS(waitpid(one, &status, 0), one);
	YES(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	IS(waitpid(other, &status, WNOHANG), 0);
	/* Not yet: it has a process. */
	NO(ckt_uid_clean_now(OTHER, fd));
	IS(kill(other, SIGKILL), 0);
	IS(waitpid(other, &status, 0), other);
	YES(ckt_uid_clean_now(OTHER, fd));
	close(fd);
}

static int leave(void *path)
{
	/* A directory that nobody may look into, with something in it. */
	char inside[128];
	snprintf(inside, sizeof inside, "%s/file", (const char *)path);
	return mkdir(path, 0700) || mkdir(inside, 0700) || chmod(path, 0) ? -errno : 0;
}

static void test_files(void)
{
	char path[64];
	int fd = namespace("files");
	if (!fd)
		return;
	snprintf(path, sizeof path, "/dev/shm/ckt-namespace-%d", (int)getpid());
	IS(ckt_user_namespace_run(fd, FIRST, leave, path), 0);
	/* Another id's cleaning leaves it. */
	YES(ckt_uid_clean_now(OTHER, fd));
	IS(access(path, F_OK), 0);
	YES(ckt_uid_clean_now(FIRST, fd));
	YES(access(path, F_OK));
	close(fd);
}

static bool says(const char *text)
{
	if (strstr(message, text))
		return true;
	printf("it says: %s\n", message);
	return false;
}

/* With no_new_privs, which cannot be taken back. */
static void refuse_rights(void)
{
	int fd;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	_exit(open_with("#!/bin/sh\nexit 1\n", &fd) == 0 ||
		!says("no_new_privs keeps newuidmap from its rights; start the server without (systemd: NoNewPrivileges=no)"));
}

static void test_refused(void)
{
	int fd = -1, status;
	/* Where the host refuses namespaces it says that first. */
	if (open_with("#!/bin/sh\nexit 1\n", &fd) && strstr(message, "refuses user namespaces")) {
		YES(says("sysctl user.max_user_namespaces"));
		return;
	}
	YES(open_with("#!/bin/sh\necho 'newuidmap: not allowed' >&2\nexit 1\n", &fd) < 0);
	YES(says(
		"newuidmap refuses 1804400-1804402 (newuidmap: not allowed); give the ids to this user in /etc/subuid and /etc/subgid (usermod --add-subuids 1804400-1804402"));
	YES(open_with("#!/bin/sh\n[ \"${0##*/}\" = newuidmap ]\n", &fd) < 0);
	YES(says("newgidmap refuses"));
	YES(open_with("", &fd) < 0);
	YES(says("newuidmap is missing; install the package uidmap, or start the server as root"));
	/* It says that it did, and did not: as where a host gives namespaces without rights. */
	YES(open_with("#!/bin/sh\nexit 0\n", &fd) < 0);
	YES(says("refuses user namespaces"));
	IS(fd, -1);
	pid_t pid = fork();
	if (pid == 0)
		refuse_rights();
	IS(waitpid(pid, &status, 0), pid);
	IS(status, 0);
}

/* Files that are no devices do not count, nor do devices that all may use. */
static void test_groups(void)
{
	char pattern[96];
	snprintf(pattern, sizeof pattern, "%s/gpu*", directory);
	NO(ckt_user_namespace_needs_groups(pattern));
	NO(ckt_user_namespace_needs_groups("/dev/null"));
	write_file(path_in("gpu-file"), "", 0600);
	NO(ckt_user_namespace_needs_groups(pattern));
	if (mknod(path_in("gpu0"), S_IFCHR | 0600, makedev(1, 3)) == 0) {
		IS(chmod(path_in("gpu0"), 0666), 0);
		NO(ckt_user_namespace_needs_groups(pattern));
		IS(chmod(path_in("gpu0"), 0660), 0);
		YES(ckt_user_namespace_needs_groups(pattern));
		unlink(path_in("gpu0"));
	} else {
		printf("skipped groups: no device can be made here\n");
	}
	unlink(path_in("gpu-file"));
}

UNIT_SUITE(user_namespace, {"run", test_run}, {"kill", test_kill}, {"files", test_files},
	{"refused", test_refused}, {"groups", test_groups})
