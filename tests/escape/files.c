/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts on files: the server's, other sessions', the host's and the worker's own program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/agent.h"
#include "tests/escape/attempts.h"

extern char **environ;

static int open_path(const char *path, int flags)
{
	/* A plan without the path is a fault of the test. */
	int fd = *path ? open(path, flags | O_CLOEXEC | O_NONBLOCK) : (errno = EINVAL, -1);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int read_token(void)
{
	return open_path(ckt_escape_told("token"), O_RDONLY);
}

static int read_tokens(void)
{
	return open_path(ckt_escape_told("tokens"), O_RDONLY);
}

static int list_state(void)
{
	return open_path(ckt_escape_told("state"), O_RDONLY | O_DIRECTORY);
}

static int read_key(void)
{
	return open_path(ckt_escape_told("key"), O_RDONLY);
}

static int read_image(void)
{
	return open_path(ckt_escape_told("image"), O_RDONLY);
}

static int list_stages(void)
{
	return open_path(ckt_escape_told("images"), O_RDONLY | O_DIRECTORY);
}

static int read_audit(void)
{
	return open_path(ckt_escape_told("audit"), O_RDONLY);
}

static int write_audit(void)
{
	return open_path(ckt_escape_told("audit"), O_WRONLY | O_APPEND);
}

/* One that everybody on the host may read and write. */
static int read_public(void)
{
	return open_path(ckt_escape_told("public"), O_RDONLY);
}

static int write_public(void)
{
	return open_path(ckt_escape_told("public"), O_WRONLY | O_APPEND);
}

static int list_sockets(void)
{
	return open_path(ckt_escape_told("sockets"), O_RDONLY | O_DIRECTORY);
}

/* The directory of the victim's owner, by its name on the host. */
static int list_other_shm(void)
{
	char path[64];
	snprintf(path, sizeof path, "/dev/shm/escape-%ld", ckt_escape_told_number("victim"));
	return open_path(path, O_RDONLY);
}

/* Machine code that the victim owner's next worker would run. */
static int plant_kernel(void)
{
	char path[PATH_MAX];
	const char *cache = ckt_escape_told("cache");
	if (*cache != '/')
		return -EINVAL;
	snprintf(path, sizeof path, "%s/planted", cache);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	unlink(path);
	return 0;
}

static int list_root_home(void)
{
	return open_path("/root", O_RDONLY | O_DIRECTORY);
}

static int list_host(void)
{
	return open_path("/etc", O_RDONLY | O_DIRECTORY);
}

static int read_shadow(void)
{
	return open_path("/etc/shadow", O_RDONLY);
}

static int read_kernel_memory(void)
{
	return open_path("/dev/mem", O_RDONLY);
}

static int read_disk(void)
{
	static const char *const disks[] = {"/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/dm-0"};
	int result = -ENOENT;
	for (size_t i = 0; i < sizeof disks / sizeof *disks && result; i++)
		result = open_path(disks[i], O_RDONLY);
	return result;
}

static int open_fuse(void)
{
	return open_path("/dev/fuse", O_RDWR);
}

static int write_core_pattern(void)
{
	return open_path("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int write_cgroup(void)
{
	return open_path("/sys/fs/cgroup/cgroup.procs", O_WRONLY);
}

static int write_program(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n < 0)
		return -errno;
	path[n] = 0;
	/* A running program is busy, so a new one beside it will do, too. */
	strcpy(strrchr(path, '/') + 1, "escaped");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0)
		return -errno;
	close(fd);
	unlink(path);
	return 0;
}

static int write_library(void)
{
	const char *driver = strchr(ckt_escape_told("driver"), '/');
	return open_path(driver ? driver : "", O_WRONLY);
}

static int write_here(void)
{
	int fd = open("escaped", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	unlink("escaped");
	return 0;
}

/* Descriptors that the server left open: anything below its directories. */
static int find_inherited(void)
{
	char path[64], target[PATH_MAX];
	const char *kept[] = {"token", "tokens", "state", "images", "audit"};
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof target - 1);
		target[n > 0 ? n : 0] = 0;
		for (size_t i = 0; n > 0 && i < sizeof kept / sizeof *kept; i++) {
			const char *told = ckt_escape_told(kept[i]);
			if (*told && strncmp(target, told, strlen(told)) == 0)
				return 0;
		}
	}
	return -ENOENT;
}

static int run(const char *path)
{
	char *const arguments[] = {(char *)path, "-c", "exit 0", NULL};
	pid_t pid;
	int status, error = posix_spawn(&pid, path, NULL, NULL, arguments, environ);
	if (error)
		return -error;
	waitpid(pid, &status, 0);
	return 0;
}

static int run_shell(void)
{
	return run("/bin/sh");
}

static const char *const readable[] = {"/usr/bin/true", "/bin/true"};

static int copy_program(int to)
{
	char data[65536];
	int from = -1, result = 0;
	for (size_t i = 0; i < sizeof readable / sizeof *readable && from < 0; i++)
		from = open(readable[i], O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return -errno;
	for (ssize_t n; !result && (n = read(from, data, sizeof data)) > 0;)
		result = write(to, data, (size_t)n) == n ? 0 : -errno;
	close(from);
	return result;
}

static int run_file(void)
{
	const char *path = "/tmp/escaped";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0)
		return -errno;
	int result = copy_program(fd);
	close(fd);
	if (!result)
		result = run(path);
	unlink(path);
	return result;
}

static int run_shm_file(void)
{
	const char *path = "/dev/shm/escaped";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0)
		return -errno;
	int result = copy_program(fd);
	close(fd);
	if (!result)
		result = run(path);
	unlink(path);
	return result;
}

static int run_memory(void)
{
	char path[64];
	int fd = memfd_create("escaped", 0);
	if (fd < 0)
		return -errno;
	int result = copy_program(fd);
	/* A program that is open for writing is busy. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		result = -errno;
	close(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", again);
	if (!result)
		result = run(path);
	if (again >= 0)
		close(again);
	return result;
}

const struct ckt_escape_attempt ckt_escape_files[] = {
	{"file-token", read_token},
	{"file-tokens", read_tokens},
	{"file-state", list_state},
	{"file-key", read_key},
	{"file-image", read_image},
	{"file-stages", list_stages},
	{"file-audit", read_audit},
	{"file-audit-write", write_audit},
	{"file-public", read_public},
	{"file-public-write", write_public},
	{"file-sockets", list_sockets},
	{"file-other-shm", list_other_shm},
	{"file-other-cache", plant_kernel},
	{"file-root-home", list_root_home},
	{"file-etc", list_host},
	{"file-shadow", read_shadow},
	{"file-dev-mem", read_kernel_memory},
	{"file-disk", read_disk},
	{"file-fuse", open_fuse},
	{"file-core-pattern", write_core_pattern},
	{"file-cgroup", write_cgroup},
	{"file-own-program", write_program},
	{"file-own-driver", write_library},
	{"file-working-directory", write_here},
	{"file-inherited", find_inherited},
	{"exec-shell", run_shell},
	{"exec-tmp", run_file},
	{"exec-shm", run_shm_file},
	{"exec-memfd", run_memory},
	{NULL, NULL},
};
