/* SPDX-License-Identifier: Apache-2.0 */
/* The cage of a worker; see cage.h. */
#include "server/worker/cage/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/worker/cage/cage_paths.h"
#include "server/worker/cage/landlock.h"
#include "server/worker/cage/syscall_filter.h"

enum { STATUS_MAX = 8192 };

struct profile {
	bool soft, sockets; /* of IP and netlink */
	bool network;       /* the host's: RDMA, too */
	const char *driver;
};

static const struct {
	const char *name;
	bool soft, sockets, network;
} names[] = {
	{"soft", true, false, false},
	{"nvidia", false, false, false},
	{"soft+network", true, true, true},
	{"nvidia+network", false, true, true},
	{"soft+group", true, true, false},
	{"nvidia+group", false, true, false},
};

/* Splits PROFILE:PATH. */
static bool read_cage(const char *text, struct profile *ret_profile)
{
	size_t length = strcspn(text, ":");
	for (size_t i = 0; text[length] && i < sizeof names / sizeof *names; i++)
		if (strlen(names[i].name) == length && memcmp(text, names[i].name, length) == 0) {
			*ret_profile = (struct profile){names[i].soft, names[i].sockets,
				names[i].network, text + length + 1};
			return true;
		}
	return false;
}

static int enter_files(const struct profile *profile)
{
	struct ckt_landlock landlock;
	int result = ckt_landlock_begin(&landlock, profile->sockets);
	if (result)
		return result;
	ckt_debug("cage: Landlock version %d", landlock.abi);
	result = ckt_cage_paths_allow(&landlock, profile->driver, profile->soft, profile->network);
	if (!result)
		return ckt_landlock_enter(&landlock);
	ckt_landlock_drop(&landlock);
	return result;
}

static bool is_refused_socket(int fd)
{
	int type = 0;
	socklen_t size = sizeof type;
	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		type == SOCK_SEQPACKET;
}

/* Passes the listener to the server.  Who kept a copy could allow itself every call. */
static int pass_listener(int refused, int listener)
{
	char byte = CKT_WORKER_REFUSED_BYTE;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (listener < 0)
		return 0;
	ckt_net_fd_put(&message, &room, listener);
	int result = sendmsg(refused, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
	close(listener);
	return result;
}

static int enter_calls(bool sockets, int refused)
{
	int listener = -1;
	int result = ckt_syscall_filter_enter(sockets, refused >= 0 ? &listener : NULL);
	if (result == -EOPNOTSUPP)
		ckt_debug("cage: no filter of system calls");
	return result == -EOPNOTSUPP ? 0 : result ? result : pass_listener(refused, listener);
}

bool ckt_cage_is_off(void)
{
	const char *text = getenv("CRICKET_CAGE");
	return text && strcmp(text, "off") == 0;
}

const char *ckt_cage_driver(void)
{
	const char *text = getenv("CRICKET_CAGE");
	struct profile profile;
	return text && read_cage(text, &profile) ? profile.driver : NULL;
}

bool ckt_cage_has_network(void)
{
	const char *text = getenv("CRICKET_CAGE");
	struct profile profile;
	return !text || !read_cage(text, &profile) || profile.network;
}

/* -1 where it is not known.  Without stdio, so that every worker's allocations are the same. */
static long filters_of(const char *process)
{
	char path[64], text[STATUS_MAX];
	snprintf(path, sizeof path, "/proc/%s/status", process);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *line = strstr(text, "\nSeccomp_filters:");
	return line ? strtol(line + strlen("\nSeccomp_filters:"), NULL, 10) : -1;
}

/* How many this process has in its cage; -1: it has none of its own. */
static long own_filters = -1;

static int enter(int refused, char *ret_message, size_t message_size)
{
	const char *text = getenv("CRICKET_CAGE");
	struct profile profile;
	if (!text || ckt_cage_is_off() || strcmp(text, "none") == 0)
		return 0;
	if (!read_cage(text, &profile)) {
		snprintf(ret_message, message_size, "CRICKET_CAGE: '%s' is no cage", text);
		return -EINVAL;
	}
	const char *step = "Landlock";
	int result = enter_files(&profile);
	/* Last, because it does not allow the others. */
	if (!result) {
		step = "seccomp";
		long before = filters_of("self");
		result = enter_calls(profile.sockets, refused);
		own_filters = filters_of("self");
		if (own_filters <= before)
			own_filters = -1;
	}
	if (result)
		snprintf(ret_message, message_size,
			"cannot enter the cage: %s: %s; start the server with --cage off to do without",
			step, strerror(-result));
	return result;
}

bool ckt_cage_has_peer(int pid)
{
	char process[16];
	snprintf(process, sizeof process, "%d", pid);
	return own_filters > 0 && filters_of(process) >= own_filters;
}

int ckt_cage_enter(int refused, char *ret_message, size_t message_size)
{
	if (!is_refused_socket(refused))
		return enter(-1, ret_message, message_size);
	int result = enter(refused, ret_message, message_size);
	close(refused);
	return result;
}
