/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A paused session: the host holds its device memory, the physical memory is released, the
 * addresses stay reserved.  A swapped one leaves and comes in step by step, and the server learns after
 * each step what has left. Threading: one operation at a time, with the session frozen.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ckt_worker;

/* 0 or -errno and a sentence; after an error everything is as before.  ret_bytes: released. */
int ckt_pause(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size);
/*
 * The same into the swap store (swap_store.h), with the lease of the memory given back.  ret_moved:
 * written of it.  -ENOSPC: the store is full.  An error with *ret_bytes not 0: it failed half way, and
 * others have the memory now: so much is out, and the session is paused.
 */
int ckt_pause_swap(struct ckt_worker *worker, uint64_t *ret_bytes, uint64_t *ret_moved,
	char *ret_message, size_t message_size);
/* ckt_swap_store_use.  Changes the thread's context. */
int ckt_pause_use(struct ckt_worker *worker, int fd, uint64_t limit_bytes);
/*
 * Of a swapped session: lets the GPU copy to the store itself from now on, where it can; takes some
 * hundred milliseconds for each 10 GB, once.  Ends soon when *stop is not 0.
 */
void ckt_pause_pin(struct ckt_worker *worker, const _Atomic unsigned *stop);
/* What the last copy wrote to the store or read from it. */
uint64_t ckt_pause_moved(void);
/*
 * Of a swapped session it takes the lease first.
 * -ENOMEM: ret_bytes are missing, and the session stays paused; otherwise ret_bytes were allocated.
 */
int ckt_resume(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size);
/*
 * The same of a swapped session behind one that leaves: the lease of each step is taken when the step
 * before is there, and waits until so much has left.  -ENOMEM, too: nothing leaves any more.
 */
int ckt_resume_follow(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size);
/*
 * The host's copy of the memory at the address (physical 0), or of physical memory; NULL if the
 * session is not paused.
 */
const uint8_t *ckt_pause_copy(uint64_t address, uint64_t physical);
