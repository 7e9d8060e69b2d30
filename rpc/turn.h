/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions share a GPU in time: each worker has a turn channel, a socket pair of sequenced
 * packets with the server (CKT_WORKER_TURN).  Every packet is one struct ckt_turn_message:
 *
 *	worker -> server	CKT_TURN_WANT	commands for the GPU wait; once, until GIVE
 *				CKT_TURN_YIELD	the turn `number` ends, and nothing of it is left on the
 *						GPU; wants: more commands wait
 *	server -> worker	CKT_TURN_GIVE	the turn `number` begins
 *				CKT_TURN_LIMIT	the turn `number`, if it is not over, has this end
 *
 * A turn with an end is given back then, or once its worker has had nothing to do for
 * CKT_TURN_GRACE_NS; at once where wants says so.  The end of the
 * channel sets the worker free: it runs when it likes.
 */
#pragma once

#include <stdint.h>

enum ckt_turn_kind { CKT_TURN_WANT = 1, CKT_TURN_YIELD = 2, CKT_TURN_GIVE = 3, CKT_TURN_LIMIT = 4 };

/* A program that waits for its own work goes on sooner: with what it has the GPU for. */
#define CKT_TURN_GRACE_NS INT64_C(500000)
#define CKT_TURN_NO_END INT64_C(-1)

struct ckt_turn_message {
	uint32_t kind;
	uint32_t gpu;    /* the server's number */
	uint32_t number; /* of the turn */
	uint32_t wants; /* of YIELD; of GIVE and LIMIT: others wait that a pause must not hold up */
	int64_t length_ns; /* of GIVE and LIMIT, from now; CKT_TURN_NO_END */
	int64_t pace_ns; /* of GIVE and LIMIT: unfinished work is bounded to so much; 0: unbounded */
};
_Static_assert(sizeof(struct ckt_turn_message) == 32, "no padding");
