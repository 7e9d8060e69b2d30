/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sessions have their device memory: addresses are in images, and a restore needs the same
 * ones.
 */
#pragma once

#include <stdint.h>

/*
 * One window for every worker, so that an address never changes; sanitizers leave room for a
 * smaller one elsewhere.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CKT_WINDOW_BASE 0x7e8000000000ull
#define CKT_WINDOW_SIZE (256ull << 30)
#define CKT_SCRATCH_SIZE (4ull << 30)
#define CKT_HOST_SIZE (16ull << 30)
#else
#define CKT_WINDOW_BASE 0x200000000000ull
#define CKT_WINDOW_SIZE (4ull << 40)
#define CKT_SCRATCH_SIZE (1ull << 40)
#define CKT_HOST_SIZE (1ull << 40)
#endif
/* Addresses behind the window for the worker's own memory. */
#define CKT_SCRATCH_BASE (CKT_WINDOW_BASE + CKT_WINDOW_SIZE)
/* Its second half is for frozen state. */
#define CKT_SPARE_BASE (CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE / 2)
/*
 * Addresses of pinned memory that the client shares: the driver must not have them, because it
 * gives what is registered the address that it has.
 */
#define CKT_HOST_BASE (CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE)

/* Device memory is taken in whole ones of these. */
#define CKT_MEMORY_EXTENT ((uint64_t)2 << 20)
