/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker is deprived of before it is executed; see spawn_cage.h. */
#include "server/daemon/session/spawn_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/daemon/server.h"
#include "server/daemon/session/group_domain.h"

bool ckt_spawn_cage_is_on(const struct ckt_server *server)
{
	return !server->options.cage || strcmp(server->options.cage, "off") != 0;
}

void ckt_spawn_cage_variable(const struct ckt_server *server, char *ret_text, size_t text_size)
{
	if (ckt_spawn_cage_is_on(server))
		snprintf(ret_text, text_size, "CRICKET_CAGE=%s%s:%s",
			server->driver.soft ? "soft" : "nvidia",
			!ckt_group_domain_has_network(server) ? ""
				: server->own_network         ? "+group"
							      : "+network",
			server->driver.path);
	else
		snprintf(ret_text, text_size, "CRICKET_CAGE=off");
}

void ckt_spawn_cage_describe(const struct ckt_server *server, char *ret_text, size_t text_size)
{
	if (!ckt_spawn_cage_is_on(server)) {
		snprintf(ret_text, text_size,
			"cage: off: a worker may do all that its user may, and debuggers may "
			"attach");
		return;
	}
	long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* its version */);
	char files[64];
	if (landlock > 0)
		snprintf(files, sizeof files, "Landlock %ld%s", landlock,
			landlock < 4           ? " (TCP is not restricted)"
				: landlock < 6 ? " (signals are not restricted)"
					       : "");
	else
		snprintf(files, sizeof files, "no Landlock (%s)", strerror(errno));
	snprintf(ret_text, text_size, "cage: no capabilities, %s, %s, %s, %s, %s", files,
		prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0 ? "no filter of system calls"
						      : "other system calls refused",
		server->mounts                ? "private /tmp and /dev/shm"
			: server->user.change ? "no private /tmp: mount namespaces are refused"
					      : "no private /tmp: the server is not root",
		server->proc.hidden ? "a /proc without others" : "a /proc with all processes",
		ckt_group_domain_has_network(server)
			? (server->own_network ? "a network of the group's own"
					       : "the host's network")
			: (server->own_network ? "no network" : "no sockets of IP"));
}

/* The kernel's file without a line's end, as a number; RLIM_INFINITY if there is none. */
static rlim_t kernel_number(const char *path)
{
	char text[32];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return RLIM_INFINITY;
	text[n] = 0;
	return (rlim_t)strtoull(text, NULL, 10);
}

/*
 * The kernel counts the threads of all processes of a user, and workers share a user.  So this is
 * no share of one worker, but half of what the machine has: whatever workers do, other users can
 * still start processes.
 */
static rlim_t process_limit(bool in_namespace)
{
	struct rlimit own;
	/* The kernel counts threads of ids of a user namespace for the server's user as well. */
	if (in_namespace && getrlimit(RLIMIT_NPROC, &own) == 0 && own.rlim_max != RLIM_INFINITY)
		return own.rlim_max / 2;
	rlim_t processes = kernel_number("/proc/sys/kernel/pid_max"),
	       threads = kernel_number("/proc/sys/kernel/threads-max");
	rlim_t least = processes < threads ? processes : threads;
	return least == RLIM_INFINITY ? least : least / 2;
}

uint64_t ckt_spawn_cage_processes(bool in_namespace)
{
	struct rlimit own;
	rlim_t most = process_limit(in_namespace);
	if (getrlimit(RLIMIT_NPROC, &own) == 0 && own.rlim_max < most)
		most = own.rlim_max;
	return most == RLIM_INFINITY ? 0 : most;
}

int ckt_spawn_cage_limit_memory(uint64_t bytes)
{
	struct rlimit limit;
	if (!bytes)
		return 0;
	if (getrlimit(RLIMIT_DATA, &limit))
		return -1;
	if (limit.rlim_max > bytes)
		limit.rlim_max = bytes;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_DATA, &limit);
}

int ckt_spawn_cage_limit(bool in_namespace)
{
	const struct {
		__rlimit_resource_t resource;
		rlim_t most;
	} limits[] = {
		/*
		 * A dump would hold the program's memory and its session's secret.  1, because with 0 the
		 * kernel still pipes a dump to the program of core_pattern.
		 */
		{RLIMIT_CORE, 1}, {RLIMIT_NPROC, process_limit(in_namespace)},
		/* A worker uses neither POSIX message queues nor real-time scheduling. */
		{RLIMIT_MSGQUEUE, 0}, {RLIMIT_RTPRIO, 0},
		/*
		 * Not limited: RLIMIT_FSIZE, because it also bounds images, which are as large as
		 * the memory of the GPUs, and the soft GPU's memory, which is a file without a
		 * name.  RLIMIT_MEMLOCK, because pinned memory and RDMA lock what the program asks
		 * for: it stays as the server's (LimitMEMLOCK in its unit).
		 */
	};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct rlimit limit;
		if (getrlimit(limits[i].resource, &limit))
			return -1;
		if (limit.rlim_max > limits[i].most)
			limit.rlim_max = limits[i].most;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(limits[i].resource, &limit))
			return -1;
	}
	return 0;
}

void ckt_spawn_cage_bound(void)
{
	int error = errno;
	/* Until the kernel says that there is no such capability, or that we may not. */
	for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++)
		continue;
	errno = error;
}

int ckt_spawn_cage_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0},
				      now[_LINUX_CAPABILITY_U32S_3];
	/* Older kernels have no ambient set to clear. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -1;
	/* The systemd unit has none, and refuses this call. */
	if (syscall(SYS_capget, &header, now) == 0 && memcmp(now, none, sizeof none) == 0)
		return 0;
	return (int)syscall(SYS_capset, &header, none);
}
