/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the program allocated or registered. */
#pragma once

#include <cuda.h>

#include <stdint.h>

/*
 * Replaces an address in allocated or registered host memory by the device's address, and makes the
 * memory accessible there.  CUDA_ERROR_INVALID_VALUE for other memory.
 */
CUresult ckt_client_host_reach(uint64_t *address);
