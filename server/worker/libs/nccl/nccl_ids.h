/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New unique ids for communicators of NCCL whose ranks' sessions are restored together.
 *
 *	PRELOAD -> NCCL_MAKE: ids whose root is this worker
 *	        -> the restoring cricketctl hands each id to all workers that have a rank: NCCL_IDS
 *	        -> START
 *
 * These requests come after PRELOAD: a library that opens before the session's own history has been
 * replayed would not be part of that history.
 *
 * Threading: the control socket's threads.
 */
#pragma once

#include <stdbool.h>

struct ckt_request;

/* ready: the session is pre-loaded and not started. */
int ckt_worker_nccl_ids_serve_make(struct ckt_request *request, bool ready);
int ckt_worker_nccl_ids_serve_pairs(struct ckt_request *request, bool ready);
