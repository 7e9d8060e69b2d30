/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/client/process.c: processes of clients: what /proc tells of them, and the files through which
 * they are told to be quiet.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "ctl/client/process.h"

static char message[512];

/* A sleep with this environment variable. */
static pid_t sleeper(const char *variable)
{
	char *argv[] = {(char *)"sleep", (char *)"100", NULL}, *env[] = {(char *)variable, NULL};
	int ends[2];
	IS(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		execve("/bin/sleep", argv, env);
		_exit(127);
	}
	close(ends[1]);
	char byte;
	IS(read(ends[0], &byte, 1), 0); /* it has begun */
	close(ends[0]);
	/* Its descriptors close before its environment is there. */
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	for (bool there = false; !there; usleep(100)) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		there = fd < 0 || read(fd, &byte, 1) == 1;
		close(fd);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_look(void)
{
	char variable[200], program[256] = "", *base;
	static const struct {
		const char *variable, *program;
		int result;
		const char *words;
	} cases[] = {
		{"HOME=/home/x", NULL, 0, ""},
		{"CRICKET_STATE_DIR=/state", NULL, 0, ""},
		{"HOME=/home/x", "other", -ESRCH, "is not other"},
		{"OTHER=1", NULL, -ENOENT, "neither HOME nor CRICKET_STATE_DIR"},
		{"CRICKET_STATE_DIR=relative", NULL, -EINVAL, "not an absolute path"},
		{"CRICKET_STATE_DIR=", NULL, -ENOENT, "neither HOME"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_process process;
		snprintf(variable, sizeof variable, "%s", cases[i].variable);
		pid_t pid = sleeper(variable);
		char link[64];
		snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
		ssize_t n = readlink(link, program, sizeof program - 1);
		program[n > 0 ? n : 0] = 0;
		/* sleep, or what it is a link to */
		base = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
		IS(ckt_ctl_process_look(pid, cases[i].program ? cases[i].program : base, &process,
			   message, sizeof message),
			cases[i].result);
		if (cases[i].result)
			HAS(message, cases[i].words);
		else
			TEXT(process.state_dir, i ? "/state" : "/home/x/.local/state/cricket");
		if (!cases[i].result)
			IS(process.uid, geteuid());
		end(pid);
		IS(ckt_ctl_process_look(pid, base, &process, message, sizeof message), -ESRCH);
		HAS(message, "does not exist here");
	}
}

static void test_tree(void)
{
	static pid_t ids[CKT_PROCESS_TREE_MAX];
	char text[128];
	pid_t pid = sleeper("HOME=/x");
	YES(ckt_ctl_process_is_below(pid, getpid()));
	YES(ckt_ctl_process_is_below(pid, pid));
	NO(ckt_ctl_process_is_below(getpid(), pid));
	NO(ckt_ctl_process_is_below(0, pid));
	unsigned count = ckt_ctl_process_tree(pid, ids);
	IS(count, 1);
	IS(ids[0], pid);
	count = ckt_ctl_process_tree(getpid(), ids);
	YES(count >= 2);
	YES(ckt_ctl_process_describe(pid, text, sizeof text));
	NO(ckt_ctl_process_is_over(pid));
	kill(pid, SIGKILL);
	for (int i = 0; i < 60000 && !ckt_ctl_process_is_over(pid); i++)
		usleep(1000);
	YES(ckt_ctl_process_is_over(pid));
	YES(ckt_ctl_process_describe(pid, text, sizeof text));
	HAS(text, "has ended, but process");
	waitpid(pid, NULL, 0);
	NO(ckt_ctl_process_is_over(pid));
	NO(ckt_ctl_process_describe(pid, text, sizeof text));
}

static void test_hold(void)
{
	struct ckt_process process = {.pid = 4321, .uid = geteuid(), .gid = getegid()};
	char expected[32];
	snprintf(process.state_dir, sizeof process.state_dir, "%s", path_in("hold/a"));
	write_file(path_in("early"), "4321\n");
	IS(ckt_ctl_hold_make(&process, "0123456789ab"), 0);
	snprintf(expected, sizeof expected, "%d\n", (int)getpid());
	TEXT(read_file(path_in("hold/a/0123456789ab.hold")), expected);
	IS(ckt_ctl_hold_wait_quiet(&process, "0123456789ab", 20), -ETIMEDOUT);
	write_file(path_in("hold/a/0123456789ab.quiet"), "999\n"); /* another process's word */
	IS(ckt_ctl_hold_wait_quiet(&process, "0123456789ab", 20), -ETIMEDOUT);
	write_file(path_in("hold/a/0123456789ab.quiet"), "4321\n");
	IS(ckt_ctl_hold_wait_quiet(&process, "0123456789ab", 20), 0);
	/* A link says nothing. */
	unlink(path_in("hold/a/0123456789ab.quiet"));
	IS(symlink(path_in("early"), path_in("hold/a/0123456789ab.quiet")), 0);
	IS(ckt_ctl_hold_wait_quiet(&process, "0123456789ab", 20), -ETIMEDOUT);
	/* Made anew, what was quiet before does not count. */
	unlink(path_in("hold/a/0123456789ab.quiet"));
	write_file(path_in("hold/a/0123456789ab.quiet"), "4321\n");
	IS(ckt_ctl_hold_make(&process, "0123456789ab"), 0);
	IS(ckt_ctl_hold_wait_quiet(&process, "0123456789ab", 20), -ETIMEDOUT);
	ckt_ctl_hold_remove(&process, "0123456789ab");
	NO(exists(path_in("hold/a/0123456789ab.hold")));
	ckt_ctl_hold_remove(&process, "0123456789ab");
	IS(ckt_ctl_hold_redirect(&process, "0123456789ab", "there:7350", 12), 0);
	TEXT(read_file(path_in("hold/a/0123456789ab")), "there:7350\ngeneration 12\n");
	write_file(path_in("plainfile"), "x");
	snprintf(process.state_dir, sizeof process.state_dir, "%s", path_in("plainfile/x"));
	IS(ckt_ctl_hold_make(&process, "0123456789ab"), -ENOTDIR);
}

UNIT_SUITE(process, {"look", test_look}, {"tree", test_tree}, {"hold", test_hold})
