/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts on other processes: their memory, descriptors, limits and lives. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/agent.h"
#include "tests/escape/attempts.h"

static pid_t victim(void)
{
	return (pid_t)ckt_escape_told_number("victim");
}

static int of_result(long result)
{
	return result < 0 ? -errno : 0;
}

/* For calls that return a descriptor. */
static int of_descriptor(long fd)
{
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

static int read_memory(void)
{
	char data[8];
	struct iovec here = {data, sizeof data},
		     there = {(void *)(uintptr_t)ckt_escape_told_number("address"), sizeof data};
	return of_result(process_vm_readv(victim(), &here, 1, &there, 1, 0));
}

static int write_memory(void)
{
	char data[8];
	struct iovec here = {data, sizeof data},
		     there = {(void *)(uintptr_t)ckt_escape_told_number("address"), sizeof data};
	if (process_vm_readv(victim(), &here, 1, &there, 1, 0) < 0 && errno != EPERM)
		return -errno;
	/* What it just read: the victim is to go on. */
	return of_result(process_vm_writev(victim(), &here, 1, &there, 1, 0));
}

static int trace(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return -errno;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return 0;
}

static int trace_victim(void)
{
	return trace(victim());
}

static int trace_server(void)
{
	return trace((pid_t)ckt_escape_told_number("server"));
}

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	return of_descriptor(open(path, flags | O_CLOEXEC));
}

static int proc_mem(void)
{
	return open_of(victim(), "mem", O_RDWR);
}

static int proc_maps(void)
{
	return open_of(victim(), "maps", O_RDONLY);
}

static int proc_environ(void)
{
	return open_of(victim(), "environ", O_RDONLY);
}

static int proc_descriptors(void)
{
	return open_of(victim(), "fd", O_RDONLY | O_DIRECTORY);
}

static int proc_root(void)
{
	return open_of(victim(), "root/tmp", O_RDONLY | O_DIRECTORY);
}

static int proc_status(void)
{
	return open_of(victim(), "status", O_RDONLY);
}

static int proc_server_status(void)
{
	return open_of((pid_t)ckt_escape_told_number("server"), "status", O_RDONLY);
}

/* Any process that is not this one. */
static int proc_list(void)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	int result = directory ? -ENOENT : -errno;
	while (directory && result && (entry = readdir(directory)))
		if (isdigit((unsigned char)*entry->d_name) &&
			strtol(entry->d_name, NULL, 10) != getpid())
			result = 0;
	if (directory)
		closedir(directory);
	return result;
}

static int proc_server_environ(void)
{
	return open_of((pid_t)ckt_escape_told_number("server"), "environ", O_RDONLY);
}

static int proc_oom(void)
{
	return open_of(victim(), "oom_score_adj", O_WRONLY);
}

/* SIGCONT: one that may send it may send SIGKILL, and this leaves the other alive. */
static int kill_victim(void)
{
	return of_result(kill(victim(), SIGCONT));
}

static int kill_server(void)
{
	return of_result(kill((pid_t)ckt_escape_told_number("server"), SIGCONT));
}

static int kill_by_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim(), 0);
	if (fd < 0)
		return -errno;
	int result = of_result(syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0));
	close(fd);
	return result;
}

static int take_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim(), 0);
	if (fd < 0)
		return -errno;
	int result = of_descriptor(syscall(SYS_pidfd_getfd, fd, 0, 0));
	close(fd);
	return result;
}

static int compare(void)
{
	return of_result(syscall(SYS_kcmp, getpid(), victim(), KCMP_VM, 0, 0));
}

static int watch_performance(void)
{
	struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attributes,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1};
	return of_descriptor(syscall(SYS_perf_event_open, &attributes, victim(), -1, -1, 0));
}

/* To what it is: one that may do that may also leave the victim without descriptors. */
static int change_limits(void)
{
	struct rlimit limit;
	if (prlimit(victim(), RLIMIT_NOFILE, NULL, &limit))
		return -errno;
	return of_result(prlimit(victim(), RLIMIT_NOFILE, &limit, NULL));
}

static int change_affinity(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set))
		return -errno;
	return of_result(sched_setaffinity(victim(), sizeof set, &set));
}

static int change_priority(void)
{
	errno = 0;
	int priority = getpriority(PRIO_PROCESS, (id_t)victim());
	if (errno)
		return -errno;
	return of_result(setpriority(PRIO_PROCESS, (id_t)victim(), priority));
}

static int change_scheduler(void)
{
	const struct sched_param parameter = {0};
	return of_result(sched_setscheduler(victim(), SCHED_OTHER, &parameter));
}

static int move_pages_of(void)
{
	void *page = (void *)(uintptr_t)(ckt_escape_told_number("address") & ~4095L);
	int status;
	return of_result(syscall(SYS_move_pages, victim(), 1, &page, NULL, &status, 0));
}

const struct ckt_escape_attempt ckt_escape_processes[] = {
	{"process-vm-readv", read_memory},
	{"process-vm-writev", write_memory},
	{"ptrace", trace_victim},
	{"ptrace-server", trace_server},
	{"proc-mem", proc_mem},
	{"proc-maps", proc_maps},
	{"proc-environ", proc_environ},
	{"proc-fd", proc_descriptors},
	{"proc-root", proc_root},
	{"proc-server-environ", proc_server_environ},
	{"proc-status", proc_status},
	{"proc-server-status", proc_server_status},
	{"proc-list", proc_list},
	{"proc-oom-score", proc_oom},
	{"kill", kill_victim},
	{"kill-server", kill_server},
	{"pidfd-send-signal", kill_by_descriptor},
	{"pidfd-getfd", take_descriptor},
	{"kcmp", compare},
	{"perf-event-open", watch_performance},
	{"prlimit", change_limits},
	{"sched-setaffinity", change_affinity},
	{"setpriority", change_priority},
	{"sched-setscheduler", change_scheduler},
	{"move-pages", move_pages_of},
	{NULL, NULL},
};
