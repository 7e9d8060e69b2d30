/* SPDX-License-Identifier: Apache-2.0 */
/* A user id for another owner; see uid_clean.h. */
#include "server/daemon/session/uid_clean.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/session/uid_files.h"
#include "server/daemon/session/uid_processes.h"
#include "server/daemon/session/user_namespace.h"

/* Freeing a large context takes a killed process long; after ten seconds the server tries again. */
enum { LOOKS_MAX = 500, LOOK_NS = 20000000 };

static int remove_files(void *data)
{
	const uid_t *uid = data;
	int sysv = ckt_uid_files_remove_sysv(*uid), files = ckt_uid_files_remove(*uid);
	return sysv ? sysv : files;
}

static enum ckt_uid_clean_result clean(uid_t uid, int user_namespace)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	bool left = true;
	/* Once all were sent SIGKILL none can fork, and what is seen now is all there is. */
	if (ckt_uid_processes_kill(uid, user_namespace))
		return CKT_UID_PROCESSES_LEFT;
	for (int i = 0; i < LOOKS_MAX && (left = ckt_uid_processes_any(uid)); i++)
		nanosleep(&pause, NULL);
	if (left)
		return CKT_UID_PROCESSES_LEFT;
	return ckt_user_namespace_run(user_namespace, uid, remove_files, &uid) ? CKT_UID_FILES_LEFT
									       : CKT_UID_CLEAN;
}

bool ckt_uid_clean_now(uid_t uid, int user_namespace)
{
	bool busy = ckt_uid_processes_any(uid),
	     left = !busy && ckt_user_namespace_run(user_namespace, uid, remove_files, &uid);
	if (busy || left)
		ckt_debug("user id %u is not drawn: it has %s", uid, busy ? "processes" : "files");
	return !busy && !left;
}

pid_t ckt_uid_clean_start(uid_t uid, int user_namespace)
{
	pid_t pid = fork();
	if (pid == 0) {
		/* Copies of the server's connections would keep their ends from being seen. */
		if (user_namespace)
			syscall(SYS_close_range, 0, user_namespace - 1, 0);
		syscall(SYS_close_range, user_namespace ? user_namespace + 1 : 0, ~0u, 0);
		/* A terminal's signals are for the server; it cleans again if this one dies. */
		signal(SIGPIPE, SIG_IGN);
		_exit((int)clean(uid, user_namespace));
	}
	return pid < 0 ? -errno : pid;
}
