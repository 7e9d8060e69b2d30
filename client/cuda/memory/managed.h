/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory, and host memory that is kept coherent in the same way: what the other files call
 * before and after work of the GPU.  managed_region.h holds the internal interface.
 */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cuda/memory/registered.h"

extern _Atomic unsigned ckt_managed_count;
CUresult ckt_managed_before_launch_slow(void);
CUresult ckt_managed_after_host_slow(void);
CUresult ckt_managed_before_access_slow(uint64_t address, uint64_t size, bool write);
/*
 * Makes a module's managed variable accessible to the program.  The driver has chosen its address.
 */
CUresult ckt_managed_variable(uint64_t address, uint64_t size, uint64_t context, uint64_t module);
void ckt_managed_forget_owner(uint64_t module);
/* Call these when the memory is freed, or when its context ends. */
void ckt_managed_forget(uint64_t address);
void ckt_managed_forget_context(uint64_t context);

/*
 * Keeps host memory coherent with the device memory at the same address.  alias: a second mapping
 * of the same pages that stays open; the region owns it after success.
 */
CUresult ckt_managed_adopt(uint64_t base, uint64_t size, void *alias, uint64_t context);

struct ckt_managed_region;
/*
 * The same for memory (MAP_SHARED) whose pages the worker shares at present.  The region is asleep
 * and does nothing until ckt_managed_wake is called.
 */
CUresult ckt_managed_prepare(
	uint64_t base, uint64_t size, uint64_t context, struct ckt_managed_region **ret_region);
/*
 * From this call on, the device has a copy of its own.  Returns the bytes that the copy must begin
 * with, readable as long as the region exists, or NULL if no memory is left.  Takes no lock.  A
 * second call has no effect.
 */
const void *ckt_managed_wake(struct ckt_managed_region *region);

/*
 * Sends what the program wrote to the regions in this range, and closes them, so that the program
 * fetches again what it reads next.
 */
CUresult ckt_managed_hand_over(uint64_t address, uint64_t size);

/* Whether any memory of the program may need a transfer before the GPU works. */
static inline bool ckt_managed_any(void)
{
	return __builtin_expect(
		       atomic_load_explicit(&ckt_managed_count, memory_order_relaxed) != 0, 0) ||
		ckt_registered_any();
}

/* Call it before work that may use any managed memory: a kernel, a graph. */
static inline CUresult ckt_managed_before_launch(void)
{
	return ckt_managed_any() ? ckt_managed_before_launch_slow() : CUDA_SUCCESS;
}

/* Call it after a host function: the next work of its stream may use any managed memory. */
static inline CUresult ckt_managed_after_host(void)
{
	return ckt_managed_any() ? ckt_managed_after_host_slow() : CUDA_SUCCESS;
}

/*
 * Call it before a copy or fill that reads or writes this range of device memory, of whatever kind.
 */
static inline CUresult ckt_managed_before_access(uint64_t address, uint64_t size, bool write)
{
	return ckt_managed_any() ? ckt_managed_before_access_slow(address, size, write)
				 : CUDA_SUCCESS;
}
