/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the worker's control threads ask of NCCL: nothing here needs NCCL's own header, and a build
 * without it lacks the functions, so that whoever calls one declares it weak.
 *
 * Threading: any thread, but where it says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/nccl.h"

struct ckt_worker;

/*
 * Of unique ids that one worker makes, and of pairs that it is told: each id has a thread and a
 * socket in the worker that made it.
 */
enum { CKT_NCCL_MADE_MAX = 1024, CKT_NCCL_PAIRS_MAX = 4096 };

struct ckt_nccl_ids {
	uint8_t identity[CKT_NCCL_ID_BYTES], id[CKT_NCCL_ID_BYTES];
};

/* ---- nccl_restore.c */
/*
 * Before a restore: of which unique ids communicators are made anew, beside those told before; the
 * later word counts.  0, -ENOSPC or -ENOMEM.
 */
int ckt_worker_nccl_ids_add(
	struct ckt_worker *worker, const struct ckt_nccl_ids *pairs, size_t count);

/* ---- nccl.c */
/* Opens the library where it is not open yet.  0, or -errno and a sentence. */
int ckt_worker_nccl_unique_id_make(struct ckt_worker *worker, uint8_t ret_id[CKT_NCCL_ID_BYTES],
	char *ret_message, size_t message_size);
/* Operations that were put on streams, of all communicators. */
uint64_t ckt_worker_nccl_issued(struct ckt_worker *worker);

/* ---- nccl_peers.c */
/*
 * Whether a communicator has ranks in other sessions; then the text says which: "rank 0 of a
 * communicator of 2 ranks, of which rank 1 is ...".
 */
bool ckt_worker_nccl_has_peers(char *ret_text, size_t text_size);
