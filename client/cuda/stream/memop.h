/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the memory operations of streams. */
#pragma once

#include <cuda.h>

#include <stddef.h>
#include <stdint.h>

size_t ckt_client_memop_wire_size(unsigned count);
uint8_t *ckt_client_memop_wire_put(uint8_t *p, const CUstreamBatchMemOpParams *ops, unsigned count);
