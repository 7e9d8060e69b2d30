/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE3 of device memory, made on the device: what an image says of its chunks, at the GPU's speed
 * instead of the CPU's.
 *
 * The kernel is loaded when the first image is written or read for which it pays, and that is an
 * entry of the journal: it is part of the session's history of addresses from then on.  The soft
 * GPU, which computes on the same CPU, has none.
 *
 * Threading: one thread at a time.  Loading: with the session frozen or not yet going.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/kernels/hash.h"

struct ckt_worker;

struct ckt_digest {
	uint8_t sum[32];
};

/*
 * So many bytes are worth the kernel's compilation. Always, and on the soft GPU too, where
 * CKT_DIGEST_ANY is set, for tests.
 */
bool ckt_digest_pays(uint64_t bytes);

/*
 * For the device's primary context, which it makes current, if it is not there yet; journaled.
 * Where it fails the CPU hashes.
 */
void ckt_digest_load(struct ckt_worker *worker, unsigned device);
/* Whether the device has the kernel and the kernel takes this piece of memory. */
bool ckt_digest_takes(unsigned device, uint64_t address, uint64_t size);
/*
 * Precondition: ckt_digest_takes them all; they are mapped in the primary context, and nothing
 * writes to them.  Runs on the stream, which belongs to that context, and waits.  Changes the
 * thread's current context.
 */
CUresult ckt_digest_run(struct ckt_worker *worker, unsigned device, CUstream stream,
	const struct ckt_hash_item *items, size_t count, struct ckt_digest *ret_digests);
/*
 * For tests: the same with a kernel from ckt_digest_kernel() and device memory that the caller has.
 */
const char *ckt_digest_kernel(void);
CUresult ckt_digest_launch(CUfunction function, CUstream stream, CUdeviceptr scratch,
	const struct ckt_hash_item *items, size_t count, struct ckt_digest *ret_digests);
