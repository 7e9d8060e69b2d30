/* SPDX-License-Identifier: Apache-2.0 */
/* One compilation; see compile_job.h. */
#include "server/worker/compiler/compile_job.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudacommon/kernel_compiler.h"
#include "server/worker/cage/compiler_cage.h"

#define OBJECT "kernel.so"

enum { FILES_MAX = 16 /* that nftw() keeps open */ };

void ckt_compile_job_init(struct ckt_compile_job *job)
{
	*job = (struct ckt_compile_job){.pidfd = -1};
}

/* ---- The compiler's process */

/* Each is for one process; the group's time is bounded by CKT_COMPILE_WALL_MS. */
static int limit(void)
{
	static const struct {
		__rlimit_resource_t resource;
		rlim_t most;
	} limits[] = {
		/* The longest texts take a minute. */
		{RLIMIT_CPU, 180},
		/* gcc takes 1 GiB for these, and address space is more than memory. */
		{RLIMIT_AS, (rlim_t)4 << 30}, {RLIMIT_FSIZE, CKT_KERNEL_OBJECT_MAX},
		{RLIMIT_NOFILE, 256},
		{RLIMIT_CORE, 1}, /* 0 would pipe a dump to the program of core_pattern */
	};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct rlimit own;
		if (getrlimit(limits[i].resource, &own))
			return -1;
		if (own.rlim_max > limits[i].most)
			own.rlim_max = limits[i].most;
		own.rlim_cur = own.rlim_max;
		if (setrlimit(limits[i].resource, &own))
			return -1;
	}
	return 0;
}

static int place_descriptors(int text)
{
	/* Our own position in the file. */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(text, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
		dup2(null, STDERR_FILENO) < 0 || lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		return -1;
	/* CLOSE_RANGE_CLOEXEC: of those that the helper has open none is for the compiler. */
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 4);
	return 0;
}

static _Noreturn void become_compiler(const struct ckt_compile_job *job, int text)
{
	static const char *const environment[] = {
		"PATH=" CKT_KERNEL_COMPILER_PATH, "TMPDIR=.", "LC_ALL=C", NULL};
	const char *arguments[CKT_KERNEL_ARGUMENTS_MAX];
	char compiler[PATH_MAX];
	signal(SIGPIPE, SIG_DFL);
	if (setpgid(0, 0) == 0 && chdir(job->directory) == 0 &&
		ckt_kernel_compiler_find(compiler, sizeof compiler) &&
		ckt_compiler_cage_enter(job->directory, CKT_COMPILER_CAGE_INNER) == 0 &&
		place_descriptors(text) == 0 && limit() == 0) {
		ckt_kernel_compiler_arguments(compiler, OBJECT, arguments);
		execve(compiler, (char *const *)arguments, (char *const *)environment);
	}
	_exit(127);
}

int ckt_compile_job_start(struct ckt_compile_job *job, int text, const char *directory)
{
	if (snprintf(job->directory, sizeof job->directory, "%s", directory) >=
		(int)sizeof job->directory)
		return -ENAMETOOLONG;
	if (mkdir(directory, 0700))
		return -errno;
	job->pid = fork();
	if (job->pid == 0)
		become_compiler(job, text);
	int result = job->pid < 0 ? -errno : 0;
	if (!result) {
		/* Both do it, so that it is done whoever runs first. */
		setpgid(job->pid, job->pid);
		job->pidfd = (int)syscall(SYS_pidfd_open, job->pid, 0);
		result = job->pidfd < 0 ? -errno : 0;
	}
	if (!result)
		return 0;
	if (job->pid > 0) {
		kill(job->pid, SIGKILL);
		waitpid(job->pid, NULL, 0);
	}
	rmdir(directory);
	return result;
}

/* ---- Its end */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	remove(path);
	return 0;
}

/* The compiler may have left anything under that name. */
static int take_object(const struct ckt_compile_job *job, int *ret_object)
{
	char path[CKT_COMPILE_DIRECTORY_MAX + sizeof OBJECT + 1];
	struct stat st;
	snprintf(path, sizeof path, "%s/" OBJECT, job->directory);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -EIO;
	int result = fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size ? -EIO : 0;
	if (!result)
		result = ckt_kernel_file_sealed(fd, CKT_KERNEL_OBJECT_MAX, "cricket-kernel.so");
	close(fd);
	if (result >= 0)
		*ret_object = result;
	return result < 0 ? result : 0;
}

int ckt_compile_job_finish(struct ckt_compile_job *job, int *ret_object)
{
	siginfo_t info = {0};
	/* The first process is not waited for yet, so the group's number is still its own. */
	bool ended = waitid((idtype_t)P_PIDFD, (id_t)job->pidfd, &info,
			     WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid && info.si_code == CLD_EXITED && info.si_status == 0;
	kill(-job->pid, SIGKILL);
	kill(job->pid, SIGKILL);
	while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	int result = ended ? take_object(job, ret_object) : -EIO;
	nftw(job->directory, remove_one, FILES_MAX, FTW_DEPTH | FTW_PHYS);
	close(job->pidfd);
	ckt_compile_job_init(job);
	return result;
}
