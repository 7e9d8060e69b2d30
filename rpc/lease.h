/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker gets memory that its server counts: each has a lease channel, a socket pair of
 * sequenced packets with the server (CKT_WORKER_LEASE).  Every packet is one struct
 * ckt_lease_message:
 *
 *	worker -> server	CKT_LEASE_ASK	`bytes` more of the GPU, up to `want`; one at a time.
 *						`bytes` 0: only how much there is
 *				CKT_LEASE_GIVE	`bytes` of the GPU come back: needs no answer
 *	server -> worker	CKT_LEASE_ANSWER	of the question `number`: `bytes` were granted,
 *						0: they are not there
 *
 * The server takes back what a worker has and does not use by a call (CKT_WORKER_LEASE_RECALL).
 * Both directions carry differences, so that neither minds which of two messages comes first.
 */
#pragma once

#include <stdint.h>

enum ckt_lease_kind { CKT_LEASE_ASK = 1, CKT_LEASE_GIVE = 2, CKT_LEASE_ANSWER = 3 };

/* Leases are whole granules. */
#define CKT_LEASE_GRANULE ((uint64_t)2 << 20)
#define CKT_LEASE_NO_LIMIT UINT64_MAX

struct ckt_lease_message {
	uint32_t kind;
	uint32_t number; /* of the question */
	uint32_t gpu;    /* the server's number */
	uint32_t force;  /* of ASK: it is in use already, and is only counted */
	uint64_t bytes;
	uint64_t want;  /* of ASK */
	uint64_t total; /* of ANSWER: the smallest limit; CKT_LEASE_NO_LIMIT */
	uint64_t left;  /* of ANSWER: what may still be asked for; CKT_LEASE_NO_LIMIT */
};
_Static_assert(sizeof(struct ckt_lease_message) == 48, "no padding");
