/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/cleanup.c: an interrupted cricketctl removes the directories in the making, and those alone. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

static void test_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < COUNT(signals); i++)
		for (int registered = 0; registered < 2; registered++) {
			IS(mkdir(path_in("making"), 0700), 0);
			write_file(path_in("making/data-0"), "x");
			IS(mkdir(path_in("making-too"), 0700), 0);
			write_file(path_in("making-too/data-0"), "x");
			char number[16],
				*argv[] = {(char *)"self", (char *)"--interrupted",
					path_in("making"), number, (char *)(registered ? "1" : "0"),
					NULL};
			snprintf(number, sizeof number, "%d", signals[i]);
			fflush(stdout);
			pid_t pid = fork();
			if (pid == 0) {
				/*
				 * In a fresh process nobody has started the thread that waits, or
				 * blocked its signals.
				 */
				sigset_t none;
				sigemptyset(&none);
				sigprocmask(SIG_SETMASK, &none, NULL);
				execv("/proc/self/exe", argv);
				_exit(127);
			}
			int status = 0;
			IS(waitpid(pid, &status, 0), pid);
			YES(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signals[i]);
			IS(exists(path_in("making")), !registered);
			NO(exists(path_in("making-too")));
			if (!registered) {
				unlink(path_in("making/data-0"));
				rmdir(path_in("making"));
			}
		}
}

UNIT_SUITE(cleanup, {"signals", test_signals})
