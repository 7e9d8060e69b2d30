/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's own view of /proc; see spawn_proc.h. */
#include "server/daemon/session/spawn_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* By name: kernels before 5.8, which would hide processes of the whole host, do not know it. */
#define OPTION "hidepid=ptraceable"

/* ---- The server's part */

static bool is_kept(const struct ckt_spawn_proc *proc, const char *path)
{
	for (unsigned i = 0; i < proc->kept_count; i++) {
		size_t length = strlen(proc->kept[i]);
		if (strncmp(path, proc->kept[i], length) == 0 &&
			(!path[length] || path[length] == '/'))
			return true;
	}
	return false;
}

/* A line of mountinfo; parents stand before what is mounted in them. */
static int read_line(struct ckt_spawn_proc *proc, const char *line)
{
	char path[CKT_SPAWN_PROC_PATH];
	const char *dash = strstr(line, " - ");
	int end = 0;
	if (!dash || sscanf(line, "%*u %*u %*s %*s %n", &end) < 0 || !end ||
		strncmp(line + end, "/proc/", strlen("/proc/")) != 0)
		return 0;
	size_t length = strcspn(line + end, " ");
	/* Opening it would mount what nobody asked for. */
	if (strncmp(dash, " - autofs ", strlen(" - autofs ")) == 0)
		return 0;
	/* With a backslash: a name with a space, which nothing in /proc has. */
	if (length >= sizeof path || memchr(line + end, '\\', length))
		return -ENAMETOOLONG;
	memcpy(path, line + end, length);
	path[length] = 0;
	if (is_kept(proc, path))
		return 0;
	if (proc->kept_count == CKT_SPAWN_PROC_KEPT_MAX)
		return -E2BIG;
	strcpy(proc->kept[proc->kept_count++], path);
	return 0;
}

int ckt_spawn_proc_read(struct ckt_spawn_proc *proc, const char *path)
{
	char *line = NULL;
	size_t size = 0;
	FILE *file = fopen(path, "re");
	int result = file ? 0 : -errno;
	proc->kept_count = 0;
	while (file && !result && getline(&line, &size, file) > 0)
		result = read_line(proc, line);
	free(line);
	if (file)
		fclose(file);
	return result;
}

/* Whether the topmost /proc hides processes. */
static bool hides(void)
{
	char *line = NULL;
	size_t size = 0;
	bool result = false;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	while (file && getline(&line, &size, file) > 0) {
		const char *dash = strstr(line, " - ");
		int end = 0;
		if (dash && sscanf(line, "%*u %*u %*s %*s %n", &end) >= 0 && end &&
			strncmp(line + end, "/proc ", strlen("/proc ")) == 0)
			result = strstr(dash, OPTION);
	}
	free(line);
	if (file)
		fclose(file);
	return result;
}

static bool sockets_name_processes(void)
{
	int ends[2], fd = -1;
	socklen_t size = sizeof fd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	bool result = getsockopt(ends[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0 && fd >= 0;
	if (result)
		close(fd);
	close(ends[0]);
	close(ends[1]);
	return result;
}

void ckt_spawn_proc_probe(struct ckt_spawn_proc *proc, bool wanted)
{
	int status = -1;
	*proc = (struct ckt_spawn_proc){0};
	if (!wanted || !sockets_name_processes() ||
		ckt_spawn_proc_read(proc, "/proc/self/mountinfo"))
		return;
	proc->hidden = true;
	pid_t pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ||
			ckt_spawn_proc_enter(proc) || !hides());
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	proc->hidden = pid > 0 && status == 0;
}

/* ---- The child's part */

static int bind_kept(const struct ckt_spawn_proc *proc, const int *fds)
{
	char from[64];
	for (unsigned i = 0; i < proc->kept_count; i++) {
		if (fds[i] < 0)
			continue;
		snprintf(from, sizeof from, "/proc/self/fd/%d", fds[i]);
		if (mount(from, proc->kept[i], NULL, MS_BIND | MS_REC, NULL))
			return -1;
		close(fds[i]);
	}
	return 0;
}

int ckt_spawn_proc_enter(const struct ckt_spawn_proc *proc)
{
	int fds[CKT_SPAWN_PROC_KEPT_MAX];
	struct statvfs old;
	if (!proc->hidden)
		return 0;
	if (statvfs("/proc", &old))
		return -1;
	/* One that was unmounted since is no loss. */
	for (unsigned i = 0; i < proc->kept_count; i++)
		fds[i] = open(proc->kept[i], O_PATH | O_CLOEXEC);
	if (mount("proc", "/proc", "proc",
		    MS_NOSUID | MS_NODEV | MS_NOEXEC | (old.f_flag & ST_RDONLY ? MS_RDONLY : 0),
		    OPTION))
		return -1;
	return bind_kept(proc, fds);
}
