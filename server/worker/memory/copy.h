/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the host and a device, on their streams.
 *
 * Threading: the executor.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_staging_piece;
struct ckt_wcall;
struct ckt_worker;

/*
 * Where the driver may read the data from: the message itself, or pinned memory. *ret_piece NULL in
 * the first case.
 */
const uint8_t *ckt_worker_source(struct ckt_worker *worker, const uint8_t *data, uint32_t size,
	struct ckt_staging_piece **ret_piece);
/* Takes a piece; where all are in flight, waits for one without answering anything out of order. */
struct ckt_staging_piece *ckt_worker_take_piece(struct ckt_worker *worker, size_t size);
/*
 * The stream of a copy with the host.  A context must be current, too: its fences keep the pieces.
 */
CUresult ckt_worker_copy_stream(struct ckt_worker *worker, uint64_t id, CUstream *ret_stream);
/*
 * `begun` is what the driver said to the copy out of the piece, which comes back when the stream is
 * past it.  The handler's result.
 */
CUresult ckt_worker_sent(struct ckt_worker *worker, CUresult begun, struct ckt_staging_piece *piece,
	CUstream stream);
/*
 * And to the copy into the piece: where it is queued, the reply, with the piece's data, goes when
 * it is done.  What a handler returns.
 */
int ckt_worker_reply_when_done(struct ckt_wcall *call, CUresult begun, uint64_t stream_id,
	CUstream stream, struct ckt_staging_piece *piece, size_t size);
/*
 * The same by lanes, under the number lane_piece; 0: with the reply.  background: see
 * session/lane.h.
 */
int ckt_worker_reply_on_lane(struct ckt_wcall *call, CUresult begun, uint64_t stream_id,
	CUstream stream, struct ckt_staging_piece *piece, size_t size, uint64_t lane_piece,
	bool background);
