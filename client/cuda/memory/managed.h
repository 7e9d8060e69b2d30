/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory, and host memory that is kept coherent as managed memory is: what has to be done
 * around the work of the GPU.  What the files that do it share is in managed_region.h.
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
/* Makes a module's variable, which the driver has placed, the program's as well. */
CUresult ckt_managed_variable(uint64_t address, uint64_t size, uint64_t context, uint64_t module);
void ckt_managed_forget_owner(uint64_t module);
/* The memory is freed, or its context is gone. */
void ckt_managed_forget(uint64_t address);
void ckt_managed_forget_context(uint64_t context);

/*
 * Makes host memory coherent with the device memory at the same address; alias (ours from here on):
 * the same pages, always open.
 */
CUresult ckt_managed_adopt(uint64_t base, uint64_t size, void *alias, uint64_t context);

struct ckt_managed_region;
/*
 * The same for memory (MAP_SHARED) that the device has itself for the time being: nothing is done
 * until it is woken.
 */
CUresult ckt_managed_prepare(
	uint64_t base, uint64_t size, uint64_t context, struct ckt_managed_region **ret_region);
/*
 * From here on the device has a copy.  Gives the bytes that it is to begin with, readable while the
 * region is there; NULL without memory for it. Waits for nobody.  Again: no harm.
 */
const void *ckt_managed_wake(struct ckt_managed_region *region);

/*
 * The device has what the program wrote to the regions there, and the program has to fetch again
 * what it reads next.
 */
CUresult ckt_managed_hand_over(uint64_t address, uint64_t size);

/* Whether memory of the program has to be looked at before the GPU works. */
static inline bool ckt_managed_any(void)
{
	return __builtin_expect(
		       atomic_load_explicit(&ckt_managed_count, memory_order_relaxed) != 0, 0) ||
		ckt_registered_any();
}

/* Before anything runs that may use any managed memory: a kernel, a graph. */
static inline CUresult ckt_managed_before_launch(void)
{
	return ckt_managed_any() ? ckt_managed_before_launch_slow() : CUDA_SUCCESS;
}

/* A host function has run, and what its stream does next may use any managed memory. */
static inline CUresult ckt_managed_after_host(void)
{
	return ckt_managed_any() ? ckt_managed_after_host_slow() : CUDA_SUCCESS;
}

/* Before a copy or fill that reads or writes device memory there, wherever the address leads. */
static inline CUresult ckt_managed_before_access(uint64_t address, uint64_t size, bool write)
{
	return ckt_managed_any() ? ckt_managed_before_access_slow(address, size, write)
				 : CUDA_SUCCESS;
}
