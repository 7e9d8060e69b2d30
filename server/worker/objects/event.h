/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the session; also used by a restore.
 *
 * Threading: the executor, or who restores while it stands, in the current context.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

CUresult ckt_event_make(
	struct ckt_worker *worker, uint64_t id, unsigned flags, struct ckt_object **ret_object);
void ckt_event_unmake(struct ckt_worker *worker, struct ckt_object *event);
