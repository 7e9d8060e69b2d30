/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-run --soft: a private server for one program.
 *
 *	cricket-run --+-- cricket-server   own process group (a Ctrl-C at the terminal is for the program), log in DIRECTORY/log
 *	              `-- COMMAND          this process group
 *
 * DIRECTORY is a new directory of mode 0700 that holds the server's socket; it is removed at the
 * end.  Signals are blocked and read with sigwaitinfo, so there are no signal handlers.  If
 * cricket-run itself is killed, the kernel ends the server, and the next cricket-run removes the
 * directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/run/run.h"

enum {
	EXIT_NO_SERVER = 125,
	/* a cold start reads the server and the soft GPU from disk */
	START_TIMEOUT_MS = 30000,
	STOP_TIMEOUT_MS = 10000,
};

struct soft {
	char directory[PATH_MAX];
	int lock; /* a lock on the directory */
	char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char log[PATH_MAX];
	sigset_t waited, before; /* signals read here; the signal mask for children */
	pid_t server;            /* 0 if there is no server to wait for */
	pid_t program;
	int program_status;
	bool program_done;
};

#define DIRECTORY_PREFIX "cricket-soft-"

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *position)
{
	remove(path);
	return 0;
}

static void remove_directory(const char *path)
{
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The owning cricket-run locks its directory as long as it runs. */
static bool is_nobodys(int base, const char *name)
{
	struct stat status;
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool result = fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
		flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (fd >= 0)
		close(fd);
	return result;
}

/* Removes directories that killed cricket-runs left. */
static void sweep(const char *base)
{
	char path[PATH_MAX];
	DIR *dir = opendir(base);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (strncmp(entry->d_name, DIRECTORY_PREFIX, strlen(DIRECTORY_PREFIX)) == 0 &&
			is_nobodys(dirfd(dir), entry->d_name) &&
			snprintf(path, sizeof(path), "%s/%s", base, entry->d_name) <
				(int)sizeof(path))
			remove_directory(path);
	if (dir)
		closedir(dir);
}

/*
 * Locks the directory before another cricket-run can remove it as left over.  False if another one
 * was faster.
 */
static bool lock_directory(struct soft *soft)
{
	struct stat status;
	soft->lock = open(soft->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (soft->lock >= 0 && flock(soft->lock, LOCK_SH | LOCK_NB) == 0 &&
		stat(soft->directory, &status) == 0)
		return true;
	if (soft->lock >= 0)
		close(soft->lock);
	return false;
}

static bool make_directory(struct soft *soft)
{
	const char *bases[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (!bases[i] || bases[i][0] != '/' ||
			snprintf(soft->directory, sizeof(soft->directory),
				"%s/" DIRECTORY_PREFIX "XXXXXX",
				bases[i]) >= (int)sizeof(soft->directory))
			continue;
		/* A UNIX socket's address is short: skip a base whose path is too long. */
		if (strlen(soft->directory) + sizeof("/socket") > sizeof(soft->socket))
			continue;
		sweep(bases[i]);
		if (!mkdtemp(soft->directory) || !lock_directory(soft))
			continue;
		snprintf(soft->socket, sizeof(soft->socket), "%.*s/socket",
			(int)sizeof(soft->socket) - 8, soft->directory);
		snprintf(soft->log, sizeof(soft->log), "%.*s/log", PATH_MAX - 8, soft->directory);
		return true;
	}
	soft->directory[0] = 0;
	ckt_run_say("cannot make a temporary directory: %s", strerror(errno));
	return false;
}

static void server_process(const struct soft *soft, const struct ckt_run_options *options,
	const char *path, pid_t parent)
{
	char address[sizeof(soft->socket)];

	snprintf(address, sizeof(address), "%s", soft->socket);
	char *const command[] = {(char *)path, "--driver", "soft", "--socket", address, "--listen",
		"none", "--grace", "0", "--log-level", options->verbose ? "debug" : "info", NULL};

	/*
	 * The server ends with cricket-run, even if that is killed.  The check covers the time
	 * before prctl.
	 */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_NO_SERVER);
	setpgid(0, 0);
	int null = open("/dev/null", O_RDWR),
	    log = options->verbose ? -1 : open(soft->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(options->verbose ? STDERR_FILENO : log >= 0 ? log : null, STDOUT_FILENO);
	}
	if (log >= 0)
		dup2(log, STDERR_FILENO);
	/* The user's own configuration must not apply to the private server's clients or GPUs. */
	unsetenv("REMOTE_GPU_ADDRESS");
	unsetenv("CUDA_VISIBLE_DEVICES");
	sigprocmask(SIG_SETMASK, &soft->before, NULL);
	execv(path, command);
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
	_exit(EXIT_NO_SERVER);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool server_answers(const struct soft *soft)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, soft->socket, sizeof(address.sun_path));
	bool answers = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (fd >= 0)
		close(fd);
	return answers;
}

static void show_log(const struct soft *soft)
{
	char text[4096];
	int fd = open(soft->log, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t length = pread(fd, text, sizeof(text),
		size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0);
	close(fd);
	if (length > 0)
		fwrite(text, 1, (size_t)length, stderr);
}

static bool start_server(struct soft *soft, const struct ckt_run_options *options)
{
	char path[PATH_MAX];
	pid_t parent = getpid();
	long deadline = now_ms() + START_TIMEOUT_MS;
	int status;

	if (!ckt_run_find_program("cricket-server", "../../server/daemon/cricket-server", path)) {
		ckt_run_say("--soft needs cricket-server beside cricket-run: install it, or use "
			    "--server");
		return false;
	}
	soft->server = fork();
	if (soft->server < 0) {
		soft->server = 0;
		ckt_run_say("cannot start the server: %s", strerror(errno));
		return false;
	}
	if (soft->server == 0)
		server_process(soft, options, path, parent);
	for (struct timespec pause = {0, 1000000}; !server_answers(soft); nanosleep(&pause, NULL)) {
		if (waitpid(soft->server, &status, WNOHANG) == soft->server) {
			soft->server = 0;
			ckt_run_say("the private server did not start:");
			show_log(soft);
			return false;
		}
		if (now_ms() > deadline) {
			ckt_run_say("the private server did not answer within %d s:",
				START_TIMEOUT_MS / 1000);
			show_log(soft);
			return false;
		}
		pause.tv_nsec = pause.tv_nsec < 32000000 ? 2 * pause.tv_nsec : pause.tv_nsec;
	}
	return true;
}

static void stop_server(struct soft *soft)
{
	siginfo_t signal_info;
	sigset_t child;
	long deadline = now_ms() + STOP_TIMEOUT_MS;

	if (!soft->server)
		return;
	kill(soft->server, SIGTERM);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (waitpid(soft->server, NULL, WNOHANG) == 0) {
		long left = deadline - now_ms();
		struct timespec timeout = {left / 1000, left % 1000 * 1000000};

		if (left <= 0) {
			/* The server's workers are its children and end with it. */
			kill(soft->server, SIGKILL);
			waitpid(soft->server, NULL, 0);
			break;
		}
		sigtimedwait(&child, &signal_info, &timeout);
	}
	soft->server = 0;
}

static void reap(struct soft *soft)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == soft->program) {
			soft->program_status = status;
			soft->program_done = true;
		} else if (pid == soft->server) {
			soft->server = 0;
			if (!soft->program_done) {
				ckt_run_say("the private server ended before the program:");
				show_log(soft);
			}
		}
	}
}

/*
 * Passes signals that a process sent to cricket-run on to the program.  Signals of the terminal
 * have already reached the program.
 */
static void wait_for_program(struct soft *soft)
{
	while (!soft->program_done) {
		siginfo_t info;

		if (sigwaitinfo(&soft->waited, &info) < 0)
			continue;
		if (info.si_signo == SIGCHLD)
			reap(soft);
		else if (info.si_code <= 0)
			kill(soft->program, info.si_signo);
	}
}

static int run_program(struct soft *soft, const struct ckt_run_options *options)
{
	char address[sizeof(soft->socket) + 8];

	snprintf(address, sizeof(address), "unix:%s", soft->socket);
	soft->program = fork();
	if (soft->program < 0) {
		ckt_run_say("cannot start %s: %s", options->command[0], strerror(errno));
		return EXIT_NO_SERVER;
	}
	if (soft->program == 0) {
		sigprocmask(SIG_SETMASK, &soft->before, NULL);
		_exit(ckt_run_prepare_environment(options, address) ? ckt_run_exec(options->command)
								    : 126);
	}
	wait_for_program(soft);
	return WIFSIGNALED(soft->program_status) ? 128 + WTERMSIG(soft->program_status)
						 : WEXITSTATUS(soft->program_status);
}

int ckt_run_soft(const struct ckt_run_options *options)
{
	static const int signals[] = {
		SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
	static struct soft soft;
	int status = EXIT_NO_SERVER;

	sigemptyset(&soft.waited);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&soft.waited, signals[i]);
	/* exec keeps an ignored SIGCHLD, with which no child could be waited for. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &soft.waited, &soft.before);
	if (!make_directory(&soft))
		return EXIT_NO_SERVER;
	if (start_server(&soft, options))
		status = run_program(&soft, options);
	stop_server(&soft);
	remove_directory(soft.directory);
	close(soft.lock);
	return status;
}
