/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of system calls (seccomp) for this process, its later threads and its children. */
#pragma once

#include <stdbool.h>

/*
 * Only the calls of the table (syscall_table.h); network: sockets of IP and netlink as well as those of this host.  In force
 * for good.  Precondition: one thread, no_new_privs.
 *
 * ret_listener, unless NULL: the caller's descriptor, which is told of each refused call and says
 * EPERM (seccomp's user notification).  A refused call waits for that answer, and fails with ENOSYS
 * once nobody has the descriptor.  Whoever has it can also allow a call, so the worker must not
 * keep it.  -1 where the kernel has none, or another filter of this process has one already: the
 * kernel then says EPERM itself.
 *
 * 0; -EOPNOTSUPP where the kernel has no filters or a container refuses them; or -errno.
 */
int ckt_syscall_filter_enter(bool network, int *ret_listener);
/*
 * For a process that compiles for workers, and inner for each compilation inside of it.  As above;
 * nobody listens.
 */
int ckt_syscall_filter_enter_compiler(bool inner);
