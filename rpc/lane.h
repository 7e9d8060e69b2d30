/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: further connections of a session, which carry nothing but the bytes of large copies.
 *
 * A lane begins with a hello of kind DATA, which proves the session's key as a returning program
 * does.  Then both sides send frames.  Each is a head of 16 bytes, big endian, and its bytes:
 *
 *	offset  0 kind | 4 size | 8 piece (hyper) | 16 the bytes of a piece
 *
 * A piece is a part of one copy, at most CKT_DATA_MAX bytes.  The client numbers the pieces of a
 * session, both ways, and uses no number twice.  What becomes of the bytes, a command says
 * (lane_htod, lane_dtoh in rpc/api/cuda.api).  Any lane carries any piece.
 *
 *	to the device	client: DATA --> worker keeps the bytes: ARRIVED --> client: the command lane_htod
 *	to the host	client: the command lane_dtoh --> worker: DATA --> client: ARRIVED --> worker: the reply
 *
 * Errors: 0 or -errno.  Threading: no shared state.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/transport.h"
#include "rpc/wire.h"

enum {
	CKT_LANE_HEAD_SIZE = 16,
	/* What one session may have, and what a client asks for at most. */
	CKT_LANES_MAX = 8,
};

/*
 * In the reply to the first connection's hello: how many lanes the worker takes.  In a lane's
 * hello: the number of the lanes that are opened together; those of another number end.
 */
#define CKT_CAPABILITY_LANES "lanes"
/*
 * Beside it in that reply: how many pieces on their way to the host the worker's memory holds.  A
 * client that asks for more makes its other commands wait.
 */
#define CKT_CAPABILITY_LANE_PIECES "lane-pieces"

enum ckt_lane_kind {
	CKT_LANE_DATA = 1,    /* the bytes of a piece follow */
	CKT_LANE_ARRIVED = 2, /* the other side has all bytes of the piece; size is 0 */
};

struct ckt_lane_head {
	uint32_t kind, size;
	uint64_t piece;
};

/* Writes CKT_LANE_HEAD_SIZE bytes. */
void ckt_lane_head_put(uint8_t *p, const struct ckt_lane_head *head);
/* 0 or -EPROTO: the CKT_LANE_HEAD_SIZE bytes at p are not a head. */
int ckt_lane_head_get(const uint8_t *p, struct ckt_lane_head *ret_head);
/* Waits for a head: 0, -EPROTO, or the transport's error. */
int ckt_lane_head_read(struct ckt_transport *t, struct ckt_lane_head *ret_head);
/* Sends a head and, with CKT_LANE_DATA, its bytes. */
int ckt_lane_frame_write(
	struct ckt_transport *t, const struct ckt_lane_head *head, const uint8_t *data);
