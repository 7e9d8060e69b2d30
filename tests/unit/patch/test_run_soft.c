/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/run/run_soft.c: a program beside its private server.  The server is this program again,
 * which only listens; what run.c does stands here for itself (client/run/run.h).
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/run/run.h"
#include "tests/unit/suite.h"

static bool has_server;

bool ckt_run_find_program(const char *name, const char *built, char ret_path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
	ret_path[n > 0 ? n : 0] = 0;
	/* Of test_run_place.c. */
	const char *ctl = getenv("TEST_CRICKETCTL");
	if (strcmp(name, "cricketctl") == 0)
		return ctl && snprintf(ret_path, PATH_MAX, "%s", ctl) > 0;
	return has_server && strcmp(name, "cricket-server") == 0;
}

bool ckt_run_prepare_environment(const struct ckt_run_options *options, const char *address)
{
	return setenv("REMOTE_GPU_ADDRESS", address, 1) == 0;
}

int ckt_run_exec(char **command)
{
	execvp(command[0], command);
	return 127;
}

void ckt_run_say(const char *format, ...)
{
}

/* As the server: "--driver soft --socket PATH ...". */
int unit_setup(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (argc < 5 || strcmp(argv[1], "--driver") != 0)
		return 0;
	if (getenv("TEST_SERVER_FAILS") || getenv("REMOTE_GPU_ADDRESS"))
		_exit(1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[4]);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 8))
		_exit(1);
	for (;;)
		pause();
}

static int run(const char *script)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		char *command[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
		char *missing[] = {(char *)"/nonexistent", NULL};
		setenv("REMOTE_GPU_ADDRESS", "the.users:1", 1);
		_exit(ckt_run_soft(&(struct ckt_run_options){
			.soft = true, .command = script ? command : missing}));
	}
	MUST(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_status(void)
{
	static const struct {
		const char *script;
		int status;
	} rows[] = {
		{"exit 0", 0},
		{"exit 3", 3},
		{"kill -KILL $$", 128 + SIGKILL},
		{NULL, 127},
		/* The address is the private server's socket. */
		{"s=${REMOTE_GPU_ADDRESS#unix:}; test -S \"$s\" && exit 9", 9},
		/* What is sent to cricket-run goes on to the program. */
		{"kill -TERM $PPID; exec sleep 20", 128 + SIGTERM},
	};
	char directory[] = "/tmp/ckt-soft-XXXXXX";
	MUST(mkdtemp(directory) != NULL, 1);
	setenv("XDG_RUNTIME_DIR", directory, 1);
	has_server = true;
	for (size_t i = 0; i < COUNT(rows); i++)
		IS(run(rows[i].script), rows[i].status);
	/* No server, and one that ends at once. */
	setenv("TEST_SERVER_FAILS", "1", 1);
	IS(run("exit 0"), 125);
	unsetenv("TEST_SERVER_FAILS");
	has_server = false;
	IS(run("exit 0"), 125);
	/* Nothing is left behind. */
	IS(rmdir(directory), 0);
	unsetenv("XDG_RUNTIME_DIR");
}

UNIT_SUITE(ckt_run_soft, {"status", test_status})
