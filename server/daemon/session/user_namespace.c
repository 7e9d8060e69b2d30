/* SPDX-License-Identifier: Apache-2.0 */
/* A user namespace for --uid-range; see user_namespace.h. */
#include "server/daemon/session/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/session/uid_range.h"

/* A mapping of one id takes three arguments; the program, a process, two mappings, and the end. */
enum { ARGUMENTS_MAX = 2 + 2 * 3 + 1, NUMBER = 16 };

static int wait_status(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- The process that the namespace is made with */

struct holder {
	pid_t pid;
	int told;  /* what it tells: an errno, once it is in the namespace */
	int hears; /* closed by us: it ends */
};

static void __attribute__((noreturn)) hold(int tells, int hears)
{
	char end;
	/* newuidmap looks at the owner of its files in /proc. */
	prctl(PR_SET_DUMPABLE, 1);
	unsigned char error = unshare(CLONE_NEWUSER) ? (unsigned char)errno : 0;
	if (write(tells, &error, sizeof error) != sizeof error)
		_exit(1);
	while (read(hears, &end, sizeof end) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int holder_start(struct holder *holder)
{
	int tells[2], hears[2];
	unsigned char error = EIO;
	if (pipe2(tells, O_CLOEXEC))
		return -errno;
	if (pipe2(hears, O_CLOEXEC)) {
		int result = -errno;
		close(tells[0]);
		close(tells[1]);
		return result;
	}
	holder->pid = fork();
	if (holder->pid == 0) {
		close(hears[1]);
		hold(tells[1], hears[0]);
	}
	close(tells[1]);
	close(hears[0]);
	holder->told = tells[0];
	holder->hears = hears[1];
	if (holder->pid < 0)
		return -errno;
	ssize_t n;
	do
		n = read(holder->told, &error, sizeof error);
	while (n < 0 && errno == EINTR);
	return n == sizeof error ? -error : -EIO;
}

static void holder_end(struct holder *holder)
{
	if (holder->told >= 0)
		close(holder->told);
	if (holder->hears >= 0)
		close(holder->hears);
	if (holder->pid > 0)
		wait_status(holder->pid);
}

/* ---- Its ids */

/* What a program says of its failure, without its name and the line's end. */
static void read_said(int fd, char *ret_said, size_t size)
{
	size_t used = 0;
	ssize_t n;
	while (used < size - 1 &&
		((n = read(fd, ret_said + used, size - 1 - used)) > 0 || (n < 0 && errno == EINTR)))
		used += n > 0 ? (size_t)n : 0;
	ret_said[used] = 0;
	ret_said[strcspn(ret_said, "\n")] = 0;
}

/* 127: there is no such program. */
static int run_program(char *const *arguments, char *ret_said, size_t size)
{
	int said[2];
	*ret_said = 0;
	if (pipe2(said, O_CLOEXEC))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (dup2(said[1], STDERR_FILENO) < 0)
			_exit(126);
		signal(SIGPIPE, SIG_DFL);
		execvp(arguments[0], arguments);
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(said[1]);
	if (pid > 0)
		read_said(said[0], ret_said, size);
	close(said[0]);
	return pid > 0 ? wait_status(pid) : -1;
}

/* own: an id that is mapped as well; 0: none, as root's never is here. */
static int map(const char *program, pid_t pid, const struct ckt_uid_range *range, unsigned own,
	char *ret_said, size_t size)
{
	char numbers[4][NUMBER];
	char *arguments[ARGUMENTS_MAX] = {(char *)program, numbers[0], numbers[1], numbers[1],
		numbers[2], numbers[3], numbers[3], (char *)"1"};
	snprintf(numbers[0], NUMBER, "%d", (int)pid);
	snprintf(numbers[1], NUMBER, "%u", range->first);
	snprintf(numbers[2], NUMBER, "%u", range->last - range->first + 1);
	snprintf(numbers[3], NUMBER, "%u", own);
	if (!own)
		arguments[5] = NULL;
	return run_program(arguments, ret_said, size);
}

static int explain_refused(int error, char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size,
		"this host refuses user namespaces (%s); allow them (sysctl user.max_user_namespaces, and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), or start the server as root",
		strerror(error));
	return -error;
}

static int explain_map(const char *program, int status, const struct ckt_uid_range *range,
	const char *said, char *ret_message, size_t message_size)
{
	const struct passwd *entry = getpwuid(geteuid());
	if (status == 127)
		snprintf(ret_message, message_size,
			"%s is missing; install the package uidmap, or start the server as root",
			program);
	else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		snprintf(ret_message, message_size,
			"no_new_privs keeps %s from its rights; start the server without (systemd: NoNewPrivileges=no), or as root",
			program);
	else
		snprintf(ret_message, message_size,
			"%s refuses %u-%u (%.120s); give the ids to this user in /etc/subuid and /etc/subgid (usermod --add-subuids %u-%u --add-subgids %u-%u %s), or start the server as root",
			program, range->first, range->last, said, range->first, range->last,
			range->first, range->last, entry ? entry->pw_name : "NAME");
	return -EPERM;
}

static int map_both(
	pid_t pid, const struct ckt_uid_range *range, char *ret_message, size_t message_size)
{
	static const char *const programs[] = {"newuidmap", "newgidmap"};
	char said[256];
	for (int i = 0; i < 2; i++) {
		int status =
			map(programs[i], pid, range, i == 0 ? geteuid() : 0, said, sizeof said);
		if (status)
			return explain_map(
				programs[i], status, range, said, ret_message, message_size);
	}
	return 0;
}

/* ---- Entering it */

int ckt_user_namespace_enter(int fd, gid_t gid)
{
	/* Files that are made in mounts of the namespace need a group that it has. */
	return fd && (setns(fd, CLONE_NEWUSER) || setresgid((gid_t)-1, gid, (gid_t)-1)) ? -1 : 0;
}

int ckt_user_namespace_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
	return (int)syscall(SYS_capset, &header, none);
}

struct call {
	int (*function)(void *data);
	void *data;
};

static int as_effective(int fd, uid_t id, const struct call *call)
{
	/* The real and the saved id stay the server's. */
	if (ckt_user_namespace_enter(fd, (gid_t)id) || setresuid((uid_t)-1, id, (uid_t)-1))
		return errno;
	return -call->function(call->data);
}

int ckt_user_namespace_run(int fd, uid_t id, int (*function)(void *data), void *data)
{
	const struct call call = {function, data};
	if (!fd)
		return function(data);
	pid_t pid = fork();
	if (pid == 0)
		_exit(as_effective(fd, id, &call));
	int status = pid < 0 ? -1 : wait_status(pid);
	return pid < 0 ? -EAGAIN : status < 0 ? -EIO : -status;
}

bool ckt_user_namespace_needs_groups(const char *devices)
{
	glob_t found;
	bool needed = false;
	if (glob(devices ? devices : "/dev/nvidia*", 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat status;
		needed |= stat(found.gl_pathv[i], &status) == 0 && S_ISCHR(status.st_mode) &&
			(status.st_mode & 06) != 06;
	}
	globfree(&found);
	return needed;
}

/* Whether a process in it can become a user, and nothing else again. */
static int try_user(void *data)
{
	const struct ckt_uid_range *range = data;
	uid_t uid = range->last;
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
		ckt_user_namespace_drop())
		return -errno;
	bool back = range->first != uid && setresuid(range->first, range->first, range->first) == 0;
	return back ? -EPERM : 0;
}

int ckt_user_namespace_open(
	const struct ckt_uid_range *range, int *ret_fd, char *ret_message, size_t message_size)
{
	struct holder holder = {.pid = -1, .told = -1, .hears = -1};
	struct ckt_uid_range tried = *range;
	char path[64];
	int fd = -1;
	int result = holder_start(&holder);
	if (result)
		explain_refused(-result, ret_message, message_size);
	if (!result)
		result = map_both(holder.pid, range, ret_message, message_size);
	if (!result) {
		snprintf(path, sizeof path, "/proc/%d/ns/user", (int)holder.pid);
		int low = open(path, O_RDONLY | O_CLOEXEC);
		/* 0 would be none. */
		fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 3);
		if (low >= 0)
			close(low);
		result = fd < 0 ? -errno
				: ckt_user_namespace_run(fd, range->first, try_user, &tried);
		if (result)
			explain_refused(-result, ret_message, message_size);
	}
	holder_end(&holder);
	if (result && fd >= 0)
		close(fd);
	if (!result)
		*ret_fd = fd;
	return result;
}
