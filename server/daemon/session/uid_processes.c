/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a user id; see uid_processes.h. */
#include "server/daemon/session/uid_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/session/user_namespace.h"

enum {
	/* Processes of that user may kill the one that is to kill them; it needs to win once. */
	KILLERS_MAX = 100,
	STATUS_BYTES = 2048,
	KILLED = 0,
	NOT_THE_USER = 1,
};

/*
 * Never returns.  With CAP_KILL kill(-1) would end every process of the host, or of the namespace, in
 * which capabilities outlive a change of the user.
 */
static void __attribute__((noreturn)) kill_as(uid_t uid, int user_namespace)
{
	if (ckt_user_namespace_enter(user_namespace, (gid_t)uid))
		_exit(NOT_THE_USER);
	if (uid == 0 || setgroups(0, NULL) || setresgid(uid, uid, uid) ||
		setresuid(uid, uid, uid) || ckt_user_namespace_drop() || getuid() != uid ||
		geteuid() != uid || setuid(0) == 0)
		_exit(NOT_THE_USER);
	/* Other than processes, keys of a user outlive its last process. */
	syscall(SYS_keyctl, KEYCTL_CLEAR, KEY_SPEC_USER_KEYRING, 0, 0, 0);
	_exit(kill(-1, SIGKILL) && errno != ESRCH ? NOT_THE_USER : KILLED);
}

int ckt_uid_processes_kill(uid_t uid, int user_namespace)
{
	for (int i = 0; i < KILLERS_MAX; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0)
			kill_as(uid, user_namespace);
		if (pid < 0)
			return -errno;
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				return -errno;
		if (WIFEXITED(status))
			return WEXITSTATUS(status) == KILLED ? 0 : -EPERM;
	}
	return -EAGAIN;
}

static bool is_of(int proc, const char *pid, uid_t uid)
{
	char path[64], text[STATUS_BYTES];
	unsigned ids[4] = {0}, threads = 0;
	snprintf(path, sizeof path, "%.20s/status", pid);
	/* The directory's owner says nothing: it is root's if the process cannot be traced. */
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	const char *state = strstr(text, "\nState:\t"), *line = strstr(text, "\nUid:\t"),
		   *count = strstr(text, "\nThreads:\t");
	if (!state || !line ||
		sscanf(line, "\nUid:\t%u\t%u\t%u\t%u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return false;
	/* A first thread that has ended is a zombie while others of the process run. */
	bool dead = (state[8] == 'Z' || state[8] == 'X') &&
		(!count || sscanf(count, "\nThreads:\t%u", &threads) != 1 || threads <= 1);
	for (int i = 0; i < 4 && !dead; i++)
		if (ids[i] == uid)
			return true;
	return false;
}

bool ckt_uid_processes_any(uid_t uid)
{
	DIR *dir = opendir("/proc");
	bool any = !dir; /* who cannot look does not say that there is none */
	for (const struct dirent *entry; dir && !any && (entry = readdir(dir));)
		any = isdigit((unsigned char)entry->d_name[0]) &&
			is_of(dirfd(dir), entry->d_name, uid);
	if (dir)
		closedir(dir);
	return any;
}
