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
	CKT_WORKER_FDS_END
};

/* What comes with the descriptor of refused calls: one byte. */
enum { CKT_WORKER_REFUSED_BYTE = 'r' };
