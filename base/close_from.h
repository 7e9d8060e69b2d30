/*
 * What a child of fork that does not exec soon must not keep: a connection that its parent closes
 * stays open as long as anybody has a copy.
 */
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the child: closes every descriptor from that one on. */
static inline void ckt_close_from(unsigned first)
{
	/* more than that nobody has open, and closing takes a second */
	enum { MOST = 1 << 20 };
	struct rlimit limit;
	if (syscall(SYS_close_range, first, ~0u, 0) == 0)
		return;
	/* Kernels before 5.9 have no such call, and sandboxes refuse it. */
	unsigned end = getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > MOST
		? MOST
		: (unsigned)limit.rlim_cur;
	for (unsigned fd = first; fd < end; fd++)
		close((int)fd);
}
