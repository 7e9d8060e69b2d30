/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory at addresses where the device can have memory too. */
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
 * Maps the pinned allocation that holds the address, unless it is mapped.  CUDA_ERROR_NOT_SUPPORTED
 * if the device cannot have the address.
 */
CUresult ckt_client_host_map(uint64_t address);
/*
 * Opens mapped memory for code that must not fault: waits for the GPU and fetches the bytes.
 * Returns false if the memory is not mapped, or if the worker shares its pages (shared.c).
 */
bool ckt_client_host_open(uint64_t address, uint64_t size, bool write);
/* Calls ckt_client_host_map for every pinned address among a kernel's packed parameters. */
CUresult ckt_client_host_map_params(const void *packed, size_t size);
