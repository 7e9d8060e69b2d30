/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies between the device and host memory on lanes (client/conn/lane.h): pieces go straight
 * from the program's memory, and come straight into it.
 *
 *	to the device	each piece: a lane sends it; it is there --> the command lane_htod, waited for
 *	to the host	each piece: the command lane_dtoh; the reply comes when the piece is there
 *
 * No lane carries an order: a piece that was lost with its lane goes over the connection.  The
 * program's thread waits meanwhile, so the source is still as it was.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_conn;
struct ckt_copy2d;

/*
 * Makes a copy between the device and the host, if it is large and a way for it is open: on one
 * host staged.h, else lanes.  False: another way must be found; the first such copy has the lanes
 * opened.  is_waited_for: as in staged.h.  Precondition: all arguments are checked.
 */
bool ckt_large_copy(
	const struct ckt_copy2d *c, uint64_t stream, bool is_waited_for, CUresult *ret_result);

/* Copies in the background, asynchronous ones into pinned memory, that are not complete. */
bool ckt_lane_copies_any(void);
/* Whether one of them writes any of these bytes of host memory. */
bool ckt_lane_copies_write(const struct ckt_conn *conn, uint64_t begin, uint64_t end);
