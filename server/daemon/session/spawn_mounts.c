/* SPDX-License-Identifier: Apache-2.0 */
/* A mount namespace for each worker; see spawn_mounts.h. */
#include "server/daemon/session/spawn_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/server.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/spawn_proc.h"
#include "server/daemon/session/user_namespace.h"

enum { SOCKET_AREA = 2, HOME_AREA = 3 };

/* ---- What stays */

static void keep(struct ckt_spawn_mounts *mounts, const char *path, size_t length)
{
	for (int a = 0; a < CKT_SPAWN_AREAS; a++) {
		size_t area = strlen(mounts->areas[a]);
		if (length < area || strncmp(path, mounts->areas[a], area) != 0)
			continue;
		if (length == area || (length == area + 1 && path[area] == '/'))
			mounts->shared[a] = true;
		else if (path[area] == '/' && mounts->kept_count < CKT_SPAWN_KEPT_MAX &&
			(mounts->kept[mounts->kept_count] = strndup(path, length)))
			mounts->kept_count++;
	}
}

/* Under its own name, and where links lead. */
static void keep_both(struct ckt_spawn_mounts *mounts, const char *path)
{
	char real[PATH_MAX];
	keep(mounts, path, strlen(path));
	if (realpath(path, real) && strcmp(real, path) != 0)
		keep(mounts, real, strlen(real));
}

static void keep_directory_of(struct ckt_spawn_mounts *mounts, const char *file)
{
	char path[PATH_MAX];
	const char *slash = strrchr(file, '/');
	if (!slash || slash == file)
		return;
	snprintf(path, sizeof path, "%.*s", (int)(slash - file), file);
	keep_both(mounts, path);
	/* A link to the file. */
	char real[PATH_MAX];
	if (realpath(file, real) && (slash = strrchr(real, '/')) && slash != real)
		keep(mounts, real, (size_t)(slash - real));
}

static void keep_list(struct ckt_spawn_mounts *mounts, const char *list)
{
	char path[PATH_MAX];
	for (const char *p = list; *p;) {
		size_t length = strcspn(p, ":");
		if (*p == '/' && length < sizeof path) {
			memcpy(path, p, length);
			path[length] = 0;
			keep_both(mounts, path);
		}
		p += length + (p[length] == ':');
	}
}

static void keep_environment(struct ckt_spawn_mounts *mounts)
{
	static const char *const lists[] = {
		"LD_LIBRARY_PATH", "CUDA_MPS_PIPE_DIRECTORY", "GCOV_PREFIX"};
	static const char *const sanitizers[] = {
		"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const char *value = getenv(lists[i]);
		if (value)
			keep_list(mounts, value);
	}
	for (size_t i = 0; i < sizeof sanitizers / sizeof *sanitizers; i++) {
		const char *value = getenv(sanitizers[i]);
		char file[PATH_MAX];
		value = value ? strstr(value, "log_path=") : NULL;
		if (value && sscanf(value, "log_path=%4000[^: ]", file) == 1)
			keep_directory_of(mounts, file);
	}
	if (getenv("CRICKET_SOFT_TRACE"))
		keep_directory_of(mounts, getenv("CRICKET_SOFT_TRACE"));
	/* Where programs find the control daemon of MPS if nothing else is said. */
	keep_list(mounts, "/tmp/nvidia-mps");
}

/* ---- The server's part */

/* Whether one of the first `count' areas has the path. */
static bool is_below(const struct ckt_spawn_mounts *mounts, const char *path, int count)
{
	for (int a = 0; a < count; a++) {
		size_t length = strlen(mounts->areas[a]);
		if (strncmp(path, mounts->areas[a], length) == 0 &&
			(!path[length] || path[length] == '/'))
			return true;
	}
	return false;
}

/*
 * Below /tmp it is hidden anyway, and a directory of the root's own, such as /run, has too much
 * else in it.
 */
static void find_areas(struct ckt_spawn_mounts *mounts, const char *socket)
{
	char directory[PATH_MAX], real[PATH_MAX];
	char(*areas)[sizeof *mounts->areas] = mounts->areas;
	const char *slash = strrchr(socket, '/');
	strcpy(areas[0], "/tmp");
	strcpy(areas[1], "/var/tmp");
	snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - socket) : 0, socket);
	if (!realpath(directory, real) || strlen(real) >= sizeof *areas || !strchr(real + 1, '/')) {
		mounts->shared[SOCKET_AREA] = true;
		strcpy(areas[SOCKET_AREA], "/");
		return;
	}
	strcpy(areas[SOCKET_AREA], real);
	mounts->shared[SOCKET_AREA] = is_below(mounts, real, SOCKET_AREA);
}

/*
 * The server's user may have Cricket in a directory that is closed to others, such as a home of mode 0700: its
 * workers find an empty one in its place, with the program and the driver in it.  Root's server copies them
 * instead (worker_files.h).
 */
static void find_home(
	struct ckt_spawn_mounts *mounts, const struct ckt_worker_user *user, const char *worker)
{
	char path[sizeof *mounts->areas];
	struct stat status;
	mounts->shared[HOME_AREA] = true;
	strcpy(mounts->areas[HOME_AREA], "/");
	if (!user->user_namespace)
		return;
	for (const char *slash = strchr(worker + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (snprintf(path, sizeof path, "%.*s", (int)(slash - worker), worker) >=
			(int)sizeof path)
			return;
		if (stat(path, &status) == 0 && !(status.st_mode & S_IXOTH)) {
			mounts->shared[HOME_AREA] = is_below(mounts, path, HOME_AREA);
			strcpy(mounts->areas[HOME_AREA], path);
			return;
		}
	}
}

void ckt_spawn_mounts_init(struct ckt_spawn_mounts *mounts, const struct ckt_server *server,
	const struct ckt_worker_user *user, bool in_group, const char *cache)
{
	*mounts = (struct ckt_spawn_mounts){.wanted = server->mounts && user->change,
		.own_shm = !in_group,
		.proc = &server->proc,
		.cache = cache,
		.uid = user->uid,
		.gid = user->gid};
	if (!mounts->wanted)
		return;
	find_areas(mounts, server->socket_path);
	find_home(mounts, user, server->worker_path);
	keep_directory_of(mounts, server->worker_path);
	keep_directory_of(mounts, server->driver.path);
	keep_directory_of(mounts, server->inside_path);
	for (unsigned i = 0; i < server->library_variable_count; i++) {
		const char *value = strchr(server->library_variables[i], '=');
		if (value)
			keep_list(mounts, value + 1);
	}
	keep_environment(mounts);
	keep_list(mounts, cache);
}

void ckt_spawn_mounts_keep(struct ckt_spawn_mounts *mounts, const char *directory)
{
	if (mounts->wanted)
		keep_both(mounts, directory);
}

void ckt_spawn_mounts_keep_directory_of(struct ckt_spawn_mounts *mounts, const char *file)
{
	if (mounts->wanted)
		keep_directory_of(mounts, file);
}

void ckt_spawn_mounts_fini(struct ckt_spawn_mounts *mounts)
{
	while (mounts->kept_count)
		free(mounts->kept[--mounts->kept_count]);
}

/* ---- The child's part */

/* What the host unmounts goes in the new namespace as well; what is mounted there stays there. */
static int leave_namespace(void)
{
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ? -1 : 0;
}

/* size: as tmpfs(5) writes it. */
static int mount_shm(const char *size, unsigned uid, unsigned gid)
{
	char options[128];
	snprintf(options, sizeof options, "size=%s,nr_inodes=64k,mode=0700,uid=%u,gid=%u", size,
		uid, gid);
	return mount("cricket", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options);
}

int ckt_spawn_mounts_make_shm(const struct ckt_server *server, const struct ckt_worker_user *user)
{
	/* The ranks of NVIDIA's NCCL pass their data there if their GPUs cannot reach each other. */
	return leave_namespace() ||
			mount_shm(server->driver.soft ? "64m" : "12%", user->uid, user->gid)
		? -1
		: 0;
}

static void make_directories(const char *path)
{
	char part[PATH_MAX];
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		mkdir(part, 0755);
	}
	mkdir(path, 0755);
}

static int give_back(const struct ckt_spawn_mounts *mounts, const int *fds)
{
	char from[64];
	for (unsigned i = 0; i < mounts->kept_count; i++) {
		if (fds[i] < 0)
			continue;
		make_directories(mounts->kept[i]);
		snprintf(from, sizeof from, "/proc/self/fd/%d", fds[i]);
		if (mount(from, mounts->kept[i], NULL, MS_BIND | MS_REC, NULL))
			return -1;
		close(fds[i]);
	}
	return 0;
}

int ckt_spawn_mounts_enter(const struct ckt_spawn_mounts *mounts)
{
	int fds[CKT_SPAWN_KEPT_MAX];
	char options[128];
	if (!mounts->wanted)
		return 0;
	if (leave_namespace())
		return -1;
	for (unsigned i = 0; i < mounts->kept_count; i++)
		fds[i] = open(mounts->kept[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mounts->own_shm && mount_shm("16m", mounts->uid, mounts->gid))
		return -1;
	/* For the temporary files of compilers and libraries: no more than a worker needs of memory. */
	snprintf(options, sizeof options, "size=256m,nr_inodes=16k,mode=0700,uid=%u,gid=%u",
		mounts->uid, mounts->gid);
	for (int a = 0; a < CKT_SPAWN_AREAS; a++)
		if (!mounts->shared[a] && access(mounts->areas[a], F_OK) == 0 &&
			mount("cricket", mounts->areas[a], "tmpfs",
				MS_NOSUID | MS_NODEV | MS_NOEXEC,
				a >= SOCKET_AREA ? "size=256k,mode=0755" : options))
			return -1;
	return give_back(mounts, fds) || ckt_spawn_proc_enter(mounts->proc) ? -1 : 0;
}

void ckt_spawn_mounts_probe(struct ckt_server *server)
{
	struct ckt_spawn_mounts mounts;
	int status = -1;
	/* Without a cage, too, an id that had another owner must find none of that owner's files. */
	server->proc.hidden = false;
	server->mounts =
		server->user.change && (ckt_spawn_cage_is_on(server) || server->options.uid_range);
	if (!server->mounts)
		return;
	ckt_spawn_mounts_init(&mounts, server, &server->user, false, "");
	pid_t pid = fork();
	if (pid == 0)
		_exit(ckt_user_namespace_enter(server->user.user_namespace, server->user.gid) ||
			ckt_spawn_mounts_enter(&mounts));
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ckt_spawn_mounts_fini(&mounts);
	server->mounts = pid > 0 && status == 0;
	/* The kernel allows no fresh procfs in a user namespace that has not its own processes. */
	ckt_spawn_proc_probe(&server->proc,
		server->mounts && ckt_spawn_cage_is_on(server) && !server->user.user_namespace);
}
