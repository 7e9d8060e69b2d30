/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of fork that does not exec soon must not keep its parent's descriptors: a connection that
 * the parent closes stays open as long as any process has a copy.
 */
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the child: closes every descriptor from that one on. */
static inline void ckt_close_from(unsigned first)
{
	/* a process rarely has more descriptors open, and closing more takes a second */
	enum { MOST = 1 << 20 };
	struct rlimit limit;
	if (syscall(SYS_close_range, first, ~0u, 0) == 0)
		return;
	/* Kernels before 5.9 lack this system call, and sandboxes refuse it. */
	unsigned end = getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > MOST
		? MOST
		: (unsigned)limit.rlim_cur;
	for (unsigned fd = first; fd < end; fd++)
		close((int)fd);
}
