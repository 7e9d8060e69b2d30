/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"
#include "softgpu/memory/range.h"

struct ckt_soft_context;

/*
 * Allocates memory from the device's arena, charges the device, marks the pages accessible and adds
 * the range to the table.
 */
CUresult ckt_soft_memory_alloc(struct ckt_soft_context *context, uint64_t size,
	enum ckt_soft_range_kind kind, uint64_t *ret_address);
/* Does the same for a given range, and sets its base and id. */
CUresult ckt_soft_memory_make(struct ckt_soft_range *range);
/* Releases the memory; the caller must have removed the range from the table. */
void ckt_soft_memory_release(const struct ckt_soft_range *range);
/*
 * True if a device has the access `bits` to all of [address, address + size), and the range is in
 * one allocation or in mapped memory.
 */
bool ckt_soft_memory_ok(uint64_t address, uint64_t size, uint8_t bits);
/* True if the address is in an arena or in a cuMemAddressReserve range, mapped or not. */
bool ckt_soft_memory_is_device_space(uint64_t address);
