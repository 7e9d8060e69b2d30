/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This worker's lease of device memory (rpc/lease.h): what its server has granted of each GPU, and
 * what is in use.  Every kind of device memory is taken here before it is made, and given when it is
 * gone: memory.c does that, which counts them all.
 *
 * A worker without limits takes what it needs and only counts.  Otherwise it asks for more when the
 * lease is used up, a step ahead of its need, and gives back what is more than two steps ahead.  If
 * the server is away, a question waits for the next one.
 *
 * Threading: any.  Its lock is taken last, and never while somebody waits for the server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/worker.h"

enum ckt_lease_how {
	CKT_LEASE_HAD, /* without asking */
	CKT_LEASE_ASKED,
	CKT_LEASE_FORCED, /* it is in use already */
};

/* How long a question waits for a server, and for its answer. */
extern unsigned ckt_lease_answer_ms;

/*
 * The channel from the server, which becomes ours.  unlimited: of the first one alone.  ret_list: the
 * leases, for ret_res.  -EINVAL: it is none, and was closed.
 */
int ckt_lease_join(int channel, bool unlimited, ckt_worker_lease ret_list[CKT_DEVICES_MAX],
	ckt_worker_lease_res *ret_res);
/* Gives up what is leased and not used, and the freedom of limits. */
void ckt_lease_recall(ckt_worker_lease ret_list[CKT_DEVICES_MAX], ckt_worker_lease_res *ret_res);
/* Whether a thread waits for an answer of the server. */
bool ckt_lease_is_asking(void);

/* Counts bytes of the GPU of that number as used.  False: they are not to be had. */
bool ckt_lease_take(unsigned gpu, uint64_t bytes, enum ckt_lease_how how);
void ckt_lease_give(unsigned gpu, uint64_t bytes);
/* False: the server sets no limit.  *ret_free: in whole granules. */
bool ckt_lease_info(unsigned gpu, uint64_t *ret_total, uint64_t *ret_free);

/* For tests: as at the start. */
void ckt_lease_reset(void);
