/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New unique ids for communicators of NCCL whose ranks' sessions are restored together.
 *
 *	PRELOAD -> NCCL_MAKE: ids whose root is this worker -> whoever restores hands each to all workers that have a rank: NCCL_IDS -> START
 *
 * After PRELOAD, because a library that is opened before the session's own history has been gone
 * through would be no part of that.
 *
 * Threading: the control socket's threads.
 */
#pragma once

#include <stdbool.h>

struct ckt_request;

/* ready: the session is pre-loaded, and not started. */
int ckt_worker_nccl_ids_serve_make(struct ckt_request *request, bool ready);
int ckt_worker_nccl_ids_serve_pairs(struct ckt_request *request, bool ready);
