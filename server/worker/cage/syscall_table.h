/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a worker, as tables of names in groups with their reasons.
 *
 *	ckt_syscalls_soft       what a worker on the soft GPU may call; all others get EPERM
 *	ckt_syscalls_denied     what no worker may call, whatever its driver is; EPERM
 *	ckt_syscalls_compiler   what a compiler of the soft GPU's kernels may call; all others get EPERM
 *	ckt_syscalls_compiling  what the process that starts compilers may call as well
 *
 * With NVIDIA's driver all other calls are allowed, and the kernel logs those that are not in the
 * first table either.  That table is not enforced there, because it was not recorded on a GPU yet:
 * tests/gpu/syscalls records it.
 */
#pragma once

struct ckt_syscall_group {
	const char *why;
	const char *names; /* with a space between them */
};

/* Each ends with an entry without names. */
extern const struct ckt_syscall_group ckt_syscalls_soft[], ckt_syscalls_denied[],
	ckt_syscalls_compiler[], ckt_syscalls_compiling[];
