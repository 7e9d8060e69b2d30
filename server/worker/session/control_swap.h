/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SWAP_OUT, SWAP_IN and their kind: the session's memory leaves the GPU for the swap store and comes
 * back.  Threading: control threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/worker.h"

struct ckt_request;
struct ckt_worker;

/* SWAP_OUT, SWAP_YIELD, SWAP_IN, SWAP_FOLLOW, SWAP_LOOK; -EPROTO for any other procedure. */
int ckt_control_swap_serve(struct ckt_request *request, uint32_t proc);

/* Precondition of all: operation begun. */

/* done: the status and the bytes of what was tried. */
int ckt_swap_answer(struct ckt_request *request, const ckt_worker_swap_res *done);
/* 0 or -errno, with the reason and the bytes in res. */
int ckt_swap_out_locked(struct ckt_request *request, const ckt_worker_swap_out_args *args,
	ckt_worker_swap_res *res);
/* Precondition: swapped.  follows: behind a session that leaves. */
int ckt_swap_come_in(struct ckt_worker *worker, bool follows, uint64_t *ret_bytes,
	char *ret_message, size_t message_size);
