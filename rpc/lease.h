/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker gets memory that its server counts: each has a lease channel, a socket pair of
 * sequenced packets with the server (CKT_WORKER_LEASE).  Every packet is one struct
 * ckt_lease_message:
 *
 *	worker -> server	CKT_LEASE_ASK	`bytes` more of the GPU, up to `want`; one at a time.
 *						`bytes` 0: only how much there is
 *				CKT_LEASE_GIVE	`bytes` of the GPU come back: needs no answer
 *				CKT_LEASE_WITHDRAW	the question `number` waits no more: needs no answer
 *				CKT_LEASE_END	the worker ends, with the exit status `number`, once MPS has
 *						terminated what it runs: needs no answer
 *	server -> worker	CKT_LEASE_ANSWER	of the question `number`: `bytes` were granted,
 *						0: they are not there
 *
 * A question with CKT_LEASE_WAIT may wait after its answer, which then has CKT_LEASE_WAIT: the server
 * tells how the wait ended by a call (CKT_WORKER_LEASE_WAITED).  An answer with CKT_LEASE_MAY_WAIT
 * says that the same question with CKT_LEASE_WAIT might.
 *
 * A question with CKT_LEASE_FOLLOW is of a session that comes in while another one leaves
 * (CKT_WORKER_SWAP_FOLLOW): it is answered when so much has left.  CKT_LEASE_FOLLOW in an answer of 0:
 * the other one still leaves, ask again.
 *
 * The server takes back what a worker has and does not use by a call (CKT_WORKER_LEASE_RECALL).
 * Both directions carry differences, so that neither minds which of two messages comes first.
 */
#pragma once

#include <stdint.h>

enum ckt_lease_kind {
	CKT_LEASE_ASK = 1,
	CKT_LEASE_GIVE = 2,
	CKT_LEASE_ANSWER = 3,
	CKT_LEASE_WITHDRAW = 4,
	CKT_LEASE_END = 5
};

/* Bits of `flags`. */
enum {
	CKT_LEASE_FORCE = 1,      /* of ASK: it is in use already, and is only counted */
	CKT_LEASE_WAIT = 2,       /* of ASK: it may wait; of ANSWER: it waits */
	CKT_LEASE_MAY_WAIT = 4,   /* of ANSWER */
	CKT_LEASE_KEEP_PLACE = 8, /* of WITHDRAW: it is asked again soon */
	CKT_LEASE_FOLLOW = 16,    /* of ASK and ANSWER */
};

/* Leases are whole granules. */
#define CKT_LEASE_GRANULE ((uint64_t)2 << 20)
#define CKT_LEASE_NO_LIMIT UINT64_MAX

struct ckt_lease_message {
	uint32_t kind;
	uint32_t number; /* of the question */
	uint32_t gpu;    /* the server's number */
	uint32_t flags;
	uint64_t bytes;
	uint64_t want;  /* of ASK */
	uint64_t total; /* of ANSWER: the smallest limit; CKT_LEASE_NO_LIMIT */
	uint64_t left;  /* of ANSWER: what may still be asked for; CKT_LEASE_NO_LIMIT */
};
_Static_assert(sizeof(struct ckt_lease_message) == 48, "no padding");
