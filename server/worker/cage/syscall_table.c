/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a worker; see syscall_table.h.
 *
 * Names of other architectures, or newer than libseccomp, are skipped.
 */
#include "server/worker/cage/syscall_table.h"

#include <stddef.h>

/* What workers and compilers share. */
#define MEMORY                                                                        \
	"brk mmap munmap mremap mprotect madvise msync mincore mlock mlock2 munlock " \
	"memfd_create membarrier get_mempolicy mbind set_mempolicy"
#define THREADS                                                                            \
	"futex futex_waitv set_robust_list get_robust_list rseq set_tid_address gettid "   \
	"sched_yield sched_getaffinity sched_getparam sched_getscheduler "                 \
	"sched_get_priority_max sched_get_priority_min getcpu arch_prctl exit exit_group " \
	"restart_syscall prctl"
#define TIME                                                                            \
	"clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times " \
	"timerfd_create timerfd_settime timerfd_gettime timer_create timer_settime "    \
	"timer_delete alarm setitimer getitimer"
#define FILES                                                                                    \
	"open openat openat2 close close_range read write readv writev pread64 pwrite64 preadv " \
	"pwritev preadv2 pwritev2 lseek stat fstat lstat newfstatat statx statfs fstatfs "       \
	"access faccessat faccessat2 getdents64 getdents getcwd chdir readlink readlinkat "      \
	"fcntl flock fsync fdatasync ftruncate truncate fallocate fadvise64 sync_file_range "    \
	"copy_file_range sendfile splice dup dup2 dup3 pipe pipe2 umask utimensat ioctl"
#define NAMES                                                                                \
	"mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink " \
	"symlinkat chmod fchmod fchmodat"
#define WAITING                                                            \
	"poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl " \
	"epoll_wait epoll_pwait eventfd eventfd2"
#define WHO                                                                              \
	"getpid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid " \
	"getresgid getgroups uname sysinfo getrandom getrlimit getrusage capget"

/*
 * Recorded from programs of tests/programs and from checkpoints: with the soft GPU by strace
 * (2026-11-23), and with NVIDIA's driver 580.159.04 on an H200 by tests/gpu/syscalls (2026-11-24: 82
 * workers, 58 calls).  NVIDIA's driver made no call that the soft GPU's workers do not make.  Added
 * are the siblings of what was seen: a libc uses newfstatat where another uses fstat.
 */
const struct ckt_syscall_group ckt_syscalls_worker[] = {
	{"memory of the heap, of libraries, of devices and pinned memory", MEMORY},
	{"threads: of the worker and of the driver; clone is restricted further", THREADS},
	{"signals; Landlock keeps them in the worker where it is new enough",
		"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigsuspend "
		"rt_sigpending sigaltstack kill tgkill pidfd_open pidfd_send_signal"},
	{"time", TIME},
	{"files and devices that Landlock allows, and images by their descriptors", FILES},
	{"names in the cache of compiled kernels, /tmp and /dev/shm", NAMES},
	{"waiting for connections", WAITING},
	{"connections to the client, the server and other workers; socket is restricted further",
		"bind listen accept accept4 connect getsockname getpeername getsockopt setsockopt "
		"sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown"},
	{"who and where we are; prlimit64 and sched_setaffinity are allowed for the caller itself",
		WHO},
	{NULL, NULL},
};

/* What gcc and clang called as children of workers, whose table they had until 2026-11-23. */
const struct ckt_syscall_group ckt_syscalls_compiler[] = {
	{"memory", MEMORY},
	{"threads; clone is restricted further", THREADS},
	{"signals that it receives; it sends none",
		"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigsuspend "
		"rt_sigpending sigaltstack"},
	{"time", TIME},
	{"files that Landlock allows", FILES},
	{"names in its directory", NAMES},
	{"waiting for its own children", WAITING},
	{"who and where we are; the same holds for prlimit64", WHO},
	{"its own programs: compiler, assembler, linker", "vfork execve wait4 waitid"},
	{NULL, NULL},
};

const struct ckt_syscall_group ckt_syscalls_compiling[] = {
	{"requests and answers over sockets that it was given", "recvmsg sendmsg shutdown"},
	{"starting and ending compilations", "fork setpgid kill pidfd_open"},
	{"the inner cage",
		"landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp"},
	{NULL, NULL},
};
