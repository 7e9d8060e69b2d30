/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of system calls; see syscall_filter.h. */
#include "server/worker/cage/syscall_filter.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "server/worker/cage/syscall_table.h"

#define REFUSED SCMP_ACT_ERRNO(EPERM)

struct profile {
	bool network;
	bool inner;       /* of a compilation */
	uint32_t refused; /* the action for a refused call: REFUSED, or whoever listens says so */
};

/* CLONE_NEWCGROUP of <linux/sched.h> is missing in glibc's <sched.h> of some releases. */
enum {
	NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
		CLONE_NEWNET | 0x02000000
};

static int allow_names(scmp_filter_ctx filter, const char *names)
{
	char name[64];
	for (const char *p = names; *p;) {
		size_t length = strcspn(p, " ");
		if (length >= sizeof name)
			return -EINVAL;
		memcpy(name, p, length);
		name[length] = 0;
		int number = seccomp_syscall_resolve_name(name);
		/* Negative: a call of another architecture. */
		int result = number >= 0 ? seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0) : 0;
		if (result)
			return result;
		p += length + (p[length] == ' ');
	}
	return 0;
}

static int allow_groups(scmp_filter_ctx filter, const struct ckt_syscall_group *groups)
{
	int result = 0;
	for (; groups->names && !result; groups++)
		result = allow_names(filter, groups->names);
	return result;
}

/* The flags of clone that glibc's threads and posix_spawn use; fork() has neither. */
static int allow_clone(scmp_filter_ctx filter, uint64_t flag)
{
	const struct scmp_arg_cmp masked = {.arg = 0,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = flag | NEW_NAMESPACES,
		.datum_b = flag};
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &masked);
}

/* For this first argument. */
static int allow_first(scmp_filter_ctx filter, int call, uint64_t argument)
{
	const struct scmp_arg_cmp equal = {.arg = 0, .op = SCMP_CMP_EQ, .datum_a = argument};
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &equal);
}

/*
 * The kernel lets a process change the limits of any other process of its user, and workers share
 * a user: for itself alone, which is 0.
 */
static int allow_own_limits(scmp_filter_ctx filter)
{
	return allow_first(filter, SCMP_SYS(prlimit64), 0);
}

/* NVIDIA's NCCL finds network interfaces (netlink), and its ranks meet over TCP. */
static int allow_sockets(scmp_filter_ctx filter, bool network)
{
	static const int kinds[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
	int result = allow_first(filter, SCMP_SYS(socketpair), AF_UNIX);
	for (size_t i = 0; i < (network ? sizeof kinds / sizeof *kinds : 1) && !result; i++)
		result = allow_first(filter, SCMP_SYS(socket), (uint64_t)kinds[i]);
	return result;
}

static int restrict_arguments(scmp_filter_ctx filter, bool network)
{
	int result = allow_clone(filter, CLONE_THREAD);
	if (!result)
		result = allow_own_limits(filter);
	/* As with limits. */
	if (!result)
		result = allow_first(filter, SCMP_SYS(sched_setaffinity), 0);
	return result ? result : allow_sockets(filter, network);
}

/*
 * A filter cannot see the flags of clone3, which lie in memory.  glibc takes clone for a kernel
 * that has no clone3.
 */
static int refuse_clone3(scmp_filter_ctx filter, const struct profile *profile)
{
	(void)profile;
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int add_rules(scmp_filter_ctx filter, const struct profile *profile)
{
	int result = allow_groups(filter, ckt_syscalls_worker);
	/* The other filter has it. */
	if (!result)
		result = allow_names(filter, "clone3");
	return result ? result : restrict_arguments(filter, profile->network);
}

static int set_attributes(scmp_filter_ctx filter, bool log)
{
	/* Kernels before 5.16 would otherwise slow down all code of a process with a filter. */
	int result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	if (!result && log)
		result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (!result)
		result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, REFUSED);
	/* no_new_privs is set, or the kernel would refuse anyway. */
	if (!result)
		result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	/* A tree instead of a list: the last of some 200 calls costs as much as the first. */
	return result ? result : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
}

/*
 * log: whether the kernel's log tells of refusals.  -EOPNOTSUPP also where a listener is wanted
 * and another filter has one.
 */
static int load(uint32_t by_default, bool log, const struct profile *profile,
	int (*add)(scmp_filter_ctx filter, const struct profile *profile), int *ret_listener)
{
	scmp_filter_ctx filter = seccomp_init(by_default);
	if (!filter)
		return -ENOMEM;
	int result = set_attributes(filter, log);
	if (!result)
		result = add(filter, profile);
	if (!result)
		result = seccomp_load(filter);
	/* libseccomp leaves the descriptor open. */
	if (!result && ret_listener)
		*ret_listener = seccomp_notify_fd(filter);
	seccomp_release(filter);
	return result == -EINVAL || result == -ECANCELED ? -EOPNOTSUPP : result;
}

static int load_profile(const struct profile *profile, int *ret_listener)
{
	return load(profile->refused, true, profile, add_rules, ret_listener);
}

int ckt_syscall_filter_enter(bool network, int *ret_listener)
{
	struct profile profile = {.network = network, .refused = SCMP_ACT_NOTIFY};
	if (ret_listener)
		*ret_listener = -1;
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		return -EOPNOTSUPP;
	/* Of its own, because a line in the log for each new thread would help nobody. */
	int result = load(SCMP_ACT_ALLOW, false, &profile, refuse_clone3, NULL);
	if (result)
		return result;
	result = ret_listener ? load_profile(&profile, ret_listener) : -EOPNOTSUPP;
	if (result != -EOPNOTSUPP)
		return result;
	profile.refused = REFUSED;
	return load_profile(&profile, NULL);
}

static int add_compiler_rules(scmp_filter_ctx filter, const struct profile *profile)
{
	int result = allow_groups(filter, ckt_syscalls_compiler);
	if (!result)
		result = allow_names(filter, "clone3");
	if (!result)
		result = allow_clone(filter, CLONE_THREAD);
	if (!result)
		result = allow_own_limits(filter);
	if (!result)
		result = allow_clone(filter, CLONE_VFORK);
	if (result || profile->inner)
		return result;
	result = allow_groups(filter, ckt_syscalls_compiling);
	return result ? result : allow_clone(filter, 0);
}

int ckt_syscall_filter_enter_compiler(bool inner)
{
	const struct profile profile = {.inner = inner, .refused = REFUSED};
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		return -EOPNOTSUPP;
	/* The inner one has the outer one's. */
	int result = inner ? 0 : load(SCMP_ACT_ALLOW, false, &profile, refuse_clone3, NULL);
	return result ? result : load(REFUSED, true, &profile, add_compiler_rules, NULL);
}
