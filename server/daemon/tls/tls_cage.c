/* SPDX-License-Identifier: Apache-2.0 */
/* The cage of a TLS connection; see tls_cage.h. */
#include "server/daemon/tls/tls_cage.h"

#include <errno.h>
#include <grp.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	MEMORY_MAX = 512 << 20, /* of addresses; a connection uses some megabytes */
	DESCRIPTORS_MAX = 64,
};

/* Sanitizers take terabytes of addresses. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static const int calls[] = {SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(recvfrom), SCMP_SYS(sendto),
	SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(shutdown),
	SCMP_SYS(close), SCMP_SYS(getsockopt), SCMP_SYS(getsockname), SCMP_SYS(setsockopt),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex),
	SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
	SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group)};

static int allow(scmp_filter_ctx filter, int call, const struct scmp_arg_cmp *is)
{
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, is ? 1 : 0, is);
}

static int filter_calls(void)
{
	const struct scmp_arg_cmp no_code = {
		.arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = 0};
	const struct scmp_arg_cmp queue = {.arg = 1, .op = SCMP_CMP_EQ, .datum_a = SIOCOUTQ};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return -ENOMEM;
	int result = 0;
	for (size_t i = 0; i < sizeof calls / sizeof *calls && !result; i++)
		result = allow(filter, calls[i], NULL);
	if (!result)
		result = allow(filter, SCMP_SYS(mmap), &no_code);
	if (!result)
		result = allow(filter, SCMP_SYS(mprotect), &no_code);
	if (!result)
		result = allow(filter, SCMP_SYS(ioctl), &queue);
	if (!result)
		result = seccomp_load(filter);
	seccomp_release(filter);
	return result;
}

static int limit(int resource, rlim_t most)
{
	const struct rlimit limit = {most, most};
	return setrlimit(resource, &limit) ? -errno : 0;
}

int ckt_tls_cage_enter(uid_t uid, gid_t gid)
{
	int result = limit(RLIMIT_CORE, 0);
	if (!result)
		result = limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
	if (!result && !SANITIZED)
		result = limit(RLIMIT_AS, MEMORY_MAX);
	if (!result && uid &&
		(setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)))
		result = -errno;
	/* The key is in this memory: nobody but root may look. */
	if (!result &&
		(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		result = -errno;
	return result ? result : filter_calls();
}
