/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock by its system calls; see landlock.h. */
#include "server/worker/cage/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights as the kernel numbers them (its documentation: userspace-api/landlock.rst). */
enum {
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_DIR = 1 << 3,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	/* 6 to 12: to make a device, a directory, a file, a socket, a pipe, a disk or a link */
	MAKE_DIR = 1 << 7,
	MAKE_FILE = 1 << 8,
	MAKE_SOCKET = 1 << 9,
	MAKE_PIPE = 1 << 10,
	MAKE_LINK = 1 << 12,
	REFER = 1 << 13,     /* since version 2: rename or link into another directory */
	TRUNCATE = 1 << 14,  /* 3 */
	IOCTL_DEV = 1 << 15, /* 5 */
};
enum { ALL_1 = (1 << 13) - 1 };
enum { BIND_TCP = 1, CONNECT_TCP = 2 }; /* 4 */
/*
 * 6.  Its sibling, the scope of abstract sockets, is the group's, whose workers meet at such sockets
 * (server/daemon/session/group_domain.c).
 */
enum { SCOPE_SIGNAL = 2 };
enum { VERSION_FLAG = 1, RULE_PATH_BENEATH = 1 };

struct ruleset {
	uint64_t files, net, scoped;
};

struct path_beneath {
	uint64_t rights;
	int32_t fd;
} __attribute__((packed));

static uint64_t handled_files(int abi)
{
	return (uint64_t)ALL_1 | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) |
		(abi >= 5 ? IOCTL_DEV : 0);
}

int ckt_landlock_begin(struct ckt_landlock *landlock, bool tcp)
{
	*landlock = (struct ckt_landlock){.fd = -1};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION_FLAG);
	/* Not compiled in, not started with the kernel, or refused by a container's filter. */
	if (abi < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
	struct ruleset rules = {.files = handled_files((int)abi),
		.net = abi >= 4 && !tcp ? BIND_TCP | CONNECT_TCP : 0,
		.scoped = abi >= 6 ? SCOPE_SIGNAL : 0};
	/* A kernel refuses a structure that is longer than its own, unless the rest is 0. */
	long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
	if (fd < 0)
		return -errno;
	landlock->fd = (int)fd;
	landlock->abi = (int)abi;
	landlock->files = rules.files;
	return 0;
}

static uint64_t of_rights(unsigned rights)
{
	uint64_t result = 0;
	if (rights & CKT_LANDLOCK_READ)
		result |= READ_FILE | READ_DIR;
	if (rights & CKT_LANDLOCK_EXECUTE)
		result |= READ_FILE | EXECUTE;
	if (rights & CKT_LANDLOCK_WRITE)
		result |= WRITE_FILE | TRUNCATE | IOCTL_DEV;
	if (rights & CKT_LANDLOCK_MAKE)
		result |= MAKE_DIR | MAKE_FILE | MAKE_SOCKET | MAKE_PIPE | MAKE_LINK | REMOVE_DIR |
			REMOVE_FILE | REFER;
	if (rights & CKT_LANDLOCK_CLEAR)
		result |= REMOVE_DIR;
	return result;
}

int ckt_landlock_allow(struct ckt_landlock *landlock, const char *path, unsigned rights)
{
	/* What a rule about a file may hold; the rest is about directories. */
	const uint64_t of_file = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
	struct stat status;
	if (!landlock->abi)
		return 0;
	struct path_beneath rule = {.fd = open(path, O_PATH | O_CLOEXEC)};
	if (rule.fd < 0)
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -errno;
	int result = fstat(rule.fd, &status) ? -errno : 0;
	rule.rights = of_rights(rights) & landlock->files;
	if (!result && !S_ISDIR(status.st_mode))
		rule.rights &= of_file;
	if (!result && rule.rights &&
		syscall(SYS_landlock_add_rule, landlock->fd, RULE_PATH_BENEATH, &rule, 0))
		result = -errno;
	close(rule.fd);
	return result;
}

int ckt_landlock_enter(struct ckt_landlock *landlock)
{
	int result =
		landlock->abi && syscall(SYS_landlock_restrict_self, landlock->fd, 0) ? -errno : 0;
	ckt_landlock_drop(landlock);
	return result;
}

void ckt_landlock_drop(struct ckt_landlock *landlock)
{
	if (landlock->fd >= 0)
		close(landlock->fd);
	landlock->fd = -1;
}
