/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executables in --hooks DIR: for each event, all of them in the order of their names, with the
 * event in their environment.
 *
 *	event -> queue -> a runner (a child of ours, one at a time, watched through a pidfd) -> the executables, one after the other
 *
 * An executable that takes longer than its time is killed with what it started.  When the queue is
 * full the newest event is dropped with a line in the log: hooks are told what happened, and may
 * ask cricketctl how things are.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/events.h"
#include "server/daemon/session/session.h"
#include "base/close_from.h"
#include "rpc/control.h"
#include "base/log.h"

enum { QUEUE_MAX = 256, TIMEOUT_S = 30, VARIABLES_MAX = 7, HOOKS_MAX = 64 };

struct run {
	struct run *next;
	char *variables[VARIABLES_MAX];
};

static struct run *first, **end = &first;
static unsigned queued;
static struct ckt_source runner = {.fd = -1};
static struct ckt_server *owner;

static void start_next(void);

static void run_free(struct run *run)
{
	for (unsigned i = 0; i < VARIABLES_MAX; i++)
		free(run->variables[i]);
	free(run);
}

int ckt_hooks_check(const char *directory, char *ret_message, size_t message_size)
{
	struct stat st;
	int result = stat(directory, &st) ? -errno : !S_ISDIR(st.st_mode) ? -ENOTDIR : 0;
	/* A user who can write there can run programs as the server's user. */
	if (!result && ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & 0022))
		result = -EPERM;
	if (result)
		snprintf(ret_message, message_size, "--hooks: '%s': %s", directory,
			result == -EPERM
				? "must belong to the server's user or root, and be writable by nobody else (chmod go-w)"
				: strerror(-result));
	return result;
}

/* ---- In the runner */

static int plain_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_name[strlen(entry->d_name) - 1] != '~';
}

static void run_one(const char *path, char *const *variables)
{
	sigset_t child;
	struct timespec limit = {.tv_sec = TIMEOUT_S};
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		for (unsigned i = 0; i < VARIABLES_MAX; i++)
			putenv(variables[i]);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		return;
	setpgid(pid, pid);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		if (sigtimedwait(&child, NULL, &limit) < 0 && errno == EAGAIN) {
			dprintf(STDERR_FILENO,
				"cricket-server: hook %s takes longer than %d s: "
				"killed\n",
				path, TIMEOUT_S);
			kill(-pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return;
		}
}

static void run_all(const char *directory, char *const *variables)
{
	struct dirent **list;
	char path[CKT_PATH_MAX];
	sigset_t child;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), count;
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
	dup2(null, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	/* Our sockets would stay open in a hook that does not end. */
	ckt_close_from(3);
	count = scandir(directory, &list, plain_name, alphasort);
	for (int i = 0; i < count && i < HOOKS_MAX; i++) {
		struct stat st;
		snprintf(path, sizeof path, "%.3000s/%s", directory, list[i]->d_name);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			run_one(path, variables);
	}
}

/* ---- In the server */

static void runner_ended(struct ckt_source *source, uint32_t events)
{
	siginfo_t info = {0};
	(void)events;
	int fd = ckt_loop_remove(&owner->loop, source);
	waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED);
	close(fd);
	start_next();
}

static void start_next(void)
{
	struct run *run = first;
	if (!run || runner.fd >= 0)
		return;
	first = run->next;
	if (!first)
		end = &first;
	queued--;
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		run_all(owner->options.hooks, run->variables);
		_exit(0);
	}
	run_free(run);
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	runner = (struct ckt_source){.fd = fd, .ready = runner_ended};
	if (fd < 0 || ckt_loop_add(&owner->loop, &runner, EPOLLIN)) {
		ckt_warning("cannot run hooks: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		runner.fd = -1;
	}
}

/*
 * Peers' texts reach shells sooner or later: '_' replaces characters with a meaning to a shell,
 * line ends and cursor movements.  A name has no spaces and does not begin with '-', so that it
 * stays one word and is no option; `events` prints the original.
 */
void ckt_hooks_clean(const char *text, bool is_name, char *ret_text, size_t text_size)
{
	static const char others[] = "._+-@:,/=";
	size_t n = 0;
	for (; n < text_size - 1 && text[n]; n++) {
		char c = text[n];
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || strchr(others, c) || (!is_name && c == ' ');
		ret_text[n] = good && !(is_name && n == 0 && c == '-') ? c : '_';
	}
	ret_text[n] = 0;
}

void ckt_hooks_run(struct ckt_server *server, const struct ckt_control_event *event)
{
	char program[CKT_NAME_MAX + 1], detail[CKT_MESSAGE_MAX + 1];
	ckt_hooks_clean(event->program_name, true, program, sizeof program);
	ckt_hooks_clean(event->detail, false, detail, sizeof detail);
	struct run *run = queued < QUEUE_MAX ? calloc(1, sizeof *run) : NULL;
	owner = server;
	if (!run || asprintf(&run->variables[0], "CRICKET_EVENT=%s", event->name) < 0 ||
		asprintf(&run->variables[1], "CRICKET_SESSION=%s", event->session) < 0 ||
		asprintf(&run->variables[2], "CRICKET_PROGRAM=%s", program) < 0 ||
		asprintf(&run->variables[3], "CRICKET_DETAIL=%s", detail) < 0 ||
		asprintf(&run->variables[4], "CRICKET_WHEN=%lld", (long long)event->when) < 0 ||
		asprintf(&run->variables[5], "CRICKET_EVENT_NUMBER=%llu",
			(unsigned long long)event->number) < 0 ||
		asprintf(&run->variables[6], "REMOTE_GPU_ADDRESS=unix:%s", server->socket_path) <
			0) {
		ckt_warning("session %s: running no hook for event %s: too many are queued",
			event->session, event->name);
		if (run)
			run_free(run);
		return;
	}
	*end = run;
	end = &run->next;
	queued++;
	start_next();
}
