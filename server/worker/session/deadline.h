/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time at which this worker must be dead, because another server may start its session's
 * replica from then on (--replicate).  The kernel keeps the time: neither a stopped thread nor a
 * dead server can miss it.
 *
 * Threading: any thread.
 */
#pragma once

struct ckt_request;

/* The call FENCE. 0, or -errno as the other functions that serve a request. */
int ckt_deadline_serve(struct ckt_request *request);
