/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/uid_clean.c: a user id that is fit for another owner afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/uid_clean.h"
#include "server/daemon/session/uid_processes.h"

enum { WORKERS = 1804293 };

#define SHM "/dev/shm/cricket-1804293-4711"

static int clean(void)
{
	int status = -1;
	pid_t pid = ckt_uid_clean_start(WORKERS, 0);
	MUST(pid <= 0, 0);
	while (waitpid(pid, &status, 0) < 0)
		MUST(errno, EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_clean(void)
{
	int pipe_fds[2];
	char byte;
	if (geteuid() != 0) {
		printf("skipped clean: not root\n");
		IS(clean(), CKT_UID_PROCESSES_LEFT);
		return;
	}
	IS(mkdir(SHM, 0700), 0);
	IS(chown(SHM, WORKERS, WORKERS), 0);
	write_file(SHM "/page", "x", 0600);
	MUST(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		/* A child that outlives its worker, in a session of its own. */
		if (setresgid(WORKERS, WORKERS, WORKERS) || setresuid(WORKERS, WORKERS, WORKERS))
			_exit(1);
		if (fork() == 0) {
			setsid();
			signal(SIGTERM, SIG_IGN);
			if (write(pipe_fds[1], "x", 1) == 1)
				pause();
		}
		_exit(0);
	}
	MUST(read(pipe_fds[0], &byte, 1), 1);
	IS(waitpid(pid, NULL, 0), pid);
	YES(ckt_uid_processes_any(WORKERS));
	/* Only the child holds the pipe's other end, not who cleans. */
	close(pipe_fds[1]);
	IS(clean(), CKT_UID_CLEAN);
	NO(ckt_uid_processes_any(WORKERS));
	IS(access(SHM, F_OK), -1);
	IS(read(pipe_fds[0], &byte, 1), 0);
	close(pipe_fds[0]);
	IS(clean(), CKT_UID_CLEAN);
}

UNIT_SUITE(uid_clean, {"clean", test_clean})
