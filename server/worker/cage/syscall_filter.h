/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of system calls (seccomp) for this process, its later threads and its children. */
#pragma once

#include <stdbool.h>

/*
 * soft: only the calls of the soft GPU's workers; else all but those that no worker may make, and
 * the kernel logs what the soft GPU's workers do not call.  In force for good.  Precondition: one thread, no_new_privs.  0; -EOPNOTSUPP where the kernel has no
 * filters or a container refuses them; or -errno.
 */
int ckt_syscall_filter_enter(bool soft);
