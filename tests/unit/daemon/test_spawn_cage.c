/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/spawn_cage.c: what a worker is deprived of, tried in children.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/spawn_user.h"

static int run(int (*child)(void))
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(child());
	MUST(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_limit(__rlimit_resource_t resource, rlim_t most)
{
	struct rlimit limit;
	return getrlimit(resource, &limit) == 0 && limit.rlim_max == limit.rlim_cur &&
		limit.rlim_max <= most;
}

static int limited(void)
{
	struct rlimit before, after;
	getrlimit(RLIMIT_FSIZE, &before);
	if (ckt_spawn_cage_limit(false))
		return 1;
	getrlimit(RLIMIT_FSIZE, &after);
	/* 2^22 is the most processes that Linux has. */
	return is_limit(RLIMIT_CORE, 1) && is_limit(RLIMIT_MSGQUEUE, 0) &&
			is_limit(RLIMIT_RTPRIO, 0) && is_limit(RLIMIT_NPROC, 1 << 21) &&
			before.rlim_cur == after.rlim_cur
		? 0
		: 2;
}

/* Of the server's user, half stays for others. */
static int limited_in_namespace(void)
{
	const struct rlimit few = {20, 20};
	if (setrlimit(RLIMIT_NPROC, &few) || ckt_spawn_cage_limit(true))
		return 1;
	return is_limit(RLIMIT_NPROC, 10) && is_limit(RLIMIT_CORE, 1) ? 0 : 2;
}

static bool status_has(const char *line)
{
	char text[4096] = "";
	FILE *file = fopen("/proc/self/status", "re");
	size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
	if (file)
		fclose(file);
	return n && strstr(text, line);
}

static int dropped(void)
{
	/* Any user other than root. */
	struct ckt_worker_user other = {.change = geteuid() == 0, .uid = 4242, .gid = 4242};
	bool was_root = other.change;
	ckt_spawn_cage_bound();
	bool bounded = !was_root || status_has("CapBnd:\t0000000000000000");
	if (ckt_spawn_become_user(&other) || ckt_spawn_cage_drop())
		return 1;
	if (!status_has("CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n") ||
		!status_has("CapEff:\t0000000000000000\n") ||
		!status_has("CapAmb:\t0000000000000000\n"))
		return 2;
	/* Root without capabilities cannot have them back, nor become another user. */
	if (setuid(0) == 0 && was_root)
		return 3;
	return bounded ? 0 : 4;
}

/* As a worker that starts processes until it may not. */
static int bombed(void)
{
	struct ckt_worker_user other = {.change = true, .uid = 4243, .gid = 4243};
	struct rlimit few = {20, 20};
	unsigned started = 0;
	if (setrlimit(RLIMIT_NPROC, &few) || ckt_spawn_cage_limit(false) ||
		ckt_spawn_become_user(&other) || ckt_spawn_cage_drop())
		return 1;
	for (; started < 100; started++) {
		pid_t pid = fork();
		if (pid == 0) {
			alarm(20);
			pause();
			_exit(0);
		}
		if (pid < 0)
			break;
	}
	int error = errno;
	signal(SIGTERM, SIG_IGN);
	kill(-1, SIGKILL); /* every process of that user but this one */
	return started && started < 20 && error == EAGAIN ? 0 : 2;
}

static void test_limit(void)
{
	IS(run(limited), 0);
	IS(run(limited_in_namespace), 0);
}

static void test_drop(void)
{
	IS(run(dropped), 0);
}

static void test_bomb(void)
{
	if (geteuid() != 0) {
		puts("skipped: only root can become a user of whose processes none runs");
		return;
	}
	IS(run(bombed), 0);
}

static void test_words(void)
{
	char text[CKT_PATH_MAX + 32];
	char *kept = server.options.cage;
	bool soft = server.driver.soft;
	snprintf(server.driver.path, sizeof server.driver.path, "/x/libcuda.so.1");
	server.options.cage = NULL;
	server.driver.soft = true;
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=soft:/x/libcuda.so.1");
	ckt_spawn_cage_describe(&server, text, sizeof text);
	HAS(text, ", no sockets of IP");
	server.own_network = true;
	ckt_spawn_cage_describe(&server, text, sizeof text);
	HAS(text, ", no network");
	server.own_network = false;
	server.driver.soft = false;
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=nvidia+network:/x/libcuda.so.1");
	ckt_spawn_cage_describe(&server, text, sizeof text);
	HAS(text, ", the host's network");
	HAS(text, "cage: no capabilities, ");
	HAS(text, "Landlock");
	server.options.cage = (char *)"auto";
	server.options.worker_network = (char *)"group";
	server.own_network = true;
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=nvidia+group:/x/libcuda.so.1");
	ckt_spawn_cage_describe(&server, text, sizeof text);
	HAS(text, ", a network of the group's own");
	server.own_network = false;
	server.options.worker_network = (char *)"off";
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=nvidia:/x/libcuda.so.1");
	server.options.worker_network = (char *)"auto";
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=nvidia+network:/x/libcuda.so.1");
	server.driver.soft = true;
	server.options.worker_network = (char *)"on";
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=soft+network:/x/libcuda.so.1");
	server.options.worker_network = NULL;
	server.options.cage = (char *)"off";
	ckt_spawn_cage_variable(&server, text, sizeof text);
	TEXT(text, "CRICKET_CAGE=off");
	ckt_spawn_cage_describe(&server, text, sizeof text);
	HAS(text, "cage: off");
	server.options.cage = kept;
	server.driver.soft = soft;
}

UNIT_SUITE(spawn_cage, {"words", test_words}, {"limit", test_limit}, {"drop", test_drop},
	{"bomb", test_bomb})
