/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's functions for the worker's control threads.  Nothing here needs NCCL's own header.  A
 * build without NCCL lacks the functions, so a caller declares them weak.
 *
 * Threading: any thread, unless a comment says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/nccl.h"

struct ckt_worker;

/*
 * Limits of unique ids that one worker makes, and of pairs that it receives: each id has a thread
 * and a socket in the worker that made it.
 */
enum { CKT_NCCL_MADE_MAX = 1024, CKT_NCCL_PAIRS_MAX = 4096 };

struct ckt_nccl_ids {
	uint8_t identity[CKT_NCCL_ID_BYTES], id[CKT_NCCL_ID_BYTES];
};

/* ---- nccl_restore.c */
/*
 * Before a restore: adds the unique ids from which communicators are made anew.  A later pair
 * replaces an earlier one.  0, -ENOSPC or -ENOMEM.
 */
int ckt_worker_nccl_ids_add(
	struct ckt_worker *worker, const struct ckt_nccl_ids *pairs, size_t count);

/* ---- nccl.c */
/* Opens the library if it is not open yet.  0, or -errno and a sentence. */
int ckt_worker_nccl_unique_id_make(struct ckt_worker *worker, uint8_t ret_id[CKT_NCCL_ID_BYTES],
	char *ret_message, size_t message_size);
/* The number of operations that all communicators have put on streams. */
uint64_t ckt_worker_nccl_issued(struct ckt_worker *worker);

/* ---- nccl_peers.c */
/*
 * Whether a communicator has ranks in other sessions; the text then names them: "rank 0 of a
 * communicator of 2 ranks, of which rank 1 is ...".
 */
bool ckt_worker_nccl_has_peers(char *ret_text, size_t text_size);
struct ckt_nccl_peer {
	uint8_t identity[CKT_NCCL_ID_BYTES];
	uint32_t rank;
};
/* The nth rank in another session, of all communicators.  False: there are not so many. */
bool ckt_worker_nccl_peer(size_t nth, struct ckt_nccl_peer *ret_peer);
/* Whether the session has rank 0 of a communicator of several. */
bool ckt_worker_nccl_is_first(void);

/* ---- nccl_together.c */
/*
 * Whether the sessions with the other ranks of its communicators stand still, too, to leave the GPU with
 * it.  0, or -EBUSY and a sentence.  Precondition: the session is frozen, and all of them are.
 */
int ckt_worker_nccl_together_check(char *ret_message, size_t message_size);
/*
 * Of a session that is held for a cut of its group: whether the sessions with the other ranks of its
 * communicators are held for the same cut.  0, or -EBUSY and a sentence; 0 also where it is held for no cut.
 */
int ckt_worker_nccl_cut_check(struct ckt_worker *worker, char *ret_message, size_t message_size);

/* ---- nccl_lost.c */
/*
 * Before a reply: of a communicator that has failed the program is not told if its group can come back
 * and replay.  Waits for that, on any thread that answers; returns if it did not come.
 */
void ckt_worker_nccl_await_return(struct ckt_worker *worker);
extern unsigned ckt_worker_nccl_await_ms;
