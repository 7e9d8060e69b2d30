/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that a worker inherits from its server, by their fixed numbers. */
#pragma once

enum {
	CKT_WORKER_CONTROL_FD = 3, /* its listening control socket */
	/*
	 * Where its cage passes the descriptor of refused system calls: a socket of sequenced
	 * packets.  Absent without a cage.
	 */
	CKT_WORKER_REFUSED_FD = 4,
	/*
	 * Where it asks for machine code of the soft GPU's kernels (cudacommon/kernel_compiler.h).
	 * Absent where the worker compiles itself, or the GPU is not the soft one.
	 */
	CKT_WORKER_COMPILER_FD = 5,
};

/* The exit status of a worker whose client was cut off, and did not come back in time. */
enum { CKT_WORKER_CUT_OFF_STATUS = 80 };
/* And of one that shares its GPU in space, after a kernel's fault: it reaches all that share it. */
enum { CKT_WORKER_FAULT_STATUS = 81 };
/* What comes with the descriptor of refused calls: one byte. */
enum { CKT_WORKER_REFUSED_BYTE = 'r' };
/* What comes with a worker's socket to the process that compiles for workers: one byte. */
enum { CKT_COMPILE_WORKER_BYTE = 'w' };
