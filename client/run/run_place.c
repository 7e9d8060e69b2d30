/* SPDX-License-Identifier: Apache-2.0 */
/* cricket-run --place: cricketctl chooses one of the servers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/run/run.h"

enum { SERVERS_MAX = 16 };

/* "a,b" as arguments of cricketctl; false after one line on stderr.  The text is cut in place. */
static bool take_servers(char *list, char **arguments, size_t *count)
{
	unsigned servers = 0;
	for (char *server; (server = strsep(&list, ","));) {
		if (!*server)
			continue;
		if (servers++ == SERVERS_MAX) {
			ckt_run_say("--place: more than %d servers: name fewer", SERVERS_MAX);
			return false;
		}
		arguments[(*count)++] = (char *)"--server";
		arguments[(*count)++] = server;
	}
	if (servers < 1)
		ckt_run_say(
			"--place: no servers to choose from: name them with --server A,B or in REMOTE_GPU_ADDRESS");
	return servers >= 1;
}

/* The first line that the program prints; false if it fails, which it has said. */
static bool first_line(const char *path, char **arguments, char *ret_line, size_t size)
{
	int ends[2], status = -1;
	if (pipe(ends))
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execv(path, arguments);
		ckt_run_say("%s: cannot be executed", path);
		_exit(1);
	}
	close(ends[1]);
	FILE *file = fdopen(ends[0], "r");
	bool good = pid > 0 && file && fgets(ret_line, (int)size, file);
	/* To its end: the program is not to die of a closed pipe. */
	while (good && fgetc(file) != EOF)
		;
	if (file)
		fclose(file);
	else
		close(ends[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	ret_line[good ? strcspn(ret_line, "\n") : 0] = 0;
	return good && status == 0 && *ret_line;
}

bool ckt_run_place(const char *policy, const char *servers, char *ret_address, size_t size)
{
	char *arguments[2 * SERVERS_MAX + 4] = {(char *)"cricketctl"}, path[PATH_MAX];
	size_t count = 1;
	if (!servers)
		servers = getenv("REMOTE_GPU_ADDRESS");
	char *list = strdup(servers ? servers : "");
	bool done = list && take_servers(list, arguments, &count);
	if (done && !ckt_run_find_program("cricketctl", "../../ctl/cricketctl", path)) {
		ckt_run_say(
			"--place: cricketctl is not beside this program: install Cricket again");
		done = false;
	}
	arguments[count++] = (char *)"place";
	arguments[count] = (char *)policy;
	done = done && first_line(path, arguments, ret_address, size);
	free(list);
	return done;
}
