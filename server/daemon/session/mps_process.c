/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of an MPS control daemon; see mps_process.h. */
#include "server/daemon/session/mps_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/server.h"
#include "server/daemon/session/mps_control.h"
#include "server/daemon/session/spawn_group.h"

/* Of the longest name of its pipes, control_privileged. */
enum { NAME_ROOM = 24, IS_THERE_MS = 1800 };

/* What the daemon passes on to its servers. */
static const char *const passed[] = {
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH"};

struct work {
	const struct ckt_mps_process_place *place;
	enum ckt_mps_task task;
	pid_t client;
	struct ckt_mps_control control;
	const char *environment[CKT_MPS_ENVIRONMENT + 1];
};

int ckt_mps_process_place(struct ckt_mps_process_place *ret_place, struct ckt_server *server,
	const struct ckt_worker_user *user, const char *directory)
{
	if (strlen(directory) + NAME_ROOM > sizeof((struct sockaddr_un *)NULL)->sun_path)
		return -ENAMETOOLONG;
	ret_place->server = server;
	ret_place->user = user;
	snprintf(ret_place->directory, CKT_MPS_TEXT, "%.200s", directory);
	snprintf(ret_place->pipes, CKT_MPS_TEXT, "CUDA_MPS_PIPE_DIRECTORY=%.200s", directory);
	snprintf(ret_place->logs, CKT_MPS_TEXT, "CUDA_MPS_LOG_DIRECTORY=%.200s/logs", directory);
	return 0;
}

/* ---- In the child */

static int become_daemon(const struct work *work)
{
	const char *const arguments[] = {"nvidia-cuda-mps-control", "-f", NULL};
	if (chdir(work->place->directory) || (mkdir("logs", 0700) && errno != EEXIST))
		return CKT_GROUP_PROCESS_FAILED;
	execve(work->place->program, (char *const *)arguments, (char *const *)work->environment);
	return CKT_GROUP_PROCESS_FAILED;
}

/* One level; what a member of the group makes besides is in nobody's way but its own. */
static void empty(int parent, const char *name)
{
	char buffer[4096] __attribute__((aligned(8)));
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	long n;
	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
		for (long at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);
			at += entry->d_reclen;
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				unlinkat(fd, entry->d_name, 0);
		}
	if (fd >= 0)
		close(fd);
}

static int remove_files(const struct work *work)
{
	if (chdir(work->place->directory))
		return 0;
	empty(AT_FDCWD, "logs");
	rmdir("logs");
	empty(AT_FDCWD, ".");
	return 0;
}

static int terminate(const struct work *work)
{
	int result = ckt_mps_control_terminate(&work->control, work->client);
	syscall(SYS_pidfd_send_signal, CKT_GROUP_PROCESS_FD, SIGKILL, NULL, 0);
	return result ? EXIT_FAILURE : 0;
}

static int run(const void *context)
{
	const struct work *work = context;
	char answer[256];
	switch (work->task) {
	case CKT_MPS_DAEMON:
		return become_daemon(work);
	case CKT_MPS_IS_THERE:
		return !ckt_mps_control_is_there(&work->control, IS_THERE_MS);
	case CKT_MPS_TERMINATE:
		return terminate(work);
	case CKT_MPS_QUIT:
		return ckt_mps_control_ask(&work->control, "quit\n", answer, sizeof answer) ? 1 : 0;
	default:
		return remove_files(work);
	}
}

/* ---- In the server */

static pid_t start(
	const struct ckt_mps_process_place *place, enum ckt_mps_task task, pid_t client, int pidfd)
{
	static char kept[sizeof passed / sizeof *passed][CKT_PATH_MAX];
	struct work work = {.place = place, .task = task, .client = client};
	unsigned count = 0;
	work.environment[count++] = place->pipes;
	work.environment[count++] = place->logs;
	work.environment[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		const char *value = getenv(passed[i]);
		if (value &&
			snprintf(kept[i], CKT_PATH_MAX, "%s=%s", passed[i], value) < CKT_PATH_MAX)
			work.environment[count++] = kept[i];
	}
	work.control = (struct ckt_mps_control){place->program, work.environment};
	const struct ckt_group_process process = {.user = place->user,
		.domain = place->domain,
		.directory = place->directory,
		.program = place->program,
		.fd = pidfd,
		.run = run,
		.context = &work};
	return ckt_group_process_start(place->server, &process);
}

pid_t ckt_mps_process_start(const struct ckt_mps_process_place *place, enum ckt_mps_task task)
{
	return start(place, task, 0, -1);
}

int ckt_mps_process_wait(
	const struct ckt_mps_process_place *place, enum ckt_mps_task task, int timeout_ms)
{
	pid_t pid = start(place, task, 0, -1);
	int status = 0;
	if (pid < 0)
		return pid;
	struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	if (ended.fd < 0 || poll(&ended, 1, timeout_ms) <= 0)
		kill(pid, SIGKILL);
	if (ended.fd >= 0)
		close(ended.fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ETIMEDOUT;
}

/* A process that nobody waits for but the loop. */
struct detached {
	struct ckt_source source;
	struct ckt_server *server;
};

static void reap(struct ckt_source *source, uint32_t events)
{
	struct detached *detached = CKT_CONTAINER(source, struct detached, source);
	siginfo_t info = {0};
	(void)events;
	if (waitid((idtype_t)P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG) == 0 &&
		!info.si_pid)
		return;
	close(ckt_loop_remove(&detached->server->loop, source));
	free(detached);
}

int ckt_mps_process_detach(
	const struct ckt_mps_process_place *place, enum ckt_mps_task task, pid_t client, int pidfd)
{
	struct detached *detached = calloc(1, sizeof *detached);
	if (!detached)
		return -ENOMEM;
	pid_t pid = start(place, task, client, pidfd);
	int result = pid < 0 ? (int)pid : 0;
	detached->server = place->server;
	detached->source = (struct ckt_source){
		.fd = result ? -1 : (int)syscall(SYS_pidfd_open, pid, 0), .ready = reap};
	if (!result && detached->source.fd < 0)
		result = -errno;
	if (!result)
		result = ckt_loop_add(&place->server->loop, &detached->source, EPOLLIN);
	if (!result)
		return 0;
	if (detached->source.fd >= 0)
		close(detached->source.fd);
	free(detached);
	return result;
}
