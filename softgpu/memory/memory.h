/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"
#include "softgpu/memory/range.h"

struct ckt_soft_context;

/* Memory from the device's arena, charged, marked accessible and entered in the table. */
CUresult ckt_soft_memory_alloc(struct ckt_soft_context *context, uint64_t size,
	enum ckt_soft_range_kind kind, uint64_t *ret_address);
/* The same for a range whose base, as yet unknown, and id come out of it. */
CUresult ckt_soft_memory_make(struct ckt_soft_range *range);
/* The reverse; the range must have been removed from the table. */
void ckt_soft_memory_release(const struct ckt_soft_range *range);
/*
 * True where a device may do `bits` with all of [address, address + size), and it is all one
 * allocation or mapped memory.
 */
bool ckt_soft_memory_ok(uint64_t address, uint64_t size, uint8_t bits);
/*
 * True where the address belongs to the devices (an arena or a cuMemAddressReserve range), mapped
 * or not.
 */
bool ckt_soft_memory_is_device_space(uint64_t address);
