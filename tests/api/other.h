/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second process that owns what is shared with the first: forked before CUDA begins in either, a
 * pair of sockets between them.
 */
#pragma once

#include <sys/socket.h>

static int other;
static pid_t owner;

static inline void tell(const void *data, size_t size)
{
	if (write(other, data, size) != (ssize_t)size)
		_exit(2);
}

static inline void hear(void *data, size_t size)
{
	if (read(other, data, size) != (ssize_t)size)
		_exit(2);
}

/* A byte says that the other may go on. */
static inline void go(void)
{
	tell("g", 1);
}

static inline void await(void)
{
	char byte;
	hear(&byte, 1);
}

static inline void tell_fd(int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = "f", .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	memset(&control, 0, sizeof(control));
	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fd)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
	if (sendmsg(other, &message, 0) != 1)
		_exit(2);
}

static inline int hear_fd(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	int fd = -1;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	if (recvmsg(other, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		_exit(2);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* One that is no part of the test, in the other process: its end is told. */
#define MUST(name, ...)                          \
	do {                                     \
		if (FUNCTION(name)(__VA_ARGS__)) \
			_exit(3);                \
	} while (0)

/* begins: CUDA, in the other process. */
static inline void with_owner(void (*begins)(void), void (*owns)(void))
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		exit(2);
	owner = fork();
	other = pair[owner == 0];
	close(pair[owner != 0]);
	if (owner == 0) {
		/* What it says is not compared. */
		if (!freopen("/dev/null", "w", stdout))
			_exit(2);
		begins();
		owns();
		exit(0);
	}
}

static inline void owner_ends(void)
{
	int status = -1;
	waitpid(owner, &status, 0);
	REMARK("the other ended %d", status);
}
