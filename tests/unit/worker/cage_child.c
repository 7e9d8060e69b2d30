/* SPDX-License-Identifier: Apache-2.0 */
/* See cage_child.h. */
#include "cage_child.h"

#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 4244 };

static int run(int (*attempt)(void), bool other_user)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (other_user && geteuid() == 0 &&
			(setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(99);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			_exit(98);
		_exit(attempt());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int cage_child(int (*attempt)(void))
{
	return run(attempt, false);
}

int cage_child_of_nobody(int (*attempt)(void))
{
	return run(attempt, true);
}
