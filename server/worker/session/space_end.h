/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a worker that shares its GPU in space.  If it exits while its kernels run, the kernels of all that share
 * the GPU fail (measured on an H200, driver 580).  So it lets MPS terminate them first, which its server asks for:
 *
 *	nothing runs: exits
 *	something runs: CKT_LEASE_END to the server -> MPS terminates the client -> the server kills the worker
 *	no server: exits after all
 *
 * Threading: from any thread; only the first one does it, the others wait for the end.
 */
#pragma once

#include <cuda.h>

struct ckt_worker;

/* The context in which all kernels run; NULL: there are several, which nobody waits for. */
void ckt_space_begin(CUcontext context);
/* Returns once the worker may exit with that status; at once where it shares nothing in space. */
void ckt_space_end(const struct ckt_worker *worker, int status);
