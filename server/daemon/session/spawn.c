/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a worker: a direct child in a session of its own, without privileges, with a fixed
 * stack, without address space randomisation and with an environment that is the same on every node
 * (all of this influences the driver's addresses).
 *
 * The environment is empty but for what `passed` names.
 */
#include "server/daemon/session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/module_loading.h"
#include "server/daemon/server.h"
#include "server/daemon/session/worker_files.h"

extern char **environ;

enum { STACK_BYTES = 8 << 20, ENVIRONMENT_MAX = 256 };

static const char *const passed[] = {
	/* which GPUs, and the driver's JIT cache */
	"CUDA_VISIBLE_DEVICES=",
	"CUDA_DEVICE_ORDER=",
	"CUDA_CACHE_",
	/* an operator's control daemon */
	"CUDA_MPS_",
	"CRICKET_SOFT_",
	"CRICKET_FAULT=",
	/* clusters and containers put parts of the driver there */
	"LD_LIBRARY_PATH=",
	"ASAN_OPTIONS=",
	"UBSAN_OPTIONS=",
	"LSAN_OPTIONS=",
	"TSAN_OPTIONS=",
};

/* ret holds room for ENVIRONMENT_MAX + 1 pointers; the strings are not owned. */
static void make_environment(const struct ckt_server *server, const char **ret)
{
	size_t count = 0;
	ret[count++] =
		"GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4294967296";
	static char loading[64];
	const char *told = getenv("CUDA_MODULE_LOADING");
	snprintf(loading, sizeof loading, "CUDA_MODULE_LOADING=%s",
		told ? told : CKT_MODULE_LOADING_DEFAULT);
	ret[count++] = loading;
	static char gpus[32];
	snprintf(gpus, sizeof gpus, "CRICKET_GPUS=%u", server->driver.gpu_count);
	ret[count++] = gpus;
	for (unsigned i = 0; i < server->library_variable_count; i++)
		ret[count++] = server->library_variables[i];
	if (*server->inside_path)
		ret[count++] = server->inside_variable;
	for (char **variable = environ; *variable && count < ENVIRONMENT_MAX; variable++)
		for (unsigned i = 0; i < sizeof passed / sizeof *passed; i++)
			if (strncmp(*variable, passed[i], strlen(passed[i])) == 0) {
				ret[count++] = *variable;
				break;
			}
	ret[count] = NULL;
}

int ckt_spawn_find_user(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_worker_user *user = &server->user;
	const char *name = server->options.user;
	if (geteuid() != 0) {
		struct passwd *self = name ? getpwuid(geteuid()) : NULL;
		if (name && (!self || strcmp(self->pw_name, name) != 0)) {
			snprintf(ret_message, message_size,
				"--user: '%s': only root can start workers as another user; leave it out",
				name);
			return -EPERM;
		}
		return 0;
	}
	struct passwd *entry = getpwnam(name ? name : "cricket");
	if (!entry && name) {
		snprintf(ret_message, message_size,
			"--user: user '%s' does not exist; create it with 'useradd "
			"--system %s', or name another",
			name, name);
		return -EINVAL;
	}
	ret_message[0] = 0;
	if (!entry) {
		snprintf(ret_message, message_size,
			"user 'cricket' does not exist (useradd --system cricket): "
			"workers run as 'nobody'; --user NAME names another");
		entry = getpwnam("nobody");
	}
	if (!entry || entry->pw_uid == 0) {
		snprintf(ret_message, message_size,
			entry ? "--user: '%s' is root, but workers never run as root: name "
				"another user"
			      : "--user: neither user '%s' nor 'nobody' exists: name "
				"another user",
			name ? name : "cricket");
		return -EINVAL;
	}
	user->change = true;
	user->uid = entry->pw_uid;
	user->gid = entry->pw_gid;
	snprintf(user->name, sizeof user->name, "%s", entry->pw_name);
	user->group_count = CKT_USER_GROUPS_MAX;
	if (getgrouplist(entry->pw_name, entry->pw_gid, user->groups, &user->group_count) < 0)
		user->group_count = CKT_USER_GROUPS_MAX;
	return 0;
}

static int become_user(const struct ckt_worker_user *user)
{
	if (user->change &&
		(setgroups((size_t)user->group_count, user->groups) ||
			setresgid(user->gid, user->gid, user->gid) ||
			setresuid(user->uid, user->uid, user->uid)))
		return -errno;
	return 0;
}

/*
 * 0; 1 if nobody can become that user, 2 if it may not execute the worker, 3 if it may not read the
 * driver, 4 if not inside_path.
 */
static int look_as_user(const struct ckt_server *server)
{
	if (become_user(&server->user))
		return 1;
	if (access(server->worker_path, X_OK))
		return 2;
	if (access(server->driver.path, R_OK))
		return 3;
	return *server->inside_path && access(server->inside_path, R_OK) ? 4 : 0;
}

static int wait_status(pid_t pid)
{
	int status = 0;
	if (pid < 0)
		return 1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* As the workers' user. */
static int try_user(const struct ckt_server *server)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(look_as_user(server));
	return wait_status(pid);
}

bool ckt_spawn_user_reads(const struct ckt_server *server, const char *const *files, size_t count)
{
	pid_t pid = fork();
	if (pid == 0) {
		int obstacle = become_user(&server->user) ? 1 : 0;
		for (size_t i = 0; i < count && !obstacle; i++)
			obstacle = access(files[i], R_OK) ? 1 : 0;
		_exit(obstacle);
	}
	return wait_status(pid) == 0;
}

int ckt_spawn_check(struct ckt_server *server, char *ret_message, size_t message_size)
{
	int obstacle = try_user(server);
	/* Only root may reach our own files; the operator's driver is the operator's to open. */
	if (server->user.change && obstacle == 2 && ckt_daemon_files_copy(server->worker_path) == 0)
		obstacle = try_user(server);
	if (server->user.change && obstacle == 3 && server->driver.soft &&
		ckt_daemon_files_copy(server->driver.path) == 0)
		obstacle = try_user(server);
	if (server->user.change && obstacle == 4 && ckt_daemon_files_copy(server->inside_path) == 0)
		obstacle = try_user(server);
	snprintf(server->inside_variable, sizeof server->inside_variable, "CRICKET_INSIDE=%s",
		server->inside_path);
	/* Only programs with libraries miss it, and they get a message. */
	if (obstacle == 4)
		obstacle = *server->inside_path = 0;
	const char *name = server->user.change ? server->user.name : "this user";
	if (obstacle == 1)
		snprintf(ret_message, message_size, "cannot become user '%s'", name);
	else if (obstacle)
		snprintf(ret_message, message_size,
			"user '%s' may not %s %s: give that user access to it and to "
			"the directories above, or use --user NAME",
			name, obstacle == 2 ? "execute" : "read",
			obstacle == 2 ? server->worker_path : server->driver.path);
	else
		return 0;
	return -EACCES;
}

struct failure {
	int error;
	char step[32];
};

/* Runs in the child.  Returns only on failure. */
static void start(struct ckt_server *server, int listen_fd, const char *const *environment,
	struct failure *failure)
{
	const char *const arguments[] = {
		"cricket-worker", "--log-level", server->options.log_level, NULL};
	struct rlimit stack = {STACK_BYTES, STACK_BYTES}, none = {0, 0};
	sigset_t no_signals;
	const char *step = "descriptors";
	/* Moves listen_fd out of the way first: it may be one of 0 to 3 itself. */
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC),
	    high = fcntl(listen_fd, F_DUPFD_CLOEXEC, 10);
	if (null < 0 || high < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(high, 3) < 0)
		goto out;
	/*
	 * Our descriptors are close-on-exec anyway; this is for inherited ones.  Sandboxes without
	 * the call are no worse off.
	 */
	syscall(SYS_close_range, 4, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
	/* Kill signals for the server's group or terminal are not meant for sessions. */
	step = "setsid";
	if (setsid() < 0)
		goto out;
	step = "rlimit";
	if (setrlimit(RLIMIT_STACK, &stack) || setrlimit(RLIMIT_CORE, &none) ||
		setrlimit(RLIMIT_NOFILE, &server->descriptors))
		goto out;
	/* Docker's seccomp profile refuses this; the worker checks it and notes it. */
	personality(ADDR_NO_RANDOMIZE);
	step = "user";
	errno = -become_user(&server->user);
	if (errno)
		goto out;
	step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		goto out;
	/* Again, by the worker's own process: SO_PEERCRED names it to those who connect. */
	step = "listen";
	if (listen(3, 64))
		goto out;
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&no_signals);
	sigprocmask(SIG_SETMASK, &no_signals, NULL);
	step = "exec";
	if (chdir("/") == 0)
		execve(server->worker_path, (char *const *)arguments, (char *const *)environment);
out:
	failure->error = errno;
	snprintf(failure->step, sizeof failure->step, "%s", step);
}

int ckt_spawn_worker(struct ckt_server *server, int listen_fd, pid_t *ret_pid, char *ret_message,
	size_t message_size)
{
	const char *environment[ENVIRONMENT_MAX + 1];
	struct failure failure = {0};
	int pipe_fds[2];
	make_environment(server, environment);
	if (pipe2(pipe_fds, O_CLOEXEC)) {
		snprintf(ret_message, message_size, "cannot start a worker: %s", strerror(errno));
		return -errno;
	}
	pid_t pid = fork();
	if (pid == 0) {
		/* Above the descriptors that get a fixed number. */
		int report = fcntl(pipe_fds[1], F_DUPFD_CLOEXEC, 10);
		start(server, listen_fd, environment, &failure);
		ssize_t written = write(report, &failure, sizeof failure);
		_exit(written == sizeof failure ? 127 : 126);
	}
	int error = pid < 0 ? errno : 0;
	close(pipe_fds[1]);
	ssize_t n = 0;
	if (pid > 0) {
		/* Ends when the child's copy closes: at exec, at once. */
		do
			n = read(pipe_fds[0], &failure, sizeof failure);
		while (n < 0 && errno == EINTR);
	}
	close(pipe_fds[0]);
	if (pid > 0 && n == 0) {
		*ret_pid = pid;
		return 0;
	}
	if (pid > 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		error = n == sizeof failure ? failure.error : EIO;
	}
	snprintf(ret_message, message_size, "cannot start a worker (%s of %s): %s",
		*failure.step ? failure.step : "fork", server->worker_path, strerror(error));
	return error ? -error : -EIO;
}
