/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program registered and whose address on the device it asked for: what has to be
 * done around the work of the GPU.
 */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_client_range;

extern _Atomic unsigned ckt_registered_count;
/*
 * Where the device has the registered memory from here on.  Precondition: of kind
 * CKT_RANGE_HOST_REGISTERED.
 */
CUresult ckt_registered_map(const struct ckt_client_range *range, uint64_t *ret_address);
/* The range is not registered any more: it has what the GPU wrote. */
CUresult ckt_registered_forget(const struct ckt_client_range *range);
void ckt_registered_forget_context(uint64_t context);
/* Host memory that lies in one of those, all of it: gives the device's address in its place. */
bool ckt_registered_side(uint64_t *address, uint64_t size);
CUresult ckt_registered_before_work_slow(void);
CUresult ckt_registered_after_wait_slow(uint64_t context);

static inline bool ckt_registered_any(void)
{
	return __builtin_expect(
		atomic_load_explicit(&ckt_registered_count, memory_order_relaxed) != 0, 0);
}

/* What the program wrote is on the device before the GPU does anything. */
static inline CUresult ckt_registered_before_work(void)
{
	return ckt_registered_any() ? ckt_registered_before_work_slow() : CUDA_SUCCESS;
}

/*
 * The program has what the GPU wrote once it knows of the GPU's being done; context: with all that
 * was in it, 0 with less.
 */
static inline CUresult ckt_registered_after_wait(CUresult result, uint64_t context)
{
	return result || !ckt_registered_any() ? result : ckt_registered_after_wait_slow(context);
}
