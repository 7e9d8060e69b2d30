/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/spawn.c: starting workers: descriptor 3, a clean environment, no
 * privileges, and failures that name the step.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/module_loading.h"
#include "server/daemon/session/spawn.h"

static const struct ckt_identity owner = {.kind = CKT_IDENTITY_USER, .uid = 4245};

static int listener(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path_in("spawn.sock"));
	unlink(address.sun_path);
	MUST(bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1), 0);
	return fd;
}

static void test_start(void)
{
	char message[512] = "", script[512];
	pid_t pid = -1;
	int fd = listener(), status = -1;
	const struct ckt_spawn_descriptors passed = {
		.listener = fd, .refused = dup(STDOUT_FILENO), .compiler = -1};
	const char *out = path_in("spawn.out");
	struct stat st;
	snprintf(script, sizeof script,
		"#!/bin/sh\n{ echo args: \"$@\"; env; echo cwd: $(pwd); ulimit -s; ulimit -c; test -S /dev/fd/3 && echo socket; test -e /dev/fd/4 && echo fourth; test -e /dev/fd/5 || echo no fifth;\n"
		"grep -E 'NoNewPrivs|Cap' /proc/self/status; ls /proc/self/fd | wc -l; } > %s 2>&1\n",
		out);
	snprintf(server.worker_path, sizeof server.worker_path, "%s", path_in("worker.sh"));
	write_file(server.worker_path, script, 0755);
	getrlimit(RLIMIT_NOFILE, &server.descriptors);
	setenv("CUDA_VISIBLE_DEVICES", "7", 1);
	setenv("CUDA_CACHE_PATH", "/proc/x", 1);
	setenv("CUDA_CACHE_MAXSIZE", "9", 1);
	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	setenv("SECRET", "x", 1);
	server.options.log_level = (char *)"info";
	server.driver.gpu_count = 3;
	MUST(ckt_spawn_worker(
		     &server, &owner, &server.user, &passed, &pid, message, sizeof message),
		0);
	IS(waitpid(pid, &status, 0), pid);
	IS(status, 0);
	const char *text = read_file(out);
	HAS(text, "args: --log-level info\n");
	HAS(text, "CUDA_VISIBLE_DEVICES=7\n");
	/* That of all owners is not passed; this one cannot be made. */
	NO(strstr(text, "CUDA_CACHE_PATH"));
	HAS(text, "CUDA_CACHE_MAXSIZE=9\n");
	HAS(text, "CUDA_MODULE_LOADING=" CKT_MODULE_LOADING_DEFAULT "\n");
	HAS(text, "GLIBC_TUNABLES=");
	HAS(text, "CRICKET_GPUS=3\n");
	HAS(text, "cwd: /\n8192\n0\n");
	HAS(text, "socket\nfourth\nno fifth\n");
	HAS(text, "NoNewPrivs:\t1");
	HAS(text,
		"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
	HAS(text, "CapAmb:\t0000000000000000");
	NO(strstr(text, "SECRET") || strstr(text, "CUDA_LAUNCH_BLOCKING") ||
		strstr(text, "HOME=/"));
	IS(stat(out, &st), 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_CACHE_PATH");
	unsetenv("CUDA_CACHE_MAXSIZE");
	unsetenv("CUDA_LAUNCH_BLOCKING");
	unsetenv("SECRET");
	close(passed.refused);
	close(fd);
}

static void test_failures(void)
{
	char message[512] = "";
	pid_t pid = -1;
	int fd = listener();
	const struct ckt_spawn_descriptors passed = {.listener = fd, .refused = -1, .compiler = -1},
					   wrong = {.listener = 999, .refused = -1, .compiler = -1};
	snprintf(server.worker_path, sizeof server.worker_path, "%s", path_in("no-worker"));
	IS(ckt_spawn_worker(&server, &owner, &server.user, &passed, &pid, message, sizeof message),
		-ENOENT);
	HAS(message, "exec of ");
	HAS(message, "no-worker");
	write_file(server.worker_path, "#!/bin/sh\n", 0644);
	IS(ckt_spawn_worker(&server, &owner, &server.user, &passed, &pid, message, sizeof message),
		-EACCES);
	IS(ckt_spawn_worker(&server, &owner, &server.user, &wrong, &pid, message, sizeof message),
		-EBADF);
	HAS(message, "descriptors");
	IS(pid, -1);
	IS(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	close(fd);
}

UNIT_SUITE(spawn, {"start", test_start}, {"failures", test_failures})
