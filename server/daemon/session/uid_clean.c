/* SPDX-License-Identifier: Apache-2.0 */
/* A user id for another owner; see uid_clean.h. */
#include "server/daemon/session/uid_clean.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "server/daemon/session/uid_files.h"
#include "server/daemon/session/uid_processes.h"

/* Freeing a large context takes a killed process long; after ten seconds the server tries again. */
enum { LOOKS_MAX = 500, LOOK_NS = 20000000 };

static enum ckt_uid_clean_result clean(uid_t uid)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	bool left = true;
	/* Once all were sent SIGKILL none can fork, and what is seen now is all there is. */
	if (ckt_uid_processes_kill(uid))
		return CKT_UID_PROCESSES_LEFT;
	for (int i = 0; i < LOOKS_MAX && (left = ckt_uid_processes_any(uid)); i++)
		nanosleep(&pause, NULL);
	if (left)
		return CKT_UID_PROCESSES_LEFT;
	int sysv = ckt_uid_files_remove_sysv(uid), files = ckt_uid_files_remove(uid);
	return sysv || files ? CKT_UID_FILES_LEFT : CKT_UID_CLEAN;
}

pid_t ckt_uid_clean_start(uid_t uid)
{
	pid_t pid = fork();
	if (pid == 0) {
		/* Copies of the server's connections would keep their ends from being seen. */
		syscall(SYS_close_range, 0, ~0u, 0);
		/* A terminal's signals are for the server; it cleans again if this one dies. */
		signal(SIGPIPE, SIG_IGN);
		_exit((int)clean(uid));
	}
	return pid < 0 ? -errno : pid;
}
