/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory whose device address the program asked for: what the other files call before
 * and after work of the GPU.
 */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_client_range;

extern _Atomic unsigned ckt_registered_count;
/*
 * Returns the device's address of the registered memory, and makes its twin at the first call.
 * Precondition: the range is of kind CKT_RANGE_HOST_REGISTERED.
 */
CUresult ckt_registered_map(const struct ckt_client_range *range, uint64_t *ret_address);
/* Call it when the range is unregistered.  Waits for the GPU and fetches what it wrote. */
CUresult ckt_registered_forget(const struct ckt_client_range *range);
void ckt_registered_forget_context(uint64_t context);
/*
 * If the bytes are all in one range with a twin, replaces the address by the device's and returns
 * true.
 */
bool ckt_registered_side(uint64_t *address, uint64_t size);
CUresult ckt_registered_before_work_slow(void);
CUresult ckt_registered_after_wait_slow(uint64_t context);

static inline bool ckt_registered_any(void)
{
	return __builtin_expect(
		atomic_load_explicit(&ckt_registered_count, memory_order_relaxed) != 0, 0);
}

/* Call it before any work of the GPU: sends what the program wrote. */
static inline CUresult ckt_registered_before_work(void)
{
	return ckt_registered_any() ? ckt_registered_before_work_slow() : CUDA_SUCCESS;
}

/*
 * Call it after every wait for the GPU: fetches what the GPU wrote.  context: the context whose
 * work has all ended; 0: only part of a context's work has ended.
 */
static inline CUresult ckt_registered_after_wait(CUresult result, uint64_t context)
{
	return result || !ckt_registered_any() ? result : ckt_registered_after_wait_slow(context);
}
