/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory at addresses that the device can have as well. */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_client_range;
struct ckt_context;

extern _Atomic unsigned ckt_host_mappable; /* allocations that are not mapped yet */
CUresult ckt_client_host_alloc(
	struct ckt_context *context, size_t size, unsigned flags, void **ret_memory);
CUresult ckt_client_host_free(const struct ckt_client_range *range);
/*
 * Maps the pinned allocation that holds the address, if it is not: CUDA_ERROR_NOT_SUPPORTED where
 * its address cannot be had.
 */
CUresult ckt_client_host_map(uint64_t address);
/*
 * Of mapped memory: waits for the GPU and fetches, so that it can be used where nothing may fault.
 * False where it is not mapped.
 */
bool ckt_client_host_open(uint64_t address, uint64_t size, bool write);
/* As ckt_client_host_map, for every address among the packed parameters of a kernel. */
CUresult ckt_client_host_map_params(const void *packed, size_t size);
