/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a worker, as tables of names in groups with their reasons.
 *
 *	ckt_syscalls_worker     what a worker may call, with either driver; all others get EPERM
 *	ckt_syscalls_compiler   what a compiler of the soft GPU's kernels may call; all others get EPERM
 *	ckt_syscalls_compiling  what the process that starts compilers may call as well
 *
 * tests/gpu/syscalls records what workers call on a GPU, and names what the table lacks.
 */
#pragma once

struct ckt_syscall_group {
	const char *why;
	const char *names; /* with a space between them */
};

/* Each ends with an entry without names. */
extern const struct ckt_syscall_group ckt_syscalls_worker[], ckt_syscalls_compiler[],
	ckt_syscalls_compiling[];
