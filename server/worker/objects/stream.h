/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the session; also used by a restore.
 *
 * Threading: the executor, or who restores while it stands, in the current context.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

enum { CKT_STREAM_POOL = 32 };
/* Precondition: the first primary context is current. */
void ckt_worker_stream_pool_fill(void);
CUresult ckt_worker_stream_make(
	struct ckt_worker *worker, uint64_t id, unsigned flags, int priority);
/* Returns the real stream; the object stays. */
void ckt_worker_stream_unmake(struct ckt_worker *worker, struct ckt_object *object);
