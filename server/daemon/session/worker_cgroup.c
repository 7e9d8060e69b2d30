/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup for each worker; see worker_cgroup.h. */
#include "server/daemon/session/worker_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "server/daemon/server.h"

#define PREFIX "worker-"
#define SERVER "server"

enum {
	/*
	 * Programs with hundreds of threads have as many in their worker, and compilers and NCCL
	 * add some; a fork bomb meets the limit in a moment.
	 */
	TASKS_MAX = 4096,
	LINE_MAX_BYTES = 2 * CKT_PATH_MAX,
	/* The server waits a tenth of a second at most for what it has killed; later it sweeps. */
	LOOKS_MAX = 10,
	LOOK_NS = 10000000,
};

/* Of the driver's contexts, libraries and buffers, which no session's limit counts. */
#define OVERHEAD_BYTES (UINT64_C(2) << 30)

/* ---- Finding it */

/* Where cgroup2 is mounted, and which cgroup is its root there. */
static bool find_mount(const char *path, char ret_point[CKT_PATH_MAX], char ret_root[CKT_PATH_MAX])
{
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_BYTES];
	bool found = false;
	while (file && !found && fgets(line, sizeof line, file)) {
		const char *dash = strstr(line, " - ");
		found = dash && strncmp(dash, " - cgroup2 ", 11) == 0 &&
			sscanf(line, "%*u %*u %*s %4095s %4095s", ret_root, ret_point) == 2;
	}
	if (file)
		fclose(file);
	return found;
}

static bool find_own(const char *path, char ret_own[CKT_PATH_MAX])
{
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_BYTES];
	bool found = false;
	while (file && !found && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		found = strncmp(line, "0::/", 4) == 0 &&
			snprintf(ret_own, CKT_PATH_MAX, "%s", line + 3) < CKT_PATH_MAX;
	}
	if (file)
		fclose(file);
	return found;
}

/* Root may write everywhere, so systemd marks what it gave away. */
static bool is_delegated(const char *directory)
{
	static const char *const marks[] = {"user.delegate", "trusted.delegate"};
	char path[CKT_PATH_MAX], value[8];
	snprintf(path, sizeof path, "%.4000s/cgroup.procs", directory);
	if (access(directory, W_OK) || access(path, W_OK))
		return false;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (getxattr(directory, marks[i], value, sizeof value) == 1 && *value == '1')
			return true;
	return geteuid() != 0;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t size = (ssize_t)strlen(text);
	int result = fd < 0 ? -errno : write(fd, text, (size_t)size) == size ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	return result;
}

static int write_in(
	const struct ckt_server *server, const char *name, const char *file, const char *text)
{
	char path[CKT_PATH_MAX];
	if (snprintf(path, sizeof path, "%.4000s/%s/%s", server->cgroup_dir, name, file) >=
		(int)sizeof path)
		return -ENAMETOOLONG;
	return write_text(path, text);
}

/* The names of those that could be enabled. */
static void enable(const char *directory, char *ret_names, size_t size)
{
	static const char *const controllers[] = {"memory", "pids", "cpu"};
	char path[CKT_PATH_MAX], text[16];
	size_t used = 0;
	*ret_names = 0;
	snprintf(path, sizeof path, "%.4000s/cgroup.subtree_control", directory);
	for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
		snprintf(text, sizeof text, "+%s", controllers[i]);
		if (write_text(path, text) == 0)
			used += (size_t)snprintf(
				ret_names + used, size - used, " %s", controllers[i]);
	}
}

/*
 * The delegated one is the server's own, and whoever started it has made a cgroup for it there: the unit, for a systemd
 * that cannot put it there (before 254).
 */
static bool enter_prepared(const char *own)
{
	char path[CKT_PATH_MAX];
	if (!is_delegated(own) ||
		snprintf(path, sizeof path, "%s/" SERVER "/cgroup.procs", own) >= (int)sizeof path)
		return false;
	return write_text(path, "0") == 0;
}

/* The delegated one is above the server's, which dir names before. */
static bool take_parent(char *dir)
{
	char *slash = strrchr(dir, '/');
	if (!slash[1])
		return false;
	*slash = 0;
	return is_delegated(dir);
}

void ckt_worker_cgroups_init(struct ckt_server *server, const char *mounts, const char *own,
	char *ret_text, size_t text_size)
{
	char point[CKT_PATH_MAX], root[CKT_PATH_MAX], group[CKT_PATH_MAX], names[32];
	char *dir = server->cgroup_dir;
	*dir = 0;
	if (!find_mount(mounts ? mounts : "/proc/self/mountinfo", point, root) ||
		!find_own(own ? own : "/proc/self/cgroup", group)) {
		snprintf(ret_text, text_size, "cgroups: none: this host has no version 2");
		return;
	}
	size_t skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
	const char *below = strncmp(group, root, skip) == 0 ? group + skip : group;
	snprintf(dir, CKT_PATH_MAX, "%.2000s%.2000s", point, below);
	if (strlen(below) <= 1 || !(enter_prepared(dir) || take_parent(dir))) {
		*dir = 0;
		snprintf(ret_text, text_size,
			"cgroups: none for workers: the server is not in a cgroup of its own in a "
			"delegated one (systemd: Delegate=memory pids cpu, DelegateSubgroup=server)");
		return;
	}
	enable(dir, names, sizeof names);
	snprintf(ret_text, text_size, "cgroups: one for each worker in %s, with limits of%s", dir,
		*names ? names : " nothing: no controller is there");
}

/* ---- One of them */

struct ckt_cgroup_limits ckt_worker_cgroup_limits(
	const struct ckt_server *server, uint64_t host_memory_bytes, uint64_t device_memory_bytes)
{
	struct ckt_cgroup_limits limits = {.tasks = TASKS_MAX};
	uint64_t device = 0;
	if (!host_memory_bytes)
		return limits;
	/* The soft GPU's memory is the worker's. */
	for (unsigned i = 0; server->driver.soft && i < server->driver.gpu_count; i++)
		device += device_memory_bytes ? device_memory_bytes
					      : server->driver.gpus[i].memory_bytes;
	limits.memory_bytes = host_memory_bytes + device + OVERHEAD_BYTES;
	return limits;
}

/* Whether it has more memory already: a limit would kill its worker. */
static bool uses(const struct ckt_server *server, const char *name, uint64_t bytes)
{
	char path[CKT_PATH_MAX];
	unsigned long long now = 0;
	if (snprintf(path, sizeof path, "%.4000s/%s/memory.current", server->cgroup_dir, name) >=
		(int)sizeof path)
		return false;
	FILE *file = fopen(path, "re");
	bool found = file && fscanf(file, "%llu", &now) == 1;
	if (file)
		fclose(file);
	return found && now >= bytes;
}

int ckt_worker_cgroup_limit(
	const struct ckt_server *server, const char *name, const struct ckt_cgroup_limits *limits)
{
	char text[32];
	if (!*name)
		return 0;
	/* A controller that the server did not get has no file. */
	snprintf(text, sizeof text, "%u", limits->tasks);
	int pids = write_in(server, name, "pids.max", text), memory = 0;
	snprintf(text, sizeof text, "%llu", (unsigned long long)limits->memory_bytes);
	if (limits->memory_bytes && !uses(server, name, limits->memory_bytes))
		memory = write_in(server, name, "memory.max", text);
	return pids && pids != -ENOENT ? pids : memory && memory != -ENOENT ? memory : 0;
}

int ckt_worker_cgroup_create(const struct ckt_server *server, uint64_t number,
	const struct ckt_cgroup_limits *limits, char ret_name[CKT_CGROUP_NAME])
{
	char path[CKT_PATH_MAX];
	*ret_name = 0;
	if (!*server->cgroup_dir)
		return 0;
	ckt_worker_cgroups_sweep(server);
	snprintf(ret_name, CKT_CGROUP_NAME, PREFIX "%d-%llu", (int)getpid(),
		(unsigned long long)number);
	snprintf(path, sizeof path, "%.4000s/%s", server->cgroup_dir, ret_name);
	if (mkdir(path, 0755)) {
		*ret_name = 0;
		return -errno;
	}
	int result = ckt_worker_cgroup_limit(server, ret_name, limits);
	if (result) {
		rmdir(path);
		*ret_name = 0;
	}
	return result;
}

int ckt_worker_cgroup_enter(const struct ckt_server *server, const char *name)
{
	int result = *name ? write_in(server, name, "cgroup.procs", "0") : 0;
	errno = -result;
	return result ? -1 : 0;
}

void ckt_worker_cgroup_adopt(
	const struct ckt_server *server, pid_t pid, char ret_name[CKT_CGROUP_NAME])
{
	char path[CKT_PATH_MAX], group[CKT_PATH_MAX];
	struct stat status;
	*ret_name = 0;
	snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	if (!*server->cgroup_dir || !find_own(path, group))
		return;
	const char *name = strrchr(group, '/') + 1;
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || strlen(name) >= CKT_CGROUP_NAME)
		return;
	snprintf(path, sizeof path, "%.4000s/%s", server->cgroup_dir, name);
	if (stat(path, &status) == 0)
		strcpy(ret_name, name);
}

void ckt_worker_cgroup_remove(const struct ckt_server *server, const char *name)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	char path[CKT_PATH_MAX];
	snprintf(path, sizeof path, "%.4000s/%s", server->cgroup_dir, name);
	if (!*name || rmdir(path) == 0)
		return;
	/* Kernels before 5.14 lack it: children that outlive their worker end by themselves there. */
	write_in(server, name, "cgroup.kill", "1");
	for (int i = 0; i < LOOKS_MAX && rmdir(path) && errno == EBUSY; i++)
		nanosleep(&pause, NULL);
}

/* Of a server that lives: its worker may be about to enter it. */
static bool is_anothers(const char *name)
{
	int pid = 0;
	return sscanf(name, PREFIX "%d-", &pid) == 1 && pid > 0 && pid != (int)getpid() &&
		(kill(pid, 0) == 0 || errno == EPERM);
}

void ckt_worker_cgroups_sweep(const struct ckt_server *server)
{
	DIR *dir = *server->cgroup_dir ? opendir(server->cgroup_dir) : NULL;
	/* The kernel keeps one that has a process in it. */
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
			!is_anothers(entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
}
