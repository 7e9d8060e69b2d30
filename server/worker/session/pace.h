/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pace of a session that shares its GPU in time: what it has issued and not finished is bounded
 * to so much GPU time, or to one command that takes longer.
 *
 *	commands ... | events | commands ... | events | the next command waits for the first events
 *	  a segment               a segment
 *
 * Two segments of half the bound are in flight.  How many commands make one follows from how long the
 * last ones took: one at first, at most CKT_PACE_SEGMENT_MAX.
 *
 * Threading: the executor's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_fences;
struct ckt_object;
struct ckt_worker;

enum { CKT_PACE_SEGMENT_MAX = 256 };

/*
 * Whether the next command of the context has to wait; counts it if it has not.  bound_ns: positive.
 */
bool ckt_pace_stops(struct ckt_worker *worker, struct ckt_object *context, int64_t bound_ns);
/* The GPU has nothing of the session any more, or no bound is left. */
void ckt_pace_reset(void);
/* The context of these goes. */
void ckt_pace_forget(const struct ckt_fences *fences);
