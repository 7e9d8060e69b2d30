/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/syscall_table.c: names that exist, each once, and no way out of a cage. */
#include "server/worker/cage/syscall_table.h"

#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

enum { NAMES_MAX = 512 };

struct names {
	char list[NAMES_MAX][48];
	unsigned count;
};

static bool has(const struct names *names, const char *name)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->list[i], name) == 0)
			return true;
	return false;
}

static void collect(const struct ckt_syscall_group *groups, struct names *ret)
{
	for (; groups->names; groups++) {
		char text[4096];
		YES(groups->why && strlen(groups->why) > 3);
		NO(strstr(groups->names, "  "));
		MUST(strlen(groups->names) < sizeof text, 1);
		strcpy(text, groups->names);
		for (char *save, *name = strtok_r(text, " ", &save); name;
			name = strtok_r(NULL, " ", &save)) {
			MUST(ret->count < NAMES_MAX && strlen(name) < 48, 1);
			if (has(ret, name))
				printf("twice: %s\n", name);
			NO(has(ret, name));
			strcpy(ret->list[ret->count++], name);
		}
	}
}

/* Ways out of a cage: other processes, users, namespaces, the kernel, and what hides calls. */
static const char *const never[] = {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp",
	"pidfd_getfd", "perf_event_open", "mount", "umount2", "pivot_root", "chroot", "setns",
	"unshare", "open_tree", "move_mount", "fsopen", "open_by_handle_at", "setuid", "setgid",
	"setresuid", "setresgid", "setgroups", "capset", "setsid", "setpgid", "init_module",
	"finit_module", "kexec_load", "bpf", "syslog", "iopl", "ioperm", "modify_ldt",
	"settimeofday", "clock_settime", "sethostname", "keyctl", "add_key", "request_key",
	"io_uring_setup", "io_uring_enter", "userfaultfd", "vmsplice", "personality",
	"fanotify_init", "setpriority", "sched_setscheduler", "sched_setattr", "move_pages",
	"migrate_pages", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "seccomp", "fork"};
/* Those that the filter restricts by their arguments. */
static const char *const restricted[] = {
	"clone", "clone3", "prlimit64", "sched_setaffinity", "socket", "socketpair"};

/* A compilation has its own programs to run; a worker executes nothing. */
static const char *const programs[] = {"execve", "execveat", "vfork", "wait4", "waitid"};

static void test_worker(void)
{
	static struct names worker;
	collect(ckt_syscalls_worker, &worker);
	YES(worker.count > 100);
	for (unsigned i = 0; i < COUNT(never); i++)
		NO(has(&worker, never[i]));
	for (unsigned i = 0; i < COUNT(restricted); i++)
		NO(has(&worker, restricted[i]));
	for (unsigned i = 0; i < COUNT(programs); i++)
		NO(has(&worker, programs[i]));
	unsigned known = 0;
	for (unsigned i = 0; i < worker.count; i++) {
		int number = seccomp_syscall_resolve_name(worker.list[i]);
		known += number >= 0;
		/* A name with a typing error is one that libseccomp knows for no architecture. */
		if (number == __NR_SCMP_ERROR)
			printf("not known to this libseccomp: %s\n", worker.list[i]);
	}
	YES(known > 100);
}

static void test_compiler(void)
{
	static struct names compiler;
	collect(ckt_syscalls_compiler, &compiler);
	for (unsigned i = 0; i < COUNT(never); i++)
		NO(has(&compiler, never[i]));
	for (unsigned i = 0; i < COUNT(restricted); i++)
		NO(has(&compiler, restricted[i]));
	/* A compilation stays in its process group, and reaches nobody. */
	static const char *const reaching[] = {"kill", "tgkill", "connect", "bind", "sendmsg"};
	for (unsigned i = 0; i < COUNT(reaching); i++)
		NO(has(&compiler, reaching[i]));
	/* What starts it has more; no name is in both tables. */
	collect(ckt_syscalls_compiling, &compiler);
	NO(has(&compiler, "socket") || has(&compiler, "connect"));
}

UNIT_SUITE(syscall_table, {"worker", test_worker}, {"compiler", test_compiler})
